# SPDX-License-Identifier: Apache-2.0

"""nova-scheduler's steps for one request, each asked what it takes away.

The steps are those of nova.scheduler.manager.SchedulerManager
(select_destinations, _schedule), run by nova's own functions. A claim in
placement is the one step that is not made.
"""

from collections.abc import Callable
from collections.abc import Collection
import typing

from nova.scheduler import utils

from nova_ext_sched import messages
from nova_ext_sched.explain import funnel
from nova_ext_sched.explain import hosts
from nova_ext_sched.explain import placement
from nova_ext_sched.explain import scheduler as explain_scheduler


class Explanation:
    """Explains requests, one at a time.

    :param scheduler: nova in this process
    :param detailed: UUIDs of compute nodes that every host filter is to
        judge, not only the first that refuses
    :param advance: called after each step
    """

    def __init__(
        self,
        scheduler: explain_scheduler.Scheduler,
        detailed: Collection[str] = (),
        advance: Callable[[], None] = lambda: None,
    ) -> None:
        self._scheduler = scheduler
        self._detailed = frozenset(detailed)
        self._advance = advance

    def explain(self, ctxt: typing.Any, spec_obj: typing.Any) -> funnel.Funnel:
        """Run a request through the scheduler's steps.

        :param ctxt: a nova RequestContext
        :param spec_obj: a nova RequestSpec, which changes as in the scheduler
        :raises faults.FilterFault: a filter raised what nova does not expect
        :raises faults.PlacementFault: placement does not answer
        """
        found = self._funnel()
        candidates = None
        if not utils.request_is_rebuild(spec_obj):
            asked = placement.Placement(self._scheduler, found, self._advance)
            candidates = asked.ask(ctxt, spec_obj)
            if candidates is None:
                return found
        judged = hosts.Hosts(
            self._scheduler, found, self._detailed, self._advance
        )
        judged.judge(ctxt, spec_obj, candidates)
        return found

    def end(self, stage: str, name: str, reason: str) -> funnel.Funnel:
        """Return the funnel of a request that never gets to the scheduler."""
        found = self._funnel()
        found.end(stage, name, reason)
        return found

    def _funnel(self) -> funnel.Funnel:
        found = funnel.Funnel(
            {uuid: host.name for uuid, host in self._scheduler.hosts.items()}
        )
        for name, reason in self._scheduler.silent_cells.items():
            found.remarks.append(
                f'The hosts of cell {messages.quote(name)} are not counted, '
                f'because its database does not answer: {reason}'
            )
        return found
