# SPDX-License-Identifier: Apache-2.0

"""Hosts that nothing can tell apart, so that one of them stands for all.

Explain's stages have judged each host by itself. What a host takes after that
depends on what claims change (free memory, CPUs, NUMA cells, PCI devices, the
number of servers, the room in placement), and on what filters compare with it:
sizes, ratios, aggregates. Hosts that have all of it in common take the same
number of servers.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import typing

from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.filters import base
from nova_ext_sched.queries import fields

# Fields of a HostState that say which host it is, and those that no claim
# changes and no filter compares with what claims change: by them each host
# was judged.
_OWN = frozenset(
    {
        'host',
        'nodename',
        'uuid',
        '_lock_name',
        'host_ip',
        'hypervisor_hostname',
        'cell_uuid',
        'updated',
        'service',
        'stats',
        'metrics',
        'failed_builds',
        'instances',
        'aggregates',
        'allocation_candidates',
        'cpu_info',
        'supported_instances',
    }
)
# The hint of nova's JsonFilter, which compares any field with any other.
_OF_ANY_FIELD = 'query'

# Their filters compare nothing of _OWN with more; nor does one that judges by
# aggregates alone.
_PACKAGES = ('nova', 'nova_ext_sched')


def are_shared(
    host_filters: Iterable[typing.Any], spec_obj: typing.Any
) -> bool:
    """Return whether one host of a kind stands for all.

    :param host_filters: those that judge the request
    :param spec_obj: a nova RequestSpec
    """
    hints = fields.get_field(spec_obj, 'scheduler_hints') or {}
    return (
        spec_obj.instance_group is None
        and _OF_ANY_FIELD not in hints
        and all(
            type(one).__module__.partition('.')[0] in _PACKAGES
            or all(
                isinstance(judge, base.ByAggregates)
                for _, judge in base.decisions_of(one, spec_obj)
            )
            for one in host_filters
        )
    )


def get(
    uuid: str,
    described: object,
    requests: Iterable[claims.Request],
    summaries: Mapping[str, typing.Any],
) -> object:
    """Return what hosts of one kind have in common.

    :param uuid: of the host
    :param described: what :func:`describe` returned
    :param requests: the host's allocation requests, in their order
    :param summaries: placement's provider summaries, by UUID
    """
    numbers: dict[str, int] = {}
    rooms: list[tuple[object, ...]] = []
    for request in requests:
        for provider, one in request['allocations'].items():
            summary = summaries[provider]
            if summary['root_provider_uuid'] != uuid:
                # Hosts share it: what one claims, another lacks.
                return uuid
            number = numbers.setdefault(provider, len(numbers))
            for name, amount in one['resources'].items():
                found = summary['resources'][name]
                free = found['capacity'] - found['used']
                rooms.append((number, name, amount, free))
        rooms.append(())
    return described, tuple(rooms)


def describe(state: typing.Any) -> object:
    """Return what a nova HostState has of its kind."""
    return (
        frozenset(map(id, state.aggregates)),
        *(
            # What has no text of its own is like nothing else.
            repr(value.pools if name == 'pci_stats' and value else value)
            for name, value in sorted(vars(state).items())
            if name not in _OWN
        ),
    )
