# SPDX-License-Identifier: Apache-2.0

"""Prepares servers for their migrations: those that are alike once.

====================================  =====================================
a server                              what says how nova migrates it
====================================  =====================================
whose likeness is all that nova       what was said of that other one
reads, and like one that was
prepared
with a share, or in a cell of which   nova-api's checks, and the request
nobody knows the shares               that nova makes
any other                             the same
====================================  =====================================

Of a server that nova does not move the state decides, which is asked of each.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Set
import functools

from nova import exception as nova_exception
from nova import objects
from nova import servicegroup

from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.decision import server as explain_server
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import plans

# What nova-api looks at besides what the request has.
_STATES = ('vm_state', 'task_state', 'power_state', 'locked')


def prepare(
    places: destinations.Destinations,
    leaving: Iterable[plans.Leaving],
    barred: Set[str] = frozenset(),
    advance: Callable[[], object] = lambda: None,
) -> movable.Movables:
    """Prepare servers for their migrations, before anything is supposed.

    :param barred: names of hosts that are no destinations
    :param advance: called after each server
    :raises placement.PlacementFailed: placement does not answer
    """
    # Those of a host are read at once.
    by_host = sorted(leaving, key=lambda one: one.host)
    by_uuid = {one.server: one for one in by_host}
    preparation = _Preparation(places, barred, by_host)
    return prepare_each(
        by_host,
        lambda uuid: preparation.make(by_uuid[uuid]),
        advance,
    )


def prepare_each(
    leaving: Iterable[plans.Leaving],
    make: Callable[[str], movable.Movable],
    advance: Callable[[], object] = lambda: None,
) -> movable.Movables:
    """Prepare servers for their moves, before anything is supposed.

    :param make: prepares one, by its UUID
    :param advance: called after each
    :raises placement.PlacementFailed: placement does not answer
    """
    found: dict[str, movable.Movable | Exception] = {}
    for one in leaving:
        try:
            found[one.server] = make(one.server)
        except placement.PlacementFailed:
            raise
        except Exception as exc:
            # It is named among those without a place.
            found[one.server] = exc
        advance()
    return found


class _Preparation:
    def __init__(
        self,
        places: destinations.Destinations,
        barred: Set[str],
        leaving: Iterable[plans.Leaving],
    ) -> None:
        self._places, self._cloud = places, places.cloud
        self._barred = barred
        self._prepared: dict[object, movable.Migration] = {}
        self._servers = servers.Servers(places.cloud)
        self._wanted: dict[str, list[str]] = {}
        for one in leaving:
            self._wanted.setdefault(one.host, []).append(one.server)
        # The host that was read last, and its servers with their keys.
        self._host: str | None = None
        self._on: dict[str, tuple[servers.Stored, object]] = {}

    def make(self, one: plans.Leaving) -> movable.Migration:
        """Prepare a server.

        :raises admission.NotMovable: nova would not move it
        """
        if one.host != self._host:
            self._host, self._on = one.host, dict(self._read(one.host))
        known, alike = self._on.get(one.server, (None, None))
        if known and alike in self._prepared:
            return self._prepared[alike].for_like(known.instance)
        mine, key = movable.migrate(
            self._cloud, one.server, self._barred, known
        )
        mine.like = self._places.find_like(
            key, lambda: mine.spec_obj.obj_clone()
        )
        if mine.like and mine.like.is_whole:
            # Placement's answer numbers devices as that one.
            mine.spec_obj = mine.like.shared.spec_obj
            if alike is not None:
                self._prepared[alike] = mine
        return mine

    def _read(
        self, host: str
    ) -> Iterable[tuple[str, tuple[servers.Stored, object]]]:
        """Yield the servers of a host, each with what it is like by.

        That is None of one that may be like no other.
        """
        for cell in self._cloud.cells:
            shares = self._shares.get(cell)
            if shares is None or cell in self._cloud.silent_cells:
                continue
            try:
                found = [
                    *self._servers.read_stored(
                        cell, host, self._wanted[host], explain_server.ATTRS
                    )
                ]
                is_up = bool(found) and self._is_up(cell, host)
            except cells.CellFailed:
                # Each of its servers is asked about, and says that.
                continue
            for known in found:
                instance, _, text = known
                alike: object = None
                key = text and likeness.of_request(cell, instance, text)
                if key and key.is_whole and instance.uuid not in shares:
                    states = (getattr(instance, name) for name in _STATES)
                    built = instance.launched_at is not None
                    alike = key.text, is_up, built, *states
                yield instance.uuid, (known, alike)

    def _is_up(self, cell: str, host: str) -> bool:
        mapping = self._cloud.cells[cell]
        with self._cloud.target_cell(process.context(), mapping) as cctxt:
            try:
                service = objects.Service.get_by_compute_host(cctxt, host)
            except nova_exception.NotFound:
                return False
            return bool(servicegroup.API().service_is_up(service))

    @functools.cached_property
    def _shares(self) -> dict[str, set[str]]:
        return self._cloud.ask_cells(servers.select_shares)
