# SPDX-License-Identifier: Apache-2.0

"""Chooses the microversion of placement that a request needs.

Follows placement.microversion.VERSIONS. If the server cannot express a
constraint, that is an error before anything is sent: without the constraint
the answer would have hosts that the request may not use.
"""

from collections.abc import Collection
import typing

from keystoneauth1 import discover

from nova_ext_sched import objects
from nova_ext_sched.placement import errors

Version = tuple[int, ...]
#: The least and the greatest that a server has.
Range = tuple[Version, Version]
#: What a request needs: a part of the API, and the least microversion
#: that has it.
Needs = dict[str, Version]

#: The greatest microversion that this client knows. Later ones may change
#: the answers that it reads.
KNOWN = (1, 39)

TRAITS: Needs = {'traits': (1, 6)}
# 1.1 has them without the generation, so that an update could be lost.
AGGREGATES: Needs = {'aggregates of a provider with its generation': (1, 19)}

# By the field of a group: what candidates and providers need for it.
_FIELDS: dict[str, tuple[str, Version, Version]] = {
    'resources': ('resources', (1, 12), (1, 4)),
    'required_traits': ('required traits', (1, 17), (1, 18)),
    'forbidden_traits': ('forbidden traits', (1, 22), (1, 22)),
    'required_aggregates': ('member_of', (1, 21), (1, 3)),
    'forbidden_aggregates': ('forbidden aggregates', (1, 32), (1, 32)),
    'in_tree': ('in_tree', (1, 31), (1, 14)),
}


def read_range(json: typing.Any) -> Range:
    """Read the lowest and highest microversion from placement's root."""
    version = json['versions'][0]
    return (
        discover.normalize_version_number(version['min_version']),
        discover.normalize_version_number(version['max_version']),
    )


def choose(server: Range, needs: Needs) -> str:
    """Return the microversion to send a request with.

    :raises errors.MicroversionUnsupported: the server, or this client, knows
        none that has what the request needs
    """
    show = discover.version_to_string
    usable = min(server[1], KNOWN)
    lacking = sorted((v, words) for words, v in needs.items() if v > usable)
    if lacking:
        raise errors.MicroversionUnsupported(
            needed=show(lacking[-1][0]),
            features=', '.join(f'{words}: {show(v)}' for v, words in lacking),
            minimum=show(server[0]),
            maximum=show(server[1]),
        )
    return show(usable)


def candidates_needs(
    groups: Collection[objects.RequestGroup],
    group_policy: str | None,
    limit: int | None,
) -> Needs:
    """List the microversions that GET /allocation_candidates needs."""
    # 1.10 has them in a form that no later microversion has.
    needs: Needs = {'allocation candidates': (1, 12)}
    if limit is not None:
        needs['limit'] = (1, 16)
    if group_policy is not None:
        needs['group_policy'] = (1, 25)
    for group in groups:
        needs |= _group_needs(group, is_candidate=True)
        if not group.resources:
            needs['a request group without resources'] = (1, 36)
        if group.suffix.isdecimal() and not group.suffix.startswith('0'):
            needs['request groups with a number'] = (1, 25)
        elif group.suffix:
            needs['request groups with a name'] = (1, 33)
    return needs


def providers_needs(group: objects.RequestGroup) -> Needs:
    """List the microversions that GET /resource_providers needs."""
    return {'resource providers': (1, 0)} | _group_needs(
        group, is_candidate=False
    )


def _group_needs(group: objects.RequestGroup, is_candidate: bool) -> Needs:
    needs = {
        words: candidate if is_candidate else provider
        for field, (words, candidate, provider) in _FIELDS.items()
        if getattr(group, field)
    }
    member_of = 'member_of' + group.suffix
    if [key for key, _ in group.to_queryparams()].count(member_of) > 1:
        needs['more than one member_of'] = (1, 24)
    return needs
