# SPDX-License-Identifier: Apache-2.0

"""Prepares servers for their moves, equivalent ones once.

For evacuations, one call of nova-api's checks covers all servers that look the
same to them. For migrations:

====================================  =====================================
a server                              what says how nova migrates it
====================================  =====================================
equivalent to one that was prepared   that server's result
of a group, with hints, or on a       nova-api's checks of an equivalent one,
volume                                and the request that nova makes of it
any other, such as each with a        nova-api's checks, and the request that
Manila share, and each in a cell      nova makes
whose shares could not be read
====================================  =====================================

A server that nova refuses to migrate has no result to share: equivalent ones
are checked again.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import functools
import typing

from nova import exception as nova_exception

from nova_ext_sched import grouping
from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.decision import server as explain_server
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import left_out
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import priority

# The fields of an Instance that nova-api reads besides the request.
_STATES = ('vm_state', 'task_state', 'power_state', 'locked')


def prepare(
    places: destinations.Destinations,
    leaving: Iterable[plans.Leaving],
    barred: Set[str] = frozenset(),
    advance: Callable[[], object] = lambda: None,
) -> movable.Movables:
    """Prepare servers for their migrations. Call it before a fork is opened.

    :param barred: names of hosts that are no destinations
    :param advance: called after each server
    :raises placement.PlacementFailed: placement does not answer
    """
    # The servers of one host are read together.
    by_host = sorted(leaving, key=lambda one: one.host)
    make = _Migrations(places, barred, by_host).make
    return prepare_each(by_host, make, advance)


def prepare_each(
    leaving: Iterable[plans.Leaving],
    make: Callable[[plans.Leaving], movable.Movable],
    advance: Callable[[], object] = lambda: None,
) -> movable.Movables:
    """Prepare servers for their moves. Call it before a fork is opened.

    :param make: prepares one server
    :param advance: called after each server
    :returns: by server UUID, the prepared server, or the exception that
        ``make`` raised
    :raises placement.PlacementFailed: placement does not answer
    """
    made: dict[str, movable.Movable | Exception] = {}
    for server in leaving:
        # The plan reports one with an exception as stuck, for that reason.
        made[server.server] = movable.attempt(functools.partial(make, server))
        advance()
    return made


def _with_chosen(attrs: Sequence[str]) -> Sequence[str]:
    """Add the attributes by which operators choose servers."""
    return [*dict.fromkeys((*attrs, *priority.attrs(), *left_out.attrs()))]


def _is_checked_alike(
    reader: servers.Reader, cell: str, uuid: str, key: likeness.Key
) -> bool:
    """Return whether what nova-api says holds for servers with one key."""
    return key.has_all and not reader.has_share(cell, uuid)


class _Read(typing.NamedTuple):
    """A server of a host, and what equivalent ones have in common.

    :ivar key: equal for servers that nova-api's checks treat alike; None where
        a result is shared with none
    :ivar is_whole: whether these are prepared alike, too
    """

    stored: servers.Stored | None = None
    key: object = None
    is_whole: bool = False


class _Migrations:
    """Prepares servers for migration, and reads those of a host together.

    :param barred: names of hosts that are no destinations
    :param leaving: all servers to prepare, sorted by host
    """

    def __init__(
        self,
        places: destinations.Destinations,
        barred: Set[str],
        leaving: Iterable[plans.Leaving],
    ) -> None:
        self._places, self._cloud = places, places.cloud
        self._barred = barred
        self._prepared: dict[object, movable.Migration] = {}
        # What is known of equivalent servers, by their key.
        self._known: dict[object, movable.Known] = {}
        self._wanted = grouping.by_key(
            (one.host, one.server) for one in leaving
        )
        counts = {host: len(uuids) for host, uuids in self._wanted.items()}
        # Hosts are read together.
        self._page_of = {
            host: page for page in servers.in_pages(counts) for host in page
        }
        # The hosts that were read last, and their servers.
        self._page: list[str] = []
        self._on: dict[str, _Read] = {}

    def make(self, server: plans.Leaving) -> movable.Migration:
        """Prepare a server.

        :raises admission.NotMovable: nova would not move it
        """
        page = self._page_of[server.host]
        if page is not self._page:
            self._page, self._on = page, dict(self._read(page))
        read = self._on.get(server.server, _Read())
        prepared = self._make(server, read)
        prepared.priority = self._places.priorities.read(
            prepared.spec_obj, read.stored and read.stored.instance
        )
        return prepared

    def _make(self, server: plans.Leaving, read: _Read) -> movable.Migration:
        """Prepare a server, if no equivalent one is prepared."""
        stored, key = read.stored, read.key
        if stored and key in self._prepared:
            left_out.check(stored.instance)
            return self._prepared[key].for_like(stored.instance)
        prepared, key_of_request = movable.migrate(
            self._places.reader,
            server.server,
            self._barred,
            stored,
            self._known.get(key),
        )
        if key is not None:
            # Of two that are stored alike, the group of one may be deleted:
            # its request is whole, the other's is not.
            is_alike = key_of_request and not key_of_request.is_whole
            self._known[key] = movable.Known(
                prepared.method, key_of_request if is_alike else None
            )
        prepared.like = self._places.answers.find(
            key_of_request, lambda: prepared.spec_obj.obj_clone()
        )
        if prepared.like and prepared.like.is_whole:
            # The shared request numbers its devices as the shared answer does.
            prepared.spec_obj = prepared.like.shared.spec_obj
            if read.is_whole:
                self._prepared[key] = prepared
        return prepared

    def _read(self, hosts: Iterable[str]) -> Iterator[tuple[str, _Read]]:
        """Yield the servers of hosts by UUID."""
        for cell, there in self._list_by_cell(hosts).items():
            if (
                cell not in self._places.reader.shares
                or cell in self._cloud.silent_cells
            ):
                continue
            wanted = [uuid for host in there for uuid in self._wanted[host]]
            try:
                standing = [
                    *self._places.reader.read_on(
                        cell, there, wanted, _with_chosen(servers.OF_MOVES)
                    )
                ]
                up = {
                    host: self._is_up(cell, host)
                    for host in {one.instance.host for one in standing}
                }
            except cells.CellFailed:
                # Its servers are then prepared one by one, and each reports
                # the failure.
                continue
            for stored in standing:
                instance = stored.instance
                read = _Read(stored)
                like = stored.text and likeness.of_request(
                    cell, instance, stored.text
                )
                if like and _is_checked_alike(
                    self._places.reader, cell, instance.uuid, like
                ):
                    states = (getattr(instance, name) for name in _STATES)
                    is_built = instance.launched_at is not None
                    # One of a group may have the text of one of none.
                    key = *like, up[instance.host], is_built, *states
                    read = _Read(stored, key, like.is_whole)
                yield instance.uuid, read

    def _list_by_cell(self, hosts: Iterable[str]) -> dict[str, list[str]]:
        """Return hosts by the UUID of their cell.

        One without a compute node may be in any.
        """
        nodes = self._cloud.nodes
        return grouping.by_key(
            (cell, host)
            for host in hosts
            for cell in {
                nodes[uuid].cell_uuid for uuid in self._cloud.nodes_of(host)
            }
            or self._cloud.cells
        )

    def _is_up(self, cell: str, host: str) -> bool:
        mapping = self._cloud.cells[cell]
        with self._cloud.target_cell(process.context(), mapping) as cctxt:
            try:
                return admission.is_up(cctxt, host)
            except nova_exception.ComputeHostNotFound:
                return False


class Evacuations:
    """Prepares servers for evacuation, for one host failure after another."""

    def __init__(self, places: destinations.Destinations) -> None:
        self._places, self._cloud = places, places.cloud
        self._hosts: Set[str] = frozenset()
        self._stored: dict[str, servers.Stored] = {}
        # The hosts that are read with one, by its cell and name.
        self._page_of: dict[tuple[str, str], list[str]] = {}
        # The servers of hosts that were read with another.
        self._ahead: dict[tuple[str, str], list[servers.Stored]] = {}
        # nova-api's refusal, or None, by everything that its checks read.
        self._checked: dict[object, admission.NotMovable | None] = {}

    def expect(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        """Note which hosts are read next, so that several are read at once.

        :param counts: how many servers each has, by cell, in the order of
            reading
        """
        self._ahead = {}
        self._page_of = {
            (cell, host): page
            for cell, of_cell in counts.items()
            for page in servers.in_pages(of_cell)
            for host in page
        }

    def read(self, cell: str, host: str) -> Iterator[servers.Stored]:
        """Yield the servers of a host, for :meth:`prepare`.

        :raises cells.CellFailed: the database stops answering
        """
        if cell in self._cloud.silent_cells:
            # None of its other hosts is judged; reading says why.
            self._ahead.clear()
        if (cell, host) not in self._ahead:
            # A host that fails twice is read alone the second time.
            page = self._page_of.get((cell, host), [host])
            for other in page:
                self._page_of.pop((cell, other), None)
            by_host: dict[tuple[str, str], list[servers.Stored]] = {
                (cell, other): [] for other in page
            }
            for stored in self._places.reader.read_on(
                cell, page, attrs=_with_chosen(servers.OF_EVACUATIONS)
            ):
                by_host[cell, stored.instance.host].append(stored)
            self._ahead |= by_host
        for stored in self._ahead.pop((cell, host)):
            self._stored[stored.uuid] = stored
            yield stored

    def prepare(
        self, leaving: Iterable[plans.Leaving], hosts: Set[str]
    ) -> movable.Movables:
        """Prepare servers that were read. Call it before a fork is opened.

        :param hosts: names of the hosts that fail
        :raises placement.PlacementFailed: placement does not answer
        """
        self._hosts = hosts
        prepared = prepare_each(leaving, self.make)
        self._stored.clear()
        return prepared

    def make(self, server: plans.Leaving) -> movable.Evacuation:
        """Prepare a server that was read.

        :raises admission.NotMovable: nova would not evacuate it
        """
        stored = self._stored[server.server]
        instance, cell, text = stored.instance, stored.cell, stored.text
        left_out.check(instance)
        key = likeness.of_request(cell, instance, text) if text else None
        problem = self._check(instance, cell, key)
        if problem is None:
            return self._make(stored, key)
        if problem.cause != plans.STATE:
            # Nothing lifts this refusal, so no destination is looked for.
            raise problem
        # If that fails, nova-api's refusal is known all the same.
        then = movable.attempt(functools.partial(self._make, stored, key))
        # A new exception: equivalent servers share ``problem``, and ``then``
        # is this server's.
        raise admission.NotMovable(str(problem), problem.first, then)

    def _make(
        self,
        stored: servers.Stored,
        key: likeness.Key | None,
    ) -> movable.Evacuation:
        """Prepare an evacuation, whether or not nova-api allows it."""
        instance = stored.instance

        def make() -> typing.Any:
            reader = self._places.reader
            server = explain_server.Server(reader, stored.uuid, stored)
            server.evacuate()
            return server.spec_obj

        like = self._places.answers.find(key, make)
        if like and like.is_whole:
            spec_obj = like.shared.spec_obj
        else:
            spec_obj = make()
            spec_obj.ignore_hosts = sorted(self._hosts)
        node = self._cloud.find_node(instance.host, instance.node)
        prepared = movable.Evacuation(instance.uuid, spec_obj, like, node)
        prepared.priority = self._places.priorities.read(spec_obj, instance)
        return prepared

    def _check(
        self, instance: typing.Any, cell: str, key: likeness.Key | None
    ) -> admission.NotMovable | None:
        """Return nova-api's refusal to evacuate a server, or None.

        nova-api is asked once for equivalent servers. It reads the server's
        state, flavor, image, devices and shares, and its host's service.

        :param key: the likeness of the server's request
        :raises admission.NotMovable: the server, or its host, is gone
        """
        shared_key: object = None
        if key is not None and _is_checked_alike(
            self._places.reader, cell, instance.uuid, key
        ):
            service = (cell, instance.host) in self._cloud.services
            is_built = instance.launched_at is not None
            shared_key = key.text, instance.vm_state, is_built, service
        if shared_key is None or shared_key not in self._checked:
            problem = None
            mapping = self._cloud.cells[cell]
            try:
                ctxt = process.context()
                with self._cloud.target_cell(ctxt, mapping) as cctxt:
                    admission.ask('evacuate', cctxt, instance)
            except admission.NotMovable as exc:
                if isinstance(exc.__cause__, nova_exception.NotFound):
                    # This server, or its host, is gone; equivalent ones are
                    # not.
                    raise
                problem = exc
            self._checked[shared_key] = problem
        return self._checked[shared_key]
