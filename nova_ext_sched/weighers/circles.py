# SPDX-License-Identifier: Apache-2.0

"""The hosts that the members of a server group are dealt to.

The turns must not change while a group fills, but nova shows a weigher only
the hosts that still take a server. The others are

* hosts that our filters refused for the group's sake. They leave them in
  :mod:`nova_ext_sched.request_state`;
* hosts that have no room left. Placement does not return them. Those that may
  fill up soon are remembered for ten minutes after the group's latest
  request;
* hosts that hold members and were never seen with room. nova says which.

How many members a host takes is what it holds and what fits on it yet, at most
the rule of the group. Free vCPUs, memory and disk are read as nova's own
weighers read them. What they do not know (NUMA, PCI devices, allocation ratios
that were set in placement only) may leave fewer: then servers go on to the
next host of the circle.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import math
import threading
import typing

import cachetools

from nova_ext_sched.policy import failure_domains as domains_policy
from nova_ext_sched.policy import round_robin as policy
from nova_ext_sched.queries import fields

_SECONDS = 600
# Hosts of all groups together: some 25 MB.
_HOSTS = 100_000

# Holds a member; in which domain, and how many, nova does not say.
_UNKNOWN = policy.Host(frozenset(), 1)

Circle = Mapping[str, policy.Host]


class Circles:
    """The circle of each request, and what is remembered for the next ones.

    A scheduler has one object of this class.
    """

    def __init__(self) -> None:
        self._remembered: cachetools.TTLCache[str, Circle] = (
            cachetools.TTLCache(_HOSTS, _SECONDS, getsizeof=len)
        )
        # nova-scheduler works in threads, or in greenlets.
        self._lock = threading.Lock()

    def find(
        self,
        spec_obj: typing.Any,
        states: Iterable[typing.Any],
        rule: int,
        key: str | None = None,
    ) -> Circle:
        """Return the hosts of a request's group, by name.

        :param spec_obj: nova's RequestSpec, with a server group
        :param states: the HostStates that the filters left, and those that
            they refused for the group's sake
        :param rule: how many members a host may hold, 1 or more
        :param key: the metadata key of failure domains; None if the request
            does not ask for them
        """
        group = spec_obj.instance_group
        hosts, small = _read_hosts(spec_obj, states, rule, key)
        uuid = fields.get_field(group, 'uuid') or ''
        with self._lock:
            remembered = dict(self._remembered.get(uuid, {}))
            for name in small:
                old = remembered.get(name)
                # nova-compute reports a claim before the new member: for a
                # moment the host seems to take one less.
                if old and old.room > hosts[name].room:
                    hosts[name] = old
                remembered[name] = hosts[name]
            # More hosts than there is memory for.
            with contextlib.suppress(ValueError):
                self._remembered[uuid] = remembered
        for name, host in remembered.items():
            hosts.setdefault(name, host)
        for name in fields.get_field(group, 'hosts') or ():
            hosts.setdefault(name, _UNKNOWN)
        return hosts


def _read_hosts(
    spec_obj: typing.Any,
    states: Iterable[typing.Any],
    rule: int,
    key: str | None,
) -> tuple[dict[str, policy.Host], list[str]]:
    # The hosts, and the names of those that may have no room left before the
    # group is full. By the host, not its nodes: it is what holds members, and
    # a service of ironic has many nodes.
    asked = _read_asked(spec_obj)
    members = frozenset(
        fields.get_field(spec_obj.instance_group, 'members') or ()
    )
    # Hosts share the aggregates of the scheduler's memory.
    roomy: dict[tuple[int, ...], policy.Host] = {}
    hosts = {}
    small = []
    for state in states:
        aggregates = () if key is None else tuple(map(id, state.aggregates))
        host = roomy.get(aggregates)
        if host is None:
            host = policy.Host(_read_domains(state, key), rule)
            roomy[aggregates] = host
        fits = _count_fitting(state, asked)
        if fits <= rule:
            small.append(state.host)
            held = len(members.intersection(state.instances))
            # Placement says that one fits.
            room = held + max(1, int(fits))
            host = policy.Host(host.domains, min(rule, room))
        hosts[state.host] = host
    return hosts, small


def _read_domains(state: typing.Any, key: str | None) -> frozenset[str]:
    if key is None:
        return frozenset()
    return domains_policy.read_domains(
        map(fields.aggregate_metadata, state.aggregates), key
    )


def _read_asked(spec_obj: typing.Any) -> tuple[int, int, int]:
    # vCPUs, MiB of memory, MiB of disk.
    flavor = fields.get_field(spec_obj, 'flavor')
    if not flavor:
        return 0, 0, 0
    vcpus, memory_mb, root_gb, ephemeral_gb, swap = (
        fields.get_field(flavor, name) or 0
        for name in ('vcpus', 'memory_mb', 'root_gb', 'ephemeral_gb', 'swap')
    )
    if fields.get_field(spec_obj, 'is_bfv'):
        root_gb = 0
    return vcpus, memory_mb, (root_gb + ephemeral_gb) * 1024 + swap


def _count_fitting(state: typing.Any, asked: tuple[int, int, int]) -> float:
    # How many more servers fit. A total of 0 is one that nobody reported.
    vcpus, memory_mb, disk_mb = asked
    fits = math.inf
    if vcpus and state.vcpus_total:
        total = state.vcpus_total * (state.cpu_allocation_ratio or 1.0)
        fits = (total - state.vcpus_used) // vcpus
    if memory_mb and state.total_usable_ram_mb:
        total = state.total_usable_ram_mb
        more = total * ((state.ram_allocation_ratio or 1.0) - 1.0)
        fits = min(fits, (state.free_ram_mb + more) // memory_mb)
    if disk_mb and state.total_usable_disk_gb:
        total = state.total_usable_disk_gb * 1024
        total *= state.disk_allocation_ratio or 1.0
        fits = min(fits, (total - state.disk_mb_used) // disk_mb)
    return fits
