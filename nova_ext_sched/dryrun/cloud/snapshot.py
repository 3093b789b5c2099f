# SPDX-License-Identifier: Apache-2.0

"""Reads cells, hosts, aggregates and placement once.

Each part is read once, on first use, and does not change afterwards, so that
all answers of a snapshot agree. Nothing here writes to a database or to
placement, or sends a message.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import functools
import typing

from nova import context as nova_context
from nova import objects
import nova.conf
from nova.db.main import api as main_db
from nova.objects import service as nova_service
from nova.scheduler import host_manager
from oslo_db import exception as db_exception
from oslo_utils import timeutils
import sqlalchemy as sa

from nova_ext_sched import fields
from nova_ext_sched import grouping
from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import mirror
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.queries import aggregates
from nova_ext_sched.queries import under_way

CONF = nova.conf.CONF

# Databases limit the number of values in one statement.
_HOSTS_AT_ONCE = 1000

_Answer = typing.TypeVar('_Answer')

# Within the class, Snapshot.fork() hides the module in annotations.
_Fork = fork.Fork


class Node(typing.NamedTuple):
    """A compute node of a cell's database.

    :ivar host: name of the host whose nova-compute has it
    :ivar node: its own name (``hypervisor_hostname``)
    """

    host: str
    node: str
    cell_uuid: str

    @property
    def name(self) -> str:
        """The host, and the node where it has another name (ironic)."""
        if self.host == self.node:
            return self.host
        return f'{self.host}:{self.node}'


class _CellHosts(typing.NamedTuple):
    """The hosts of one cell.

    :ivar services: nova Services of nova-compute
    :ivar computes: nova ComputeNodes
    :ivar instances: by host name, nova Instances by UUID
    """

    services: typing.Any
    computes: typing.Any
    instances: dict[str, dict[str, typing.Any]]


class Snapshot(host_manager.HostManager):
    """nova-scheduler's memory of the cloud, each part read when first needed.

    It differs from nova's HostManager in when it reads hosts and in how much
    it reads of their servers. nova-scheduler reads every server of the cloud
    in the background when it starts, and the hosts anew for each request.
    Here hosts are read once, and each request gets host states of its own
    (:func:`.claims.copy_state`). Of their servers only the UUIDs are read, as
    nova does if ``track_instance_changes`` is off: other fields of an Instance
    are loaded when a filter reads them.

    A cell that failed once is not asked again, so that no part has its hosts
    while another lacks them.

    Creating a snapshot reads aggregates and cells. Make a new one for each
    answer.

    :param databases: asks the databases of cells; snapshots may share it
    :param settled: whether to ignore running builds (``num_io_ops`` is 0), for
        answers that are not about this moment
    :ivar open_fork: the innermost open fork, or None
    :ivar read_at: when the hosts were read; before that, when this was created
    :ivar versions: a number for the state of each host that a fork changed,
        by UUID; equal numbers are equal states
    :ivar silent_cells: the reasons of cells that did not answer, by UUID
    :ivar doubts: a sentence for each other failed read
    :raises exception.PluginError: a plugin of ours cannot be used
    :raises nova.exception.SchedulerHostFilterNotFound: an enabled filter is
        not available; nova-scheduler would not start
    """

    def __init__(
        self, databases: cells.Cells | None = None, settled: bool = False
    ) -> None:
        super().__init__()
        self._databases = databases or cells.Cells()
        self._settled = settled
        self._contexts: dict[str, typing.Any] = {}
        self.read_at = timeutils.utcnow()
        self.silent_cells: dict[str, str] = {}
        self.doubts: list[str] = []
        self.open_fork: _Fork | None = None
        self.versions: dict[str, int] = {}
        for weigher in self.weighers:
            _cache_multiplier(weigher)

    @functools.cached_property
    def client(self) -> mirror.MirroringClient:
        """nova's client of placement, with the session of nova.conf."""
        # Late, because it asks placement at once, and not every tool needs it.
        return mirror.MirroringClient()

    @functools.cached_property
    def providers(self) -> placement.Providers:
        """Placement's answers, each question asked once."""
        return placement.Providers(self.client)

    @contextlib.contextmanager
    def fork(self) -> Iterator[_Fork]:
        """Open a fork while the block runs."""
        before = self.open_fork
        if before is None:
            # Before a fork changes the states.
            _ = self.nodes_by_server
        self.open_fork = _Fork(self, before)
        try:
            with self.open_fork.used() as future:
                yield future
        finally:
            self.open_fork = before

    @property
    def future(self) -> _Fork:
        """The innermost open fork, for whoever changes it: one must be open.

        :raises RuntimeError: none is
        """
        if self.open_fork is None:
            raise RuntimeError('expected an open fork, got the cloud as it is')
        return self.open_fork

    @functools.cached_property
    def nodes_by_server(self) -> dict[str, list[str]]:
        """The UUIDs of the compute nodes whose states have a server, by its.

        As they are without a fork.
        """
        return grouping.by_key(
            (server, uuid)
            for uuid, state in self.states.items()
            for server in state.instances
        )

    def nodes_of(self, host: str) -> Sequence[str]:
        """Return the UUIDs of the compute nodes of a host's nova-compute."""
        return self._uuids_by_host.get(host, ())

    def context_of(self, cell: str) -> typing.Any:
        """Return a context for lazy-loading from a cell's database.

        :param cell: its UUID
        """
        if cell not in self._contexts:
            admin, mapping = process.context(), self.cells[cell]
            with nova_context.target_cell(admin, mapping) as cctxt:
                self._contexts[cell] = cctxt
        return self._contexts[cell]

    def find_node(self, host: str | None, node: str | None) -> str | None:
        """Return the UUID of a compute node; None if there is none."""
        uuids = self.nodes_of(host or '')
        return next(
            (uuid for uuid in uuids if self.nodes[uuid].node == node), None
        )

    @functools.cached_property
    def services(self) -> dict[tuple[str, str], str]:
        """UUIDs of nova-compute services, by cell UUID and host name."""
        return {
            (cell, service.host): service.uuid
            for cell, found in self._read_by_cell.items()
            for service in found.services
        }

    def services_of(self, hosts: Iterable[str]) -> dict[str, str]:
        """Return the UUIDs of nova-compute services, by host name."""
        by_host = {host: uuid for (_, host), uuid in self.services.items()}
        return {
            host: by_host[host] for host in sorted(set(hosts) & by_host.keys())
        }

    @functools.cached_property
    def nodes_by_cell(self) -> dict[str, frozenset[str]]:
        """The UUIDs of the compute nodes with a state, by that of the cell."""
        found = grouping.by_key(
            (state.cell_uuid, uuid) for uuid, state in self.states.items()
        )
        return {cell: frozenset(nodes) for cell, nodes in found.items()}

    @functools.cached_property
    def cell_of_server(self) -> dict[str, str]:
        """The cell of each server that was on a host of a compute node.

        Both by UUID.
        """
        return {
            uuid: cell
            for cell, found in self._read_by_cell.items()
            for instances in found.instances.values()
            for uuid in instances
        }

    @functools.cached_property
    def unmapped(self) -> set[str]:
        """Names of hosts in no cell mapping.

        nova-scheduler may choose them for a boot, and nova-conductor then
        fails the boot, because it finds no cell to create the server in.
        Moves are not affected, because their cell is known.
        """
        found = objects.HostMappingList.get_all(
            nova_context.get_admin_context()
        )
        # Without case, as MySQL compares them.
        mapped = {mapping.host.lower() for mapping in found}
        return {
            host for host in self._uuids_by_host if host.lower() not in mapped
        }

    @functools.cached_property
    def under_way(self) -> dict[str, set[str]]:
        """The hosts between which servers migrate, by the servers' UUIDs.

        A migration that waits for its owner to confirm or revert it counts.
        """
        hosts_of: dict[str, set[str]] = {}
        for moves in self.ask_cells(_select_under_way).values():
            for one in moves:
                hosts = filter(None, (one.source, one.dest))
                hosts_of.setdefault(one.server, set()).update(hosts)
        return hosts_of

    @functools.cached_property
    def _uuids_by_host(self) -> dict[str, list[str]]:
        return grouping.by_key(
            (node.host, uuid) for uuid, node in self.nodes.items()
        )

    @functools.cached_property
    def nodes(self) -> dict[str, Node]:
        """All compute nodes of all cells, by UUID.

        The UUID is also that of the node's resource provider. Those of
        disabled cells are included, which the scheduler leaves out
        (``enabled_cells``).
        """
        return {
            compute.uuid: Node(compute.host, compute.hypervisor_hostname, cell)
            for cell, found in self._read_by_cell.items()
            for compute in found.computes
        }

    @functools.cached_property
    def states(self) -> dict[str, typing.Any]:
        """The nova HostStates of all cells, disabled ones too, by UUID.

        They are sorted by the names of their hosts.
        """
        states = self._get_host_states(
            nova_context.get_admin_context(),
            {
                cell: hosts.computes
                for cell, hosts in self._read_by_cell.items()
            },
            {
                service.host: service
                for hosts in self._read_by_cell.values()
                for service in hosts.services
            },
        )
        # nova takes the first of equal hosts, in an order that differs from
        # process to process. Sorted, two plans of one cloud are the same.
        return {
            state.uuid: state
            for state in sorted(
                states, key=lambda one: (messages.in_order(one.host), one.uuid)
            )
        }

    @functools.cached_property
    def _computes(self) -> dict[str, list[tuple[str, typing.Any]]]:
        """The nova ComputeNodes of hosts, each with the UUID of its cell.

        By the host's name in lower case, because a plan looks up one host at
        a time.
        """
        return grouping.by_key(
            (compute.host.lower(), (cell, compute))
            for cell, hosts in self._read_by_cell.items()
            for compute in hosts.computes
        )

    @functools.cached_property
    def _order(self) -> dict[str, int]:
        return {uuid: number for number, uuid in enumerate(self.states)}

    @functools.cached_property
    def _read_by_cell(self) -> dict[str, _CellHosts]:
        found = self.ask_cells(_select_hosts)
        self.read_at = timeutils.utcnow()
        return found

    @functools.cached_property
    def aggregates_copy(self) -> typing.Any:
        """The aggregates in memory, for :func:`.change.used`.

        A copy: later changes to an aggregate do not appear in it.
        """
        return change.copy_aggregates(
            self.aggs_by_id.values(), change.find_dialect()
        )

    def limit_cells(self, number: int) -> None:
        """Ask no more than so many cells at once from now on."""
        self._databases.at_once = number

    def ask_cells(
        self,
        select: Callable[..., _Answer],
        *args: typing.Any,
        mappings: Iterable[typing.Any] | None = None,
    ) -> dict[str, _Answer]:
        """Ask the databases of cells.

        Cells that do not answer, now or before, are in :attr:`silent_cells`.

        :param select: called with a context of the cell and ``args``
        :param mappings: nova CellMappings; by default of all cells, disabled
            ones too
        :returns: the results of the calls, by UUID of the cell
        """
        if mappings is None:
            mappings = self.cells.values()
        answers, failed = self._databases.ask(
            [one for one in mappings if one.uuid not in self.silent_cells],
            lambda cctxt: select(cctxt, *args),
            nova_context.CELL_TIMEOUT,
        )
        for uuid, problem in failed.items():
            self.silent_cells[uuid] = cells.say_problem(problem)
        return answers

    def ask_cell(
        self,
        mapping: typing.Any,
        select: Callable[..., _Answer],
        *args: typing.Any,
    ) -> _Answer:
        """Return the answer of one cell's database.

        :param mapping: a nova CellMapping; ``select`` as in :meth:`ask_cells`
        :raises cells.CellFailed: it does not answer, now or before
        """
        found = self.ask_cells(select, *args, mappings=[mapping])
        if mapping.uuid not in found:
            raise self._failure(mapping)
        return found[mapping.uuid]

    @contextlib.contextmanager
    def target_cell(
        self, ctxt: typing.Any, mapping: typing.Any
    ) -> Iterator[typing.Any]:
        """Yield a context of a cell's database, as nova's function does.

        :param mapping: a nova CellMapping
        :raises cells.CellFailed: the database does not answer, now or before
        """
        if mapping.uuid in self.silent_cells:
            raise self._failure(mapping)
        try:
            with nova_context.target_cell(ctxt, mapping) as cctxt:
                yield cctxt
        except (db_exception.DBError, sa.exc.SQLAlchemyError) as exc:
            self.silent_cells[mapping.uuid] = messages.say_error(exc)
            raise self._failure(mapping) from exc

    def _failure(self, mapping: typing.Any) -> cells.CellFailed:
        return cells.CellFailed(
            cell=messages.clean(mapping.name or mapping.uuid),
            cause=self.silent_cells[mapping.uuid],
        )

    def cell_name(self, uuid: str) -> str:
        """Return a cell's name for messages; its UUID where it has none."""
        # self.cells has no cell0.
        cell = self.cells.get(uuid)
        return messages.clean((cell and cell.name) or uuid)

    @property
    def faults(self) -> list[str]:
        """A sentence for each failed read."""
        return [
            f'Cell {self.cell_name(cell)} cannot be read, and its servers are '
            f'not checked: {messages.without_secrets(problem)}.'
            for cell, problem in self.silent_cells.items()
        ] + self.doubts

    @functools.cached_property
    def zones(self) -> set[str]:
        """The availability zones that hosts are in."""
        zoned = [
            aggregate
            for aggregate in self.aggs_by_id.values()
            if aggregate.hosts and aggregate.availability_zone
        ]
        zones = {aggregate.availability_zone for aggregate in zoned}
        hosts = {node.host for node in self.nodes.values()}
        # A host of a silent cell may be in no aggregate with a zone.
        if self.silent_cells or hosts.difference(*(a.hosts for a in zoned)):
            zones.add(CONF.default_availability_zone)
        return zones

    def aggregates_of(self, host: str) -> list[typing.Any]:
        """Return nova Aggregates of a host, as its HostState has them."""
        return self._get_aggregates_info(host)

    # What nova calls.

    def get_host_states_by_uuids(
        self, context: typing.Any, compute_uuids: typing.Any, spec_obj: object
    ) -> list[typing.Any]:
        """Return host states of the cells that nova would ask.

        ComputeFilter compares a service's last heartbeat with the clock. Here
        heartbeats are as old as they were when the hosts were read.

        :param compute_uuids: UUIDs of the wanted compute nodes; None for all
        :returns: in the order of :attr:`states`
        """
        cell = get_cell(spec_obj) if spec_obj else None
        allowed = {cell} if cell else {one.uuid for one in self.enabled_cells}
        states = self.states
        passed = timeutils.utcnow() - self.read_at
        copies = []
        known: Iterable[str] = states
        if compute_uuids is not None:
            known = sorted(
                states.keys() & compute_uuids, key=self._order.__getitem__
            )
        for uuid in known:
            state = states[uuid]
            if state.cell_uuid not in allowed:
                continue
            copied = claims.copy_state(state)
            if self._settled:
                copied.num_io_ops = 0
            service = state.service
            heartbeat = service.get('last_seen_up') or service['created_at']
            copied.service = {**service, 'last_seen_up': heartbeat + passed}
            copies.append(copied)
        return copies

    def get_compute_nodes_by_host_or_node(
        self,
        ctxt: typing.Any,
        host: str | None,
        node: str | None,
        cell: typing.Any = None,
    ) -> typing.Any:
        """Return the nova ComputeNodes that a request names.

        nova asks the host's own cell, or without a host the enabled cells.
        Here a host is looked for in all cells, and its name selects the cell.
        Names are compared without case, as nova compares forced hosts.

        :raises cells.CellFailed: no compute node has the names, and a cell
            that may have it does not answer
        """
        if cell:
            allowed = {cell.uuid}
        elif host:
            allowed = {*self.cells}
        else:
            allowed = {one.uuid for one in self.enabled_cells}
        hosts = [host.lower()] if host else self._computes
        nodes = [
            compute
            for name in hosts
            for uuid, compute in self._computes.get(name, ())
            if uuid in allowed
            and (
                not node or node.lower() == compute.hypervisor_hostname.lower()
            )
        ]
        silent = allowed & self.silent_cells.keys()
        if silent and not nodes:
            raise self._failure(self.cells[min(silent)])
        return objects.ComputeNodeList(objects=nodes)

    def _init_instance_info(self, computes_by_cell: typing.Any = None) -> None:
        pass

    def _get_instances_by_host(
        self, context: typing.Any, host_name: str
    ) -> dict[str, typing.Any]:
        for found in self._read_by_cell.values():
            if host_name in found.instances:
                return found.instances[host_name]
        return {}


