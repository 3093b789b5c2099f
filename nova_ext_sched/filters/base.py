# SPDX-License-Identifier: Apache-2.0

"""What the host filters share: host states in, verdicts out."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import typing

from nova.scheduler import filters
from nova.scheduler import utils
from oslo_log import log as logging

from nova_ext_sched import messages
from nova_ext_sched import request_state
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import fields

LOG = logging.getLogger(__name__)

# Decides about one host. It must neither raise nor do I/O.
Judge = Callable[[typing.Any], verdict.Verdict]

# Name and metadata of each aggregate of a host.
Described = list[tuple[str, Mapping[str, str]]]

# Decides about the aggregates of a host.
Decision = Callable[[Described], verdict.Verdict]


def policies_of(
    host_filter: filters.BaseHostFilter | type[filters.BaseHostFilter],
) -> tuple[declaration.Policy, ...]:
    """Return the policies that a host filter obeys, whoever wrote it.

    :param host_filter: one, or a class of it
    :returns: those of its attribute ``policies``; where it has none, one that
        has its name
    """
    cls = host_filter if isinstance(host_filter, type) else type(host_filter)
    return tuple(getattr(cls, 'policies', ())) or (
        declaration.undeclared(host_filter=cls.__name__),
    )


def judges_of(
    host_filter: filters.BaseHostFilter, spec_obj: typing.Any
) -> Iterator[tuple[declaration.Policy, Judge]]:
    """Yield what judges a host by each policy of a host filter.

    One that does not say more is asked whether a host passes, and counts for
    each of its policies.

    :param spec_obj: a nova RequestSpec
    """
    if isinstance(host_filter, PolicyFilter):
        yield from host_filter.judges(spec_obj)
        return

    refusal = verdict.reject(f'{type(host_filter).__name__} refuses it')

    def judge(host_state: typing.Any) -> verdict.Verdict:
        passed = host_filter.filter_all([host_state], spec_obj)
        # nova.filters: None stops the filtering, with no host.
        return verdict.PASS if list(passed or ()) else refusal

    for policy in policies_of(host_filter):
        yield policy, judge


class PolicyFilter(filters.BaseHostFilter):
    """A host filter that compiles the request once and then judges hosts.

    A subclass overrides :meth:`judge`; one that can judge many hosts faster
    than one by one overrides :meth:`judge_all` too.
    """

    #: The policies that it obeys, which the tools learn from here.
    policies: tuple[declaration.Policy, ...] = ()

    def judge(self, spec_obj: typing.Any) -> Judge | None:
        """Compile the request, a nova RequestSpec.

        :returns: what judges a HostState, or None if the policy does not
            apply to the request and every host passes
        """
        raise NotImplementedError

    def judges(
        self, spec_obj: typing.Any
    ) -> Iterator[tuple[declaration.Policy, Judge]]:
        """Yield what judges a host by each of the policies that apply.

        For tools, which tell the policies apart. One that has several
        policies overrides it.
        """
        judge = self.judge(spec_obj)
        if judge is not None:
            yield policies_of(self)[0], judge

    def prepare(self, ctxt: typing.Any, spec_obj: typing.Any) -> None:
        """Do what stage 1 does for this stage, where stage 1 did not run.

        For tools that judge a server where it stands. It may do I/O.
        """

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
        if rejected and any(one.counts_group for one in self.policies):
            request_state.refused.setdefault(spec_obj, {}).update(
                ((state.host, state.nodename), state) for state in rejected
            )
        level = logging.DEBUG if passed else logging.INFO
        if rejected and LOG.isEnabledFor(level):
            reasons = self.count_reasons(rejected, judge).most_common(10)
            LOG.log(
                level,
                '%s rejected %s of %s: %s',
                type(self).__name__,
                len(rejected),
                messages.count('host', len(hosts)),
                '; '.join(
                    f'{count} because {reason}' for reason, count in reasons
                ),
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

    def decisions(
        self, spec_obj: typing.Any
    ) -> Iterator[tuple[declaration.Policy, Decision]]:
        """Compile the request, a nova RequestSpec.

        :returns: what decides about a host's aggregates by each policy that
            applies to the request; a host must satisfy all of them
        """
        raise NotImplementedError

    def describe(self, aggregates: Iterable[typing.Any]) -> Described:
        """Return what the decisions see of nova Aggregate objects."""
        return fields.names_and_metadata(aggregates)

    def judge(self, spec_obj: typing.Any) -> Judge | None:
        decisions = [decision for _, decision in self.decisions(spec_obj)]
        return self._judge_by(decisions) if decisions else None

    def judges(
        self, spec_obj: typing.Any
    ) -> Iterator[tuple[declaration.Policy, Judge]]:
        for policy, decision in self.decisions(spec_obj):
            yield policy, self._judge_by([decision])

    def _judge_by(self, decisions: Sequence[Decision]) -> Judge:
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
                described = self.describe(aggregates)
                found = verdicts[key] = next(
                    (
                        refusal
                        for decide in decisions
                        if not (refusal := decide(described)).passes
                    ),
                    verdict.PASS,
                )
            return found

        return judge
