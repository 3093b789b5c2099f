# SPDX-License-Identifier: Apache-2.0

"""The parts that every document has besides its answer."""

import dataclasses
import importlib.metadata
import typing

from oslo_utils import timeutils


@dataclasses.dataclass(frozen=True)
class Heading:
    """The beginning of every document.

    :ivar format: changes when a reader of the document must change; new keys
        may come without
    :ivar time: when it was made, in UTC
    :ivar versions: installed versions by name
    """

    format: int
    time: typing.Annotated[str, {'format': 'date-time'}]
    versions: typing.Annotated[
        dict[str, str], {'required': ['nova-ext-sched', 'nova']}
    ]


@dataclasses.dataclass(frozen=True)
class Host:
    """A host with a compute node, and whether servers may come there.

    :ivar cell: its name; its UUID where it has none
    :ivar zone: availability zone
    :ivar aggregates: names
    :ivar domains: failure domains
    :ivar state: of its nova-compute, as nova sees it; disabled, too, in a
        disabled cell
    :ivar closed: the reason that keeps other requests out; empty
        where nothing does
    """

    host: str
    cell: str
    zone: str
    aggregates: list[str]
    domains: list[str]
    state: typing.Annotated[str, {'enum': ['up', 'down', 'disabled']}]
    closed: typing.Annotated[str, {'enum': ['', 'isolated', 'reserved']}]


def make(format_: int) -> dict[str, typing.Any]:
    """Return the heading of a document: format, time and version."""
    made = Heading(
        format_,
        timeutils.utcnow().isoformat(timespec='seconds') + 'Z',
        {
            name: importlib.metadata.version(name)
            for name in ('nova-ext-sched', 'nova')
        },
    )
    return dataclasses.asdict(made)