@contextlib.contextmanager
def read(
    supposed: change.Change = change.NONE,
    settled: bool = False,
    databases: cells.Cells | None = None,
) -> Iterator[Snapshot]:
    """Open the cloud as it would be after a change, while the block runs.

    The change is undone at the end of the block. Raises also what
    :class:`Snapshot` raises.

    :param supposed: the change
    :param settled: see :class:`Snapshot`; ``databases`` too
    :raises exception.InvalidValue: the change names something that does not
        exist or is malformed
    """
    # For each request, nova's filters ask for the version of the oldest
    # nova-compute of all cells, and ours for the metadata of the aggregates.
    with (
        change.made(supposed),
        _cached(nova_service, 'get_minimum_version_all_cells'),
        _cached(aggregates, 'get_metadata'),
    ):
        yield Snapshot(databases, settled)


@contextlib.contextmanager
def _cached(module: typing.Any, name: str) -> Iterator[None]:
    """Cache a function's answers while the block runs.

    :param module: the module to patch
    :param name: its function, which takes a context, an iterable of strings
        and perhaps more
    """
    ask = getattr(module, name)
    kept: dict[object, typing.Any] = {}

    def ask_once(
        ctxt: typing.Any, words: Iterable[str], *args: object, **more: object
    ) -> typing.Any:
        key = tuple(words), args, tuple(more.items())
        if key not in kept:
            kept[key] = ask(ctxt, words, *args, **more)
        return kept[key]

    # An overlay calls the uncached function, because its answer differs.
    ask_once.__wrapped__ = ask  # type: ignore[attr-defined]
    setattr(module, name, ask_once)
    try:
        yield
    finally:
        setattr(module, name, ask)


