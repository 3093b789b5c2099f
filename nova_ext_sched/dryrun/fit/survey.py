# SPDX-License-Identifier: Apache-2.0

"""Counts the servers of flavors that fit, in all groupings."""

import collections
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
import gc
import typing

from nova import exception as nova_exception
from nova import objects
import nova.conf

from nova_ext_sched import messages
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import selection
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import asking
from nova_ext_sched.dryrun.decision import candidates
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import hosts
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import orphaned
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.decision import remarks
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.fit import answer
from nova_ext_sched.dryrun.fit import count
from nova_ext_sched.dryrun.fit import tally

CONF = nova.conf.CONF

_MOST_ELSEWHERE = 5


Hosts = Sequence[dict[str, typing.Any]]


def count_all(
    cloud: snapshot.Snapshot,
    wanted: request.Question,
    flavors: Sequence[str] = (),
    by_host: bool = False,
    by: str | None = None,
    advance: progress.Advance = progress.silent,
) -> Iterator[tuple[answer.Tally, Hosts, bool]]:
    """Yield the tally so far after each flavor, and the whole one.

    The last one is whole; a caller that is interrupted has one before it.

    :param wanted: see :class:`Survey`; ``by_host`` and ``by`` too
    :param flavors: names or IDs; empty for every one that is not disabled
    :param advance: called after each flavor
    :returns: each with what :func:`..cloud.selection.make_documents` returned,
        and whether every enabled cell answered
    :raises exception.InvalidValue: what is named does not exist
    :raises placement.PlacementFailed: placement does not answer
    """
    survey = Survey(wanted, cloud, by_host, by)
    counted = survey.get_flavors(flavors)
    hosts = len(cloud.nodes)
    if counted and cloud.states:
        # These objects stay until the process ends. Python's garbage collector
        # would still look through them for a tenth of the time.
        gc.freeze()
    described: list[answer.RoomForFlavor] = []

    described_hosts = selection.make_documents(cloud)

    def build() -> tuple[answer.Tally, Hosts, bool]:
        found = tally.build(wanted, by, described, hosts, survey.remarks)
        is_complete = not cloud.doubts and not any(
            cell.uuid in cloud.silent_cells for cell in cloud.enabled_cells
        )
        return found, described_hosts, is_complete

    advance(total=len(counted))
    for flavor in counted:
        described.append(survey.count(flavor))
        advance()
        yield build()
    survey.look_for_orphaned()
    yield build()


