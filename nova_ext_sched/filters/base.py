#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""The shape that the host filters share: host states in, verdicts out."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
import typing

from nova.scheduler import filters
from nova.scheduler import utils
from oslo_log import log as logging

from nova_ext_sched.policy import verdict

LOG = logging.getLogger(__name__)

# Decides about one host. It must neither raise nor do I/O.
Judge = Callable[[typing.Any], verdict.Verdict]


class PolicyFilter(filters.BaseHostFilter):
    """A host filter that compiles the request once and then judges hosts.

    A subclass overrides :meth:`judge`. ``RUN_ON_REBUILD`` and
    ``run_filter_once_per_request`` mean what they mean to nova
    (nova.scheduler.filters.BaseHostFilter).
    """

    def judge(self, spec_obj: typing.Any) -> Judge | None:
        """Compile the request.

        :param spec_obj: a nova RequestSpec
        :returns: what judges a HostState, or None where the policy does not
            apply to the request and every host passes
        """
        raise NotImplementedError

    def filter_all(
        self, filter_obj_list: Iterable[typing.Any], spec_obj: typing.Any
    ) -> list[typing.Any]:
        """Return the hosts that pass, and log one line about the rest.

        The line is for DEBUG, and for INFO where no host is left, as nova's
        own line about that is.

        :param filter_obj_list: nova HostStates
        :param spec_obj: a nova RequestSpec
        """
        hosts = list(filter_obj_list)
        judge = self._judge_unless_skipped(spec_obj)
        if judge is None:
            return hosts
        reasons: collections.Counter[str] = collections.Counter()
        passed = self.sift(hosts, judge, reasons)
        if reasons:
            self._log_summary(len(hosts), reasons)
        return passed

    def sift(
        self,
        hosts: list[typing.Any],
        judge: Judge,
        reasons: collections.Counter[str],
    ) -> list[typing.Any]:
        """Judge every host.

        For :meth:`filter_all`; a subclass overrides it where it can tell of
        many hosts at once that they pass.

        :param hosts: nova HostStates
        :param judge: what :meth:`judge` returned
        :param reasons: gets the reason of each host that does not pass
        :returns: the hosts that pass, in their order
        """
        passed = []
        for host_state in hosts:
            passes, reason = judge(host_state)
            if passes:
                passed.append(host_state)
            else:
                reasons[reason] += 1
        return passed

    def host_passes(
        self, host_state: typing.Any, filter_properties: typing.Any
    ) -> bool:
        """Return whether one host passes; for callers that ask one by one."""
        judge = self._judge_unless_skipped(filter_properties)
        return judge is None or judge(host_state).passes

    def _judge_unless_skipped(self, spec_obj: typing.Any) -> Judge | None:
        # BaseHostFilter does this in _filter_one, a host at a time.
        if not self.RUN_ON_REBUILD and utils.request_is_rebuild(spec_obj):
            return None
        return self.judge(spec_obj)

    def _log_summary(
        self, total: int, reasons: collections.Counter[str]
    ) -> None:
        LOG.log(
            logging.DEBUG if reasons.total() < total else logging.INFO,
            '%(filter)s rejected %(rejected)d of %(total)d hosts: %(reasons)s',
            {
                'filter': type(self).__name__,
                'rejected': reasons.total(),
                'total': total,
                'reasons': '; '.join(
                    f'{count} because {reason}'
                    for reason, count in reasons.most_common(10)
                ),
            },
        )


class AggregatesFilter(PolicyFilter):
    """A host filter whose verdict depends on the host's aggregates alone.

    Hosts that share their set of aggregates share one verdict, computed once
    a request. Nothing is kept beyond the request, so an update of an
    aggregate in the scheduler's memory takes effect on the next one.
    """

    def judge_aggregates(
        self, spec_obj: typing.Any
    ) -> Callable[[list[typing.Any]], verdict.Verdict] | None:
        """Compile the request.

        :param spec_obj: a nova RequestSpec
        :returns: what judges a host's aggregates (a list of nova Aggregate
            objects), or None where the policy does not apply
        """
        raise NotImplementedError

    def judge(self, spec_obj: typing.Any) -> Judge | None:
        """See :meth:`PolicyFilter.judge`."""
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
