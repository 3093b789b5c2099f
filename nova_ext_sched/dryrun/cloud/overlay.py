# SPDX-License-Identifier: Apache-2.0

"""Lays a change over a cloud that was already read.

So several acts are tried on a cloud that was read once: nothing of nova's
databases is read again, and of placement only the parts that the change may
alter. A change may be laid within a fork, and is undone at its end.
"""

import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import inspect
import typing

from nova import objects
import nova.conf
import os_traits
from oslo_utils import uuidutils

from nova_ext_sched import grouping
from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import mirror
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import readers
from nova_ext_sched.queries import aggregates

if typing.TYPE_CHECKING:
    from nova_ext_sched.dryrun.cloud import snapshot

CONF = nova.conf.CONF


@dataclasses.dataclass(frozen=True)
class Overlay:
    """A supposed change to a cloud; by default none.

    Hosts, aggregates and providers are named as nova has them.

    :ivar options: options of nova.conf, see :class:`.change.Change`
    :ivar joins: aggregates by UUID, each with a host that it gets
    :ivar leaves: aggregates by UUID, each with a host that it loses
    :ivar domains: hosts that each get a failure domain of their own, in a copy
        of the aggregate of their present domain
    :ivar metadata: aggregates by UUID, each with a key and its new value; None
        if it loses the key
    :ivar mirrored: aggregates by UUID, each with a host that is in it in
        placement if, and only if, it is in nova
    :ivar running: hosts whose nova-compute is enabled and up
    :ivar mapped: hosts that are in a cell mapping
    :ivar amounts: options of nova-compute (:data:`.readers.AMOUNTS`), each
        with the UUID of a compute node, and its value there. The room is there
        in a fork in which the node is enlarged (:meth:`.fork.Fork.enlarge`)
    :ivar traits: traits, each with the UUID of a provider, and whether the
        provider has the trait
    """

    options: tuple[tuple[str, str], ...] = ()
    joins: tuple[tuple[str, str], ...] = ()
    leaves: tuple[tuple[str, str], ...] = ()
    domains: tuple[str, ...] = ()
    metadata: tuple[tuple[str, str, str | None], ...] = ()
    mirrored: tuple[tuple[str, str], ...] = ()
    running: tuple[str, ...] = ()
    mapped: tuple[str, ...] = ()
    traits: tuple[tuple[str, str, bool], ...] = ()
    amounts: tuple[tuple[str, str, float], ...] = ()

    def with_(self, other: 'Overlay') -> 'Overlay':
        """Return both changes in one."""
        mine, more = vars(self), vars(other)
        return Overlay(
            **{key: (*mine[key], *more[key]) for key in mine.keys()}
        )


#: No change.
NONE = Overlay()


@contextlib.contextmanager
def laid(cloud: 'snapshot.Snapshot', supposed: Overlay) -> Iterator[None]:
    """Make a cloud answer as after a change while the block runs.

    :param cloud: the cloud, perhaps with an open fork
    :raises exception.InvalidValue: an option does not exist
    """
    if supposed == NONE:
        yield
        return
    replaced: dict[str, typing.Any] = {}
    added = dict(_make_domains(cloud, supposed))
    supposed = supposed.with_(_move(cloud, added))
    with contextlib.ExitStack() as stack:
        stack.enter_context(change.made(change.Change(supposed.options)))
        if supposed.joins or supposed.leaves or supposed.metadata:
            replaced |= _change_aggregates(cloud, supposed, added.values())
            stack.enter_context(_reading(cloud, replaced['aggregates_copy']))
        stack.enter_context(mirror.used(*_find_mirrored(cloud, supposed)))
        if supposed.mapped:
            replaced['unmapped'] = cloud.unmapped - {*supposed.mapped}
        replaced['providers'] = placement.Providers(
            cloud.client, _find_inventories(supposed)
        )
        replaced['states'] = _change_states(cloud, supposed, replaced)
        stack.enter_context(_replacing(cloud, replaced))
        yield


@contextlib.contextmanager
def _replacing(
    cloud: 'snapshot.Snapshot', replaced: Mapping[str, typing.Any]
) -> Iterator[None]:
    """Replace attributes of a cloud while the block runs.

    Attributes that are computed from aggregates are computed again if these
    change.
    """
    known: dict[str, typing.Any] = cloud.__dict__
    computed = {'zones'} if 'aggs_by_id' in replaced else set[str]()
    kept = {
        key: known.pop(key) for key in computed.union(replaced) if key in known
    }
    known.update(replaced)
    try:
        yield
    finally:
        for key in computed.union(replaced):
            known.pop(key, None)
        known.update(kept)


@contextlib.contextmanager
def _reading(cloud: 'snapshot.Snapshot', copied: typing.Any) -> Iterator[None]:
    """Make the scheduler's code read other aggregates, without caches.

    :param copied: see :func:`.change.used`
    """
    moved = cloud.open_fork.places if cloud.open_fork else {}
    before = aggregates.get_metadata
    aggregates.get_metadata = inspect.unwrap(before)
    try:
        with change.used(copied, moved):
            yield
    finally:
        aggregates.get_metadata = before


