# SPDX-License-Identifier: Apache-2.0

"""The shape that the host filters share: host states in, verdicts out."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import typing

from nova.scheduler import filters
from nova.scheduler import utils
from oslo_log import log as logging

from nova_ext_sched import faults
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
        return None if self._is_skipped(spec_obj) else self.judge(spec_obj)

    def _is_skipped(self, spec_obj: typing.Any) -> bool:
        # BaseHostFilter does this in _filter_one, a host at a time.
        return not self.RUN_ON_REBUILD and utils.request_is_rebuild(spec_obj)

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


class PooledDecision(typing.Protocol):
    """A policy's decision for one request, which depends on aggregates.

    The digests of a host's aggregates, combined by ``|``, are all that the
    answer depends on; 0 is that of a host without aggregates.
    """

    @property
    def request_faults(self) -> Sequence[str]:
        """What is malformed in the request: a sentence each."""

    def digest(self, metadata: Mapping[str, str]) -> int:
        """Return a bit set; odd where :meth:`faults` has something to say."""

    def passes(self, digest: int) -> bool:
        """Return whether a host with the combined digest passes."""

    def judge(
        self, aggregates: Iterable[tuple[str, Mapping[str, str]]]
    ) -> verdict.Verdict:
        """Return the same answer from names and metadata, with the reason."""

    def faults(self, name: str, metadata: Mapping[str, str]) -> Sequence[str]:
        """Return what is malformed in one aggregate: a sentence each."""


class PooledAggregatesFilter(PolicyFilter):
    """A host filter whose verdict depends on what each aggregate contributes.

    Where AggregatesFilter decides once for each set of aggregates, this one
    reads each aggregate once a request, judges each distinct outcome once and
    makes up reasons only where they are logged: it is as fast where every
    host has a set of its own. Nothing is kept beyond the request, so an
    update of an aggregate in the scheduler's memory takes effect on the next
    one.
    """

    #: Where the faults of request and aggregates go, each once.
    fault_log: faults.FaultLog

    def decide(self, spec_obj: typing.Any) -> PooledDecision | None:
        """Compile the request.

        :param spec_obj: a nova RequestSpec
        :returns: None where the policy does not apply
        """
        raise NotImplementedError

    def judge(self, spec_obj: typing.Any) -> Judge | None:
        """See :meth:`PolicyFilter.judge`."""
        decision = self.decide(spec_obj)
        if decision is None:
            return None
        self._warn(decision.request_faults)

        def judge(host_state: typing.Any) -> verdict.Verdict:
            digests = _Digests(decision)
            for aggregate in host_state.aggregates:
                digests[aggregate]
            self._warn(digests.faults)
            return decision.judge(names_and_metadata(host_state.aggregates))

        return judge

    def filter_all(
        self, filter_obj_list: Iterable[typing.Any], spec_obj: typing.Any
    ) -> list[typing.Any]:
        """See :meth:`PolicyFilter.filter_all`."""
        hosts = list(filter_obj_list)
        if self._is_skipped(spec_obj):
            return hosts
        decision = self.decide(spec_obj)
        if decision is None:
            return hosts
        digests = _Digests(decision)
        passes = _Passes(decision)
        passed: list[typing.Any] = []
        rejected: list[typing.Any] = []
        for host_state in hosts:
            digest = 0
            for aggregate in host_state.aggregates:
                digest |= digests[aggregate]
            (passed if passes[digest] else rejected).append(host_state)
        self._warn(decision.request_faults)
        self._warn(digests.faults)
        if rejected and LOG.isEnabledFor(
            logging.DEBUG if passed else logging.INFO
        ):
            self._log_summary(len(hosts), _count_reasons(decision, rejected))
        return passed

    def _warn(self, sentences: Iterable[str]) -> None:
        for sentence in sentences:
            self.fault_log.warn(f'{type(self).__name__}: {sentence}')


class _Digests(dict[typing.Any, int]):
    # The keys are the objects of the scheduler's in-memory map, shared by the
    # hosts; nova compares them by identity.

    def __init__(self, decision: PooledDecision) -> None:
        super().__init__()
        self.faults: list[str] = []
        self._decision = decision

    def __missing__(self, aggregate: typing.Any) -> int:
        metadata = aggregate.metadata
        digest = self[aggregate] = self._decision.digest(metadata)
        if digest & 1:
            self.faults += self._decision.faults(
                aggregate_name(aggregate), metadata
            )
        return digest


class _Passes(dict[int, bool]):
    def __init__(self, decision: PooledDecision) -> None:
        super().__init__()
        self._decision = decision

    def __missing__(self, digest: int) -> bool:
        passes = self[digest] = self._decision.passes(digest)
        return passes


def _count_reasons(
    decision: PooledDecision, rejected: list[typing.Any]
) -> collections.Counter[str]:
    reasons: collections.Counter[str] = collections.Counter()
    # Fields of nova's objects are slow to read, and where every host has a
    # set of its own there are many to read.
    read: dict[typing.Any, tuple[str, Mapping[str, str]]] = {}
    known: dict[frozenset[typing.Any], str] = {}
    for host_state in rejected:
        key = frozenset(host_state.aggregates)
        reason = known.get(key)
        if reason is None:
            for aggregate in key:
                if aggregate not in read:
                    read[aggregate] = (
                        aggregate_name(aggregate),
                        aggregate.metadata,
                    )
            reason = known[key] = decision.judge(
                [read[aggregate] for aggregate in key]
            ).reason
        reasons[reason] += 1
    return reasons


def names_and_metadata(
    aggregates: Iterable[typing.Any],
) -> list[tuple[str, Mapping[str, str]]]:
    """Return what policies judge of nova Aggregate objects."""
    return [(aggregate_name(agg), agg.metadata or {}) for agg in aggregates]


def aggregate_name(aggregate: typing.Any) -> str:
    """Return an aggregate's name for messages."""
    # nova's filters read no names, and do with objects that have none.
    return aggregate.name if 'name' in aggregate else 'without a name'
