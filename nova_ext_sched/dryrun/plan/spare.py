# SPDX-License-Identifier: Apache-2.0

"""How many more servers of a flavor may come, so that hosts can fail as now.

The servers come in a fork, each to the host that the scheduler prefers then,
until none fits. In it each failure is evacuated again, the new servers of its
hosts too. Where more servers are stranded than without them, fewer may come.
"""

from collections.abc import Iterator
from collections.abc import Sequence
from collections.abc import Set
import contextlib
import dataclasses
import typing

from nova import objects
from oslo_utils import uuidutils

from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.decision import document
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.decision import question
from nova_ext_sched.dryrun.decision import remarks
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.plan import answers
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import order
from nova_ext_sched.dryrun.plan import plans

# Servers that are counted at most, as each is placed, and evacuated too.
_MOST = 2000


class Evacuated(typing.NamedTuple):
    """A failure that was evacuated as the cloud is now.

    :ivar hosts: names of those that fail
    :ivar movables: each server on them, or why nova does not evacuate it
    :ivar stuck: the UUIDs of those that find no host
    """

    failure: str
    hosts: Set[str]
    movables: order.Movables
    stuck: Set[str]


class Spare:
    """The servers of a flavor that may come.

    :param places: where servers may go
    :param flavor: nova's
    :param project: the ID of the one that asks for them; None for no one
    :raises exception.InvalidValue: nova-api would refuse such a server
    :raises placement.PlacementFailed: placement does not answer
    """

    def __init__(
        self,
        places: destinations.Destinations,
        flavor: typing.Any,
        project: str | None = None,
    ) -> None:
        self._places, self._flavor = places, flavor
        ctxt = process.context(project)
        wanted = question.Question(project=project)
        image = request.get_image(ctxt, wanted)
        places.begin(frozenset())
        spec_obj = request.build(ctxt, places.cloud, wanted, flavor, image)
        self._shared = places.make_shared(spec_obj)
        self._is_known = likeness.are_known(
            places.cloud.enabled_filters, spec_obj
        )
        self._by_cell: dict[str, answers.Shared] = {}
        # The UUID of each, and the HostState where it goes.
        self._came: list[tuple[str, typing.Any]] = []
        with places.cloud.fork() as future:
            while len(self._came) < _MOST:
                mine = self._prepare(uuidutils.generate_uuid())
                target = places.find(mine)
                if target is None or not self._come(future, mine.uuid, target):
                    break
                self._came.append((mine.uuid, target))
        self._number, self._failure = len(self._came), ''
        self._reason, self._cause = '', ''
        if not self._came:
            spec_obj = self._shared.spec_obj
            judged, _ = places.judge(spec_obj, whole=True)
            remarks.add(places.cloud, judged, 'boot', spec_obj, None)
            answer = document.build(judged, {}, detailed=())['answer']
            self._reason = answer['sentence'].rstrip('.')
            self._cause = answer['cause'] or ''

    def check(self, failures: Sequence[Evacuated]) -> None:
        """Lower the number to one with which each failure is as it is now."""
        left = list(failures)
        while left and self._number:
            with self._growing(self._number):
                while left and self._is_as_now(left[0], self._number):
                    del left[0]
            if left:
                self._number, self._failure = self._lower(left[0]), left[0][0]

    def _come(self, future: fork.Fork, uuid: str, target: typing.Any) -> bool:
        return future.come(uuid, self._shared.spec_obj, target)

    def _lower(self, one: Evacuated) -> int:
        low, high = 0, self._number
        while high - low > 1:
            number = (low + high) // 2
            with self._growing(number):
                is_as_now = self._is_as_now(one, number)
            low, high = (number, high) if is_as_now else (low, number)
        return low

    @contextlib.contextmanager
    def _growing(self, number: int) -> Iterator[fork.Fork]:
        """Let servers come."""
        with self._places.cloud.fork() as future:
            for uuid, target in self._came[:number]:
                self._come(future, uuid, target)
            yield future

    def _is_as_now(self, one: Evacuated, number: int) -> bool:
        places, movables = self._places, dict(one.movables)
        for uuid, target in self._came[:number]:
            if target.host in one.hosts:
                movables[uuid] = self._prepare(uuid, target.cell_uuid)
        places.begin(one.hosts)
        leaving = order.put_hardest_first(
            (plans.Leaving(uuid, '', '', '', []) for uuid in movables),
            movables,
            places.count,
        )
        with places.cloud.fork() as future:
            plan = order.Order(places, movables).make(future, leaving)
        none = {stuck.server for stuck in plan.without_place}
        if len(none) <= len(one.stuck):
            return True
        # Those that are gone since count neither then nor now.
        deleted = gone.find(places.cloud, none & one.movables.keys())
        return len(none - deleted) <= len(one.stuck - deleted)

    def _prepare(self, uuid: str, cell: str = '') -> movable.Evacuation:
        """Return a server that comes, or one that leaves a host of a cell."""
        shared = self._shared
        if not self._is_known:
            spec_obj = shared.spec_obj.obj_clone()
            spec_obj.instance_uuid = uuid
            if cell:
                spec_obj.requested_destination = objects.Destination(
                    cell=self._places.cloud.cells[cell]
                )
            return movable.Evacuation(uuid, spec_obj, None)
        if cell:
            # nova evacuates no server to a host of another cell.
            if cell not in self._by_cell:
                states = self._places.cloud.states
                requests = {
                    host: found
                    for host, found in shared.requests.items()
                    if states[host].cell_uuid == cell
                }
                self._by_cell[cell] = dataclasses.replace(
                    shared, requests=requests
                )
            shared = self._by_cell[cell]
        like = answers.Like(shared, is_whole=True)
        return movable.Evacuation(uuid, shared.spec_obj, like)

    def describe(self) -> dict[str, typing.Any]:
        """Return what the document has of it."""
        return {
            'id': self._flavor.flavorid,
            'name': messages.clean(self._flavor.name),
            'fit': len(self._came),
            'or_more': len(self._came) >= _MOST,
            'spare': self._number,
            'failure': messages.clean(self._failure),
            'reason': self._reason,
            'cause': self._cause,
        }