def _make_domains(
    cloud: 'snapshot.Snapshot', supposed: Overlay
) -> Iterator[tuple[str, typing.Any]]:
    """Yield hosts, each with a nova Aggregate that is a domain of its own."""
    key = CONF.nova_ext_sched.failure_domain_key
    for number, host in enumerate(supposed.domains, 1):
        items: dict[str, str] = {}
        for one in cloud.aggregates_of(host):
            if key in one.metadata:
                items |= one.metadata
        uuid = uuidutils.generate_uuid()
        yield (
            host,
            objects.Aggregate(
                id=max(cloud.aggs_by_id, default=0) + number,
                uuid=uuid,
                name=uuid,
                hosts=[],
                metadata={**items, key: uuid},
            ),
        )


def _move(
    cloud: 'snapshot.Snapshot', added: Mapping[str, typing.Any]
) -> Overlay:
    """Put hosts into aggregates, and out of those of their domains."""
    key = CONF.nova_ext_sched.failure_domain_key
    return Overlay(
        joins=tuple((one.uuid, host) for host, one in added.items()),
        leaves=tuple(
            (one.uuid, host)
            for host in added
            for one in cloud.aggregates_of(host)
            if key in one.metadata
        ),
    )


def copy_with_item(
    aggregate: typing.Any, key: str, value: str | None
) -> typing.Any:
    """Return a copy of a nova Aggregate that has an item of metadata.

    :param value: None where it loses the key
    """
    copied = aggregate.obj_clone()
    items = {**(copied.metadata or {}), key: value}
    copied.metadata = {k: v for k, v in items.items() if v is not None}
    return copied


def _change_aggregates(
    cloud: 'snapshot.Snapshot', supposed: Overlay, added: Iterable[typing.Any]
) -> dict[str, typing.Any]:
    """Return the attributes of a cloud whose aggregates are changed.

    :param added: nova Aggregates that there are besides
    """
    known = (*cloud.aggs_by_id.values(), *added)
    by_uuid = {aggregate.uuid: aggregate for aggregate in known}
    for changes, gets in ((supposed.joins, True), (supposed.leaves, False)):
        for uuid, host in changes:
            aggregate = by_uuid[uuid].obj_clone()
            others = {*aggregate.hosts} - {host}
            aggregate.hosts = sorted(others | {host} if gets else others)
            by_uuid[uuid] = aggregate
    for uuid, key, value in supposed.metadata:
        by_uuid[uuid] = copy_with_item(by_uuid[uuid], key, value)
    ids_by_host = grouping.by_key(
        (host, aggregate.id)
        for aggregate in by_uuid.values()
        for host in aggregate.hosts
    )
    return {
        'aggs_by_id': {
            aggregate.id: aggregate for aggregate in by_uuid.values()
        },
        'host_aggregates_map': collections.defaultdict(list, ids_by_host),
        'aggregates_copy': change.copy_aggregates(
            by_uuid.values(), change.find_dialect()
        ),
    }


def _find_mirrored(
    cloud: 'snapshot.Snapshot', supposed: Overlay
) -> tuple[mirror.Changes, mirror.Traits]:
    """Return the changes to placement's answers."""
    changes: mirror.Changes = {}
    traits: mirror.Traits = {}
    hosts = {one.uuid: one.hosts for one in cloud.aggs_by_id.values()}
    for uuid, host in supposed.mirrored:
        changes.setdefault(uuid, {})[host] = host in hosts.get(uuid, ())
    for found, holds in ((supposed.joins, True), (supposed.leaves, False)):
        for uuid, host in found:
            changes.setdefault(uuid, {})[host] = holds
    for trait, provider, has in supposed.traits:
        traits.setdefault(trait, {})[provider] = has
    for host in supposed.running:
        lacking = dict.fromkeys(cloud.nodes_of(host), False)
        traits.setdefault(os_traits.COMPUTE_STATUS_DISABLED, {}).update(
            lacking
        )
    return changes, traits


def _find_inventories(
    supposed: Overlay,
) -> dict[str, dict[str, dict[str, float]]]:
    """Return the fields of inventories that options of nova-compute change."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for option, node, value in supposed.amounts:
        name, field = readers.AMOUNTS[option]
        found.setdefault(node, {}).setdefault(name, {})[field] = value
    return found


def _change_states(
    cloud: 'snapshot.Snapshot',
    supposed: Overlay,
    replaced: Mapping[str, typing.Any],
) -> dict[str, typing.Any]:
    """Return the HostStates by UUID; those that change are copies."""
    states = dict(cloud.states)
    by_id = replaced.get('aggs_by_id', {})
    host_map = replaced.get('host_aggregates_map', {})
    changed = {host for _, host in (*supposed.joins, *supposed.leaves)}
    with_items = {uuid for uuid, *_ in supposed.metadata}
    for one in by_id.values():
        if one.uuid in with_items:
            changed.update(one.hosts)
    changed.update(cloud.nodes[uuid].host for _, uuid, _ in supposed.amounts)
    for host in changed.union(supposed.running):
        for node in cloud.nodes_of(host):
            if node not in states:
                continue
            states[node] = state = claims.copy_state(states[node])
            if by_id:
                state.aggregates = [by_id[one] for one in host_map[host]]
            for option, uuid, value in supposed.amounts:
                if uuid == node and hasattr(state, option):
                    setattr(state, option, value)
            if host in supposed.running:
                service = state.service
                heartbeat = service.get('last_seen_up')
                zone = heartbeat.tzinfo if heartbeat else None
                state.service = {
                    **service,
                    'disabled': False,
                    'forced_down': False,
                    # As old as the hosts are that were read.
                    'last_seen_up': cloud.read_at.replace(tzinfo=zone),
                }
    return states
