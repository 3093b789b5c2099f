# SPDX-License-Identifier: Apache-2.0

"""Where a server could go, after the moves that are planned."""

import copy
import typing

from nova import objects

from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import candidates
from nova_ext_sched.dryrun.decision import hosts
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.decision import stages
from nova_ext_sched.dryrun.plan import providers
from nova_ext_sched.queries import fields


class Destinations:
    """The hosts that a server may go to, by nova-scheduler's code.

    The hosts are read once, and placement is asked each query once.

    :param scheduler: its aggregates count, for our request filters too, and
        not those of the database
    :ivar moved: the hosts of the servers that moved, by their UUIDs
    :ivar providers: what placement says after that
    """

    def __init__(self, scheduler: snapshot.Snapshot) -> None:
        self.scheduler = scheduler
        self.moved: dict[str, str] = {}
        self.providers = providers.Providers(scheduler.placement)

    def find(self, mine: typing.Any) -> typing.Any:
        """Return where a server would go now: a HostState, or None.

        :param mine: a :class:`.movable.Movable`, or the like
        :raises Exception: as :meth:`judge`
        """
        source = self._find_source(mine)
        _, targets = self.judge(mine.spec_obj)
        allowed = (s for s in targets if mine.may_move_to(source, s))
        return next(allowed, None)

    def count(self, mine: typing.Any) -> int:
        """Return how many hosts it may go to now.

        :raises Exception: as :meth:`judge`
        """
        return len(self.judge(mine.spec_obj)[1])

    def explain(
        self, mine: typing.Any
    ) -> tuple[matrix.Matrix, list[typing.Any]]:
        """Return what :meth:`judge` does, with all that is refused, and why.

        :raises Exception: as :meth:`judge`
        """
        return self.judge(mine.spec_obj, whole=True)

    def _find_source(self, mine: typing.Any) -> typing.Any:
        """Return the HostState where a server is, None if there is none."""
        here = mine.instance.host, mine.instance.node
        states = self.scheduler.states.values()
        return next((s for s in states if (s.host, s.nodename) == here), None)

    def move(self, mine: typing.Any, target: typing.Any) -> None:
        """Move a server, as nova does: it takes first, and leaves then.

        :param target: what :meth:`find` returned
        """
        source = self._find_source(mine)
        uuid = mine.instance.uuid
        spec_obj = mine.spec_obj
        if spec_obj.instance_group is not None:
            # It becomes a member where it goes.
            spec_obj = spec_obj.obj_clone()
        request = target.allocation_candidates[0]
        taken = self._replace(target.uuid)
        claims.consume(taken, spec_obj, request, uuid)
        taken.instances[uuid] = objects.Instance(uuid=uuid)
        if source is not None:
            left = self._replace(source.uuid)
            claims.leave(left, spec_obj, mine.instance)
        self.providers.move(request, mine.held, source and source.uuid)
        self.moved[uuid] = target.host

    def _replace(self, host: str) -> typing.Any:
        """Put a copy of a host's state in its place; return the copy."""
        states = self.scheduler.states
        states[host] = claims.copy_state(states[host])
        return states[host]

    def judge(
        self, spec_obj: typing.Any, whole: bool = False
    ) -> tuple[matrix.Matrix, list[typing.Any]]:
        """Run a request through the scheduler's steps.

        :param spec_obj: a nova RequestSpec; a copy of it is judged
        :param whole: whether to say of each host why it is refused
        :returns: what refuses which hosts, and the nova HostStates left, the
            best first, with the allocation requests that fit
        :raises Exception: whatever nova or placement raise where the request
            cannot be judged
        """
        with change.used(self.scheduler.aggregates_copy, self.moved):
            return self._judge(spec_obj.obj_clone(), whole)

    def _judge(
        self, spec_obj: typing.Any, whole: bool
    ) -> tuple[matrix.Matrix, list[typing.Any]]:
        ctxt = process.context()
        self._correct_group(spec_obj)
        found = stages.start(self.scheduler, whole)
        offered = candidates.ask(
            self.scheduler,
            found,
            ctxt,
            spec_obj,
            self.providers,
            is_limited=False,
        )
        if offered is None:
            return found, []
        offered = self._leave_out_full(offered, found)
        judging = hosts.Hosts(self.scheduler, found, ctxt, spec_obj, offered)
        order = judging.judge()
        # A filter may have taken the candidates away.
        return found, [s for s in order if s.allocation_candidates]

    def _are_other(self) -> bool:
        """Return whether placement's answers lack what was taken."""
        return bool(self.moved)

    def _correct_group(self, spec_obj: typing.Any) -> None:
        """Let the request's group have its members where they moved."""
        group = fields.get_field(spec_obj, 'instance_group')
        if group is None or self.moved.keys().isdisjoint(group.members):
            return
        group.hosts = [
            state.host
            for state in self.scheduler.states.values()
            if not state.instances.keys().isdisjoint(group.members)
        ]

    def _leave_out_full(
        self, offered: placement.Candidates, judged: matrix.Matrix
    ) -> placement.Candidates:
        """Return the candidates that fit what the moves leave.

        :param judged: gets the hosts that are full then
        """
        if not self._are_other():
            return offered
        short = [self.providers.find_short(c) for c in offered.requests]
        requests = list(zip(offered.requests, short, strict=True))
        fitting = copy.copy(offered)
        fitting.requests = [one for one, names in requests if not names]
        remaining = query.by_provider(fitting.requests)
        full = {
            uuid: refusals.full(names)
            for one, names in requests
            for uuid in one['allocations']
            if uuid not in remaining
        }
        # nova takes from them which hosts there are.
        fitting.summaries = {
            uuid: summary
            for uuid, summary in offered.summaries.items()
            if uuid not in full
        }
        judged.add('placement', 'moves before this one', refused=full)
        return fitting