@dataclasses.dataclass
class Survey:
    """Counts the servers that fit, for one flavor after the other.

    :param wanted: a new server, of no flavor
    :param cloud: reads the hosts, aggregates and cells once, when the
        first flavor is counted; several surveys may share it
    :param by_host: whether to describe the room of each host
    :param by: ``zone``, ``aggregate`` or ``domain`` to describe the room of
        each
    :ivar remarks: sentences about what could not be seen, each once
    :raises exception.InvalidValue: Glance does not show the image
    :raises request.GlanceFailed: it does not answer
    """

    wanted: request.Question
    cloud: snapshot.Snapshot
    by_host: bool = False
    by: str | None = None

    def __post_init__(self) -> None:
        self._ctxt = process.context(self.wanted.project)
        self._image = request.get_image(self._ctxt, self.wanted)
        self.remarks: dict[str, None] = {}
        self._full: orphaned.Lacking = {}
        # The same for every flavor.
        self._key_of_state = functools.cache(
            lambda uuid: likeness.key_of_state(self.cloud.states[uuid])
        )

    def get_flavors(self, names: Sequence[str]) -> list[typing.Any]:
        """Return nova Flavors by their IDs or names, each once.

        :param names: empty for every flavor that is not disabled, in the order
            of their names
        :raises exception.InvalidValue: there is none of a name
        """
        if not names:
            return sorted(
                objects.FlavorList.get_all(
                    self._ctxt, filters={'disabled': False}
                ),
                key=lambda flavor: messages.in_order(flavor.name),
            )
        found = [request.get_flavor(self._ctxt, name) for name in names]
        return list({flavor.flavorid: flavor for flavor in found}.values())

    def look_for_orphaned(self) -> None:
        """Add remarks on leaked allocations of full hosts.

        A host counts as it is for the first flavor that it is full for.

        :raises placement.PlacementFailed: placement does not answer
        """
        unheld, elsewhere = orphaned.find(self.cloud, self._full)
        if unheld:
            self.remarks[unheld.sentence] = None
        shown = elsewhere[:_MOST_ELSEWHERE]
        self.remarks |= dict.fromkeys(one.sentence for one in shown)
        if more := len(elsewhere) - len(shown):
            self.remarks[
                f'{more} more servers that run elsewhere hold allocations on '
                'full hosts: "nova-ext-sched explain -f json" names them'
            ] = None

    def count(self, flavor: typing.Any) -> answer.RoomForFlavor:
        """Count how many servers of a flavor fit.

        :raises placement.PlacementFailed: placement does not answer
        """
        try:
            counted = self._count(flavor)
        except reasons.FilterFailed as exc:
            counted = tally.Counted(flavor, fault=str(exc))
        return tally.make_document(
            counted, self.cloud.nodes if self.by_host else None, self._groups
        )

    @functools.cached_property
    def _groups(self) -> dict[str, set[str]] | None:
        """The UUIDs of hosts by zone, aggregate or domain (:attr:`by`)."""
        if not self.by:
            return None
        uuids_by_name: dict[str, set[str]] = collections.defaultdict(set)
        for uuid, host in self.cloud.nodes.items():
            aggregates = self.cloud.aggregates_of(host.host)
            names: Collection[str] = [one.name for one in aggregates]
            if self.by == 'zone':
                names = selection.zones_of(aggregates)
            elif self.by == 'domain':
                names = selection.domains_of(aggregates)
            for name in names or ('',):
                uuids_by_name[name].add(uuid)
        return uuids_by_name

    def _count(self, flavor: typing.Any) -> tally.Counted:
        counted = tally.Counted(flavor)
        try:
            spec_obj = request.build(
                self._ctxt, self.cloud, self.wanted, flavor, self._image
            )
            request.set_up_group(self._ctxt, spec_obj)
        except request.BadRequest as exc:
            counted.end = f'nova-api refuses it: {exc.got}'
            return counted
        except nova_exception.UnsupportedPolicyException as exc:
            counted.end = exc.format_message()
            return counted
        judged = asking.start(self.cloud)
        asked = asking.Asking(self.cloud, self._ctxt, spec_obj, judged)
        remarks.add(asked)
        self.remarks |= dict.fromkeys(judged.faults + judged.remarks)
        offered = candidates.ask(
            asked, with_scheduler_limit=False, with_placement_limit=False
        )
        if offered is None:
            self._end(counted, judged)
            return counted
        self._note_limit(offered)
        counted.judged = judged
        with self._weighing(spec_obj):
            order = hosts.Hosts(asked, offered).judge()
        self._full = orphaned.find_full(judged) | self._full
        rooms = count.Counts(
            self.cloud, spec_obj, order, offered, self._key_of_state
        )
        with self.cloud.fork() as future:
            counted.rooms = rooms.measure(future)
        counted.tied = rooms.tied
        if rooms.tied:
            is_grouped = spec_obj.instance_group is not None
            what = 'a server group' if is_grouped else 'what hosts share'
            self.remarks[
                f'How many servers each host gets depends on the order in '
                f'which the scheduler chooses hosts for {what}: only the sum '
                f'is counted'
            ] = None
        return counted

    def _end(self, counted: tally.Counted, judged: matrix.Matrix) -> None:
        """Note the end of a request before placement answered."""
        end = typing.cast(conclusion.End, judged.end)
        text = f'{end.name} ends the request: {end.reason}'
        if judged.failure is None:
            counted.end = text
        else:
            # nova creates no server either while that lasts.
            counted.judged = judged
            counted.fault = f'{text}: {messages.say_error(judged.failure)}'

    def _note_limit(self, offered: placement.Candidates) -> None:
        limit = CONF.scheduler.max_placement_results
        if len(offered.requests) > limit:
            self.remarks[
                'Nova takes at most '
                f'{messages.count("allocation candidate", limit)} per request '
                '(max_placement_results), and there are more: it can refuse a '
                'request although hosts have room'
            ] = None

        if offered.is_lifted:
            self.remarks[
                'Placement returns only some of the allocation candidates '
                '([placement] max_allocation_candidates in placement.conf): '
                'nova can refuse a request although hosts have room'
            ] = None

    @contextlib.contextmanager
    def _weighing(self, spec_obj: typing.Any) -> Iterator[None]:
        """Weigh hosts in the block if their order counts, for a group."""
        weighers = self.cloud.weighers
        if spec_obj.instance_group is None:
            self.cloud.weighers = []
        try:
            yield
        finally:
            self.cloud.weighers = weighers