def _cache_multiplier(weigher: typing.Any) -> None:
    """Cache a nova weigher's multiplier for hosts in the same aggregates.

    nova's weighers read it in nova.conf and in the host's aggregates, for
    each host of each request. Other weighers may read anything else (ours
    read the request), so theirs is not cached.
    """
    if type(weigher).__module__.partition('.')[0] != 'nova':
        return
    find = weigher.weight_multiplier
    # Each value has the aggregates: while they are kept, no other object can
    # get their id().
    kept: dict[int, tuple[object, float]] = {}

    def find_once(state: typing.Any) -> float:
        key = id(state.aggregates)
        if key not in kept:
            kept[key] = state.aggregates, find(state)
        return kept[key][1]

    weigher.weight_multiplier = find_once


def get_cell(spec_obj: typing.Any) -> str | None:
    """Return the UUID of the cell that a request is confined to, if any."""
    destination = fields.get_field(spec_obj, 'requested_destination')
    if destination is None or destination.allow_cross_cell_move:
        return None
    cell = fields.get_field(destination, 'cell')
    return cell and cell.uuid


def is_boot(spec_obj: typing.Any) -> bool:
    """Return whether a request creates a new server.

    nova-conductor confines every other operation to the server's cell.
    """
    destination = fields.get_field(spec_obj, 'requested_destination')
    return destination is None or not fields.get_field(destination, 'cell')


@main_db.pick_context_manager_reader
def _select_under_way(context: typing.Any) -> list[under_way.RunningMigration]:
    return under_way.select_all(context.session)


def _select_hosts(cctxt: typing.Any) -> _CellHosts:
    services = objects.ServiceList.get_by_binary(
        cctxt, 'nova-compute', include_disabled=True
    )
    computes = objects.ComputeNodeList.get_all(cctxt)
    hosts = sorted({compute.host for compute in computes})
    instances: dict[str, dict[str, typing.Any]] = {}
    for start in range(0, len(hosts), _HOSTS_AT_ONCE):
        found = objects.InstanceList.get_uuids_by_hosts(
            cctxt, hosts[start : start + _HOSTS_AT_ONCE]
        )
        for host, uuids in found.items():
            instances[host] = {
                uuid: objects.Instance(cctxt, uuid=uuid) for uuid in uuids
            }
    return _CellHosts(services, computes, instances)
