# SPDX-License-Identifier: Apache-2.0

"""What the host filters share: host states in, verdicts out."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
import typing

from nova.scheduler import filters
from nova.scheduler import utils
from oslo_log import log as logging

from nova_ext_sched import messages
from nova_ext_sched import request_state
from nova_ext_sched.policy import verdict

LOG = logging.getLogger(__name__)

# Decides about one host. It must neither raise nor do I/O.
Judge = Callable[[typing.Any], verdict.Verdict]


class PolicyFilter(filters.BaseHostFilter):
    """A host filter that compiles the request once and then judges hosts.

    A subclass overrides :meth:`judge`; one that can judge many hosts faster
    than one by one overrides :meth:`judge_all` too.
    """

    #: Whether it refuses hosts for what the request's server group has there.
    refuses_for_group = False

    def judge(self, spec_obj: typing.Any) -> Judge | None:
        """Compile the request, a nova RequestSpec.

        :returns: what judges a HostState, or None if the policy does not
            apply to the request and every host passes
        """
        raise NotImplementedError

    def filter_all(
        self, filter_obj_list: Iterable[typing.Any], spec_obj: typing.Any
    ) -> list[typing.Any]:
        """Return the hosts that pass, and log one line about the rest.

        The level is DEBUG, or INFO if no host is left, like nova's own line
        about that. The reasons are computed only if the line is logged.
        """
        hosts = list(filter_obj_list)
        # BaseHostFilter does this in _filter_one, a host at a time.
        if not self.RUN_ON_REBUILD and utils.request_is_rebuild(spec_obj):
            return hosts
        judge = self.judge(spec_obj)
        if judge is None:
            return hosts
        passed, rejected = self.judge_all(hosts, judge)
        if self.refuses_for_group and rejected:
            request_state.refused.setdefault(spec_obj, []).extend(rejected)
        level = logging.DEBUG if passed else logging.INFO
        if rejected and LOG.isEnabledFor(level):
            reasons = self.count_reasons(rejected, judge).most_common(10)
            LOG.log(
                level,
                '%(filter)s rejected %(rejected)d of %(hosts)s: %(reasons)s',
                {
                    'filter': type(self).__name__,
                    'rejected': len(rejected),
                    'hosts': messages.count('host', len(hosts)),
                    'reasons': '; '.join(
                        f'{count} because {reason}'
                        for reason, count in reasons
                    ),
                },
            )
        return passed

    def host_passes(
        self, host_state: typing.Any, filter_properties: typing.Any
    ) -> bool:
        """Return whether one host passes; for callers that ask one by one."""
        return bool(self.filter_all([host_state], filter_properties))

    def judge_all(
        self, hosts: list[typing.Any], judge: typing.Any
    ) -> tuple[list[typing.Any], list[typing.Any]]:
        """Return the hosts that pass and those that do not, in their order."""
        passed: list[typing.Any] = []
        rejected: list[typing.Any] = []
        for host_state in hosts:
            passes, _reason = judge(host_state)
            (passed if passes else rejected).append(host_state)
        return passed, rejected

    def count_reasons(
        self, rejected: list[typing.Any], judge: typing.Any
    ) -> collections.Counter[str]:
        """Return the number of rejected hosts by reason."""
        return collections.Counter(judge(host).reason for host in rejected)


class AggregatesFilter(PolicyFilter):
    """A host filter whose verdict depends on the host's aggregates alone.

    Hosts that share their set of aggregates share one verdict, computed once
    a request. Nothing is kept beyond the request, so an update of an
    aggregate in the scheduler's memory takes effect on the next one.
    """

    def judge_aggregates(
        self, spec_obj: typing.Any
    ) -> Callable[[list[typing.Any]], verdict.Verdict] | None:
        """Compile the request, a nova RequestSpec.

        :returns: what judges a host's aggregates (a list of nova Aggregate
            objects), or None if the policy does not apply
        """
        raise NotImplementedError

    def judge(self, spec_obj: typing.Any) -> Judge | None:
        decide = self.judge_aggregates(spec_obj)
        if decide is None:
            return None
        verdicts: dict[tuple[int, ...], verdict.Verdict] = {}

        def judge(host_state: typing.Any) -> verdict.Verdict:
            # The objects are those of the scheduler's in-memory map, shared
            # by the hosts, so identity tells them apart while the host states
            # hold them. Order may differ between hosts of one set: that costs
            # a second computation and no wrong answer.
            aggregates = host_state.aggregates
            key = tuple(map(id, aggregates))
            found = verdicts.get(key)
            if found is None:
                found = verdicts[key] = decide(aggregates)
            return found

        return judge
