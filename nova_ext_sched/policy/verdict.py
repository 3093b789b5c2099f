# SPDX-License-Identifier: Apache-2.0

"""Answers of a policy: about a host, and about all aggregates."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import typing

from nova_ext_sched.policy import act

Metadata = Mapping[str, str | None]

#: Name and metadata.
Aggregate = tuple[str, Metadata]

#: One metadata item of one aggregate: its UUID and name, the item's key and
#: value. An aggregate without any may have an item whose key is None.
Item = tuple[str, str, str | None, str | None]


class Verdict(typing.NamedTuple):
    """A policy's answer about a host, with the reason for a refusal.

    The reason names what the operator can change (aggregate, key, wanted and
    offered value) but not the host. Hosts that are rejected for the same cause
    share one reason, so reasons can be counted.

    :ivar aggregate: the name of the aggregate that refuses the host, if one
        does
    :ivar lacks: whether it is refused for what it is not in, so that no
        aggregate of it is to blame (:attr:`.declaration.Policy.lacks`)
    :ivar by_hint: whether a scheduler hint alone asks for that, which a member
        of a project wrote, and nothing of the operator's
    :ivar is_leaving: of a server that is there: whether it did no wrong, and
        is to leave
    :ivar acts: acts that make the host take the request; without any, what the
        policy declares (:attr:`.declaration.Policy.acts`)
    """

    passes: bool
    reason: str = ''
    aggregate: str = ''
    lacks: bool = False
    by_hint: bool = False
    acts: tuple[act.Act, ...] = ()
    is_leaving: bool = False


PASS = Verdict(True)


def reject(
    reason: str,
    *,
    aggregate: str = '',
    lacks: bool = False,
    by_hint: bool = False,
    acts: tuple[act.Act, ...] = (),
) -> Verdict:
    return Verdict(False, reason, aggregate, lacks, by_hint, acts)


class Resolution(typing.NamedTuple):
    """The aggregates that a request must use, and must not use.

    :ivar required: sets of UUIDs; the host must be in one aggregate of each
    :ivar forbidden: UUIDs
    :ivar traits: forbidden in place of further aggregates, which only their
        hosts have
    :ivar covered: UUIDs of these aggregates
    :ivar unmet: the reason why no host can take the request, as its owner
        reads it; else empty
    :ivar detail: more about that, for operators only: it tells of others
    :ivar by_member: whether a member of a project wrote what cannot be met
    """

    required: Collection[Collection[str]] = ()
    forbidden: Collection[str] = ()
    traits: Collection[str] = ()
    unmet: str = ''
    detail: str = ''
    covered: Collection[str] = ()
    by_member: bool = False


def split_value(value: str | None) -> list[str]:
    """Return the names in a metadata value, which nova splits at commas."""
    return [
        name for part in (value or '').split(',') if (name := part.strip())
    ]


def group_items(items: Iterable[Item]) -> dict[str, Aggregate]:
    """Group metadata items by the UUID of their aggregate."""
    grouped: dict[str, tuple[str, dict[str, str | None]]] = {}
    for uuid, name, key, value in items:
        metadata = grouped.setdefault(uuid, (name, {}))[1]
        if key is not None:
            metadata[key] = value
    return dict(grouped)
