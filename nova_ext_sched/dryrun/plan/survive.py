# SPDX-License-Identifier: Apache-2.0

"""Which hosts may fail, so that every server on them finds another."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import gc
import typing

from nova_ext_sched import messages
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.dryrun.cloud import chosen
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.decision import server as explain_server
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import order
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import shared
from nova_ext_sched.dryrun.plan import spare


class Survey:
    """Lets hosts fail, one failure after the other.

    :param scheduler: what nova-scheduler has in memory
    :param flavors: names or IDs of those whose servers may still come
    :raises exception.InvalidValue: there is none of a name, or nova-api would
        refuse such a server
    :raises placement.PlacementFailed: placement does not answer
    """

    def __init__(
        self, scheduler: snapshot.Snapshot, flavors: Sequence[str] = ()
    ) -> None:
        self.scheduler = scheduler
        self._ctxt = process.context()
        self._servers = servers.Servers(scheduler)
        self._policies = policies.Policies(scheduler).on
        self._cells: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}
        for cell, counts in self._servers.count().items():
            for host, count in counts.items():
                self._cells.setdefault(host, []).append(cell)
                self._counts[host] = self._counts.get(host, 0) + count
        self._places = shared.Shared(scheduler)
        #: Each counts the servers of a flavor that may still come.
        self.spares = [
            spare.Spare(self._places, request.get_flavor(self._ctxt, name))
            for name in dict.fromkeys(flavors)
        ]
        # Whether nova-api evacuates a server, by its kind and state.
        self._checked: dict[object, movable.NotMovable | None] = {}

    def find(
        self, by: str, hosts: Collection[str], aggregates: Collection[str]
    ) -> tuple[dict[str, Set[str]], str]:
        """Return the hosts in use that fail at once, by name, and a remark.

        :param by: ``host`` or ``domain``
        :param hosts: names of the only ones that fail
        :param aggregates: names, UUIDs or IDs of those whose hosts fail
        :raises exception.InvalidValue: a host or aggregate does not exist
        """
        used = set(self._counts)
        if self.spares:
            # More servers come to others too.
            used |= {state.host for state in self.scheduler.states.values()}
        if hosts or aggregates:
            used &= chosen.find(self.scheduler, hosts, aggregates)
        if by == 'host':
            return {host: {host} for host in sorted(used)}, ''
        domains = chosen.group(self.scheduler)
        alone = used.difference(*domains.values())
        remark = ''
        if alone:
            are = messages.agree(len(alone), 'is', 'are')
            remark = f'{messages.count("host", len(alone))} {are} in no domain'
        return {
            name: members
            for name, members in sorted(domains.items())
            if used & members
        }, remark

    def fail(
        self,
        failures: Mapping[str, Set[str]],
        advance: progress.Advance = progress.silent,
    ) -> Iterator[plans.Failure]:
        """Yield what comes of each failure.

        :param failures: what :meth:`find` returned
        :param advance: called after each server
        :raises placement.PlacementFailed: placement does not answer
        """
        advance(
            total=sum(
                self._counts.get(host, 0)
                for hosts in failures.values()
                for host in hosts
            )
        )
        for name, hosts in failures.items():
            # A cell that stops answering is in the snapshot's faults.
            try:
                yield self._fail(name, hosts, advance)
            except cells.CellFailed:
                continue

    def _fail(
        self, name: str, hosts: Set[str], advance: Callable[[], object]
    ) -> plans.Failure:
        leaving: list[plans.Leaving] = []
        requests: dict[str, tuple[typing.Any, str, object]] = {}
        for host in sorted(hosts & self._cells.keys()):
            for cell in self._cells[host]:
                for instance, text in self._servers.read_stored(
                    cell, host, attrs=('info_cache',)
                ):
                    requests[instance.uuid] = (
                        instance,
                        cell,
                        shared.find_key(cell, instance, text),
                    )
                    leaving.append(plans.describe(instance, host))

        def prepare(uuid: str) -> shared.Evacuee:
            return self._prepare(*requests[uuid], hosts)

        self._places.begin(hosts)
        moving = order.Order(
            self.scheduler,
            self._policies,
            advance=advance,
            prepare=prepare,
            found=self._places,
            is_hardest_first=True,
        )
        plan = moving.make(leaving)
        for one in self.spares:
            one.check(name, hosts, moving.movables, len(plan.without_place))
        return plans.Failure(
            name, sorted(hosts), plan.moves, plan.without_place
        )

    def _prepare(
        self, instance: typing.Any, cell: str, key: object, hosts: Set[str]
    ) -> shared.Evacuee:
        """Return a server that nova-api lets be evacuated.

        :param key: equal for like requests; None where it is like no other
        :raises movable.NotMovable: nova-api would not evacuate it
        """
        state = key, instance.vm_state
        if key is None or state not in self._checked:
            self._checked[state] = None
            mapping = self.scheduler.cells[cell]
            try:
                with self.scheduler.target_cell(self._ctxt, mapping) as cctxt:
                    movable.check_evacuation(cctxt, instance)
            except movable.NotMovable as exc:
                self._checked[state] = exc
        if (problem := self._checked[state]) is not None:
            raise problem

        def make() -> typing.Any:
            mine = explain_server.Server(
                self.scheduler, self._ctxt, instance.uuid
            )
            mine.evacuate()
            return mine.spec_obj

        like = self._places.get_kind(key, make)
        spec_obj = like.spec_obj if like else make()
        if not like:
            spec_obj.ignore_hosts = sorted(hosts)
        return shared.Evacuee(instance.uuid, spec_obj, like)


def make(
    cloud: snapshot.Snapshot,
    flavors: Sequence[str] = (),
    by: str = 'host',
    hosts: Collection[str] = (),
    aggregates: Collection[str] = (),
    advance: progress.Advance = progress.silent,
) -> tuple[
    list[plans.Failure],
    list[dict[str, typing.Any]],
    Sequence[str],
    Sequence[str],
]:
    """Return what comes of failures.

    :param flavors: names or IDs of those whose servers may still come
    :param by: see :meth:`Survey.find`; ``hosts`` and ``aggregates`` too
    :param advance: called after each server
    :returns: it, what the document has of flavors, remarks, and what could
        not be read
    :raises exception.InvalidValue: what is named does not exist
    :raises placement.PlacementFailed: placement does not answer
    """
    survey = Survey(cloud, flavors)
    failures, remark = survey.find(by, hosts, aggregates)
    if failures and cloud.states:
        # They stay until the process ends; as capacity does.
        gc.freeze()
    found = [one for one in survey.fail(failures, advance) if one.servers]
    spares = [one.describe() for one in survey.spares]
    return found, spares, [f'{remark}.'] if remark else [], cloud.faults
