# SPDX-License-Identifier: Apache-2.0

"""Base classes of the host filters: take host states, yield verdicts."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import typing

from nova.scheduler import filters
from oslo_log import log as logging

from nova_ext_sched import exception
from nova_ext_sched import fields
from nova_ext_sched import log_once
from nova_ext_sched import messages
from nova_ext_sched import request_state
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import memo
from nova_ext_sched.policy import verdict

LOG = logging.getLogger(__name__)

LOG_ONCE = log_once.LogOnce(__name__)

# Decides about one host, a nova HostState. It must neither raise nor do I/O.
Judge = Callable[[typing.Any], verdict.Verdict]

Decision = tuple[declaration.Policy, Judge]


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


def decisions_of(
    host_filter: filters.BaseHostFilter, spec_obj: typing.Any
) -> Iterator[Decision]:
    """Yield each policy of a host filter, with its decision.

    One that does not say more is asked whether a host passes, and counts for
    each of its policies.

    :param spec_obj: a nova RequestSpec
    """
    if isinstance(host_filter, PolicyFilter):
        yield from host_filter.decisions(spec_obj)
        return

    refusal = verdict.reject(f'{type(host_filter).__name__} refuses it')

    def judge(host_state: typing.Any) -> verdict.Verdict:
        passed = host_filter.filter_all([host_state], spec_obj)
        # nova.filters: None stops the filtering, with no host.
        return verdict.PASS if list(passed or ()) else refusal

    for policy in policies_of(host_filter):
        yield policy, judge


class _Uncompiled:
    """A request that cannot be compiled: no host may take it."""

    def __init__(self, reason: str) -> None:
        self._refusal = verdict.reject(reason, lacks=True)

    def judge(self, aggregates: typing.Any) -> verdict.Verdict:
        return self._refusal

    def read(self, metadata: typing.Any) -> int:
        return 0

    def passes(self, bits: int) -> bool:
        return False


def compile_request(
    fn: Callable[[typing.Any], typing.Any],
    spec_obj: typing.Any,
    fault: str,
    log: log_once.LogOnce,
) -> typing.Any:
    """Compile a request as stage 1 does.

    :param fn: of stage 1
    :param fault: the effect of a failure, for the log
    :returns: what ``fn`` returns or, where it raises, what has the methods
        ``judge``, ``read`` and ``passes`` of a policy and refuses every host
    """
    try:
        return fn(spec_obj)
    except exception.RequestRefused as exc:
        # By what a member wrote.
        return _Uncompiled(exc.reason)
    except Exception as exc:
        reason = f'{fault}: {messages.say_error(exc)}'
        key = type(exc).__name__
    # Not in the clause: oslo.log would append the exception, uncleaned.
    log.warning(reason, key=key)
    return _Uncompiled(reason)


class ByAggregates:
    """Judges hosts by their aggregates alone.

    Hosts that share their set of aggregates share one verdict, computed once
    a request. Nothing is kept beyond the request, so an update of an
    aggregate in the scheduler's memory takes effect on the next one.

    ==========================================  ===========================
    aggregates of the host                      decision
    ==========================================  ===========================
    one without metadata in memory, whatever    rejected, with a warning
    the others say
    any, and ``left_out`` refuses the host      rejected
    any other                                   ``decide`` says
    ==========================================  ===========================

    :param decide: takes the nova Aggregates of a host; neither raises nor
        does I/O
    :param left_out: what stage 1 has read of hosts in the API database, and
        left out of the query; see :func:`left_out`
    """

    def __init__(
        self,
        decide: Callable[[Sequence[typing.Any]], verdict.Verdict],
        left_out: request_state.LeftOut | None = None,
    ) -> None:
        self._decide = decide
        self._left_out = left_out or request_state.LeftOut()
        self._verdicts: dict[tuple[int, ...], verdict.Verdict] = {}

    def __call__(self, host_state: typing.Any) -> verdict.Verdict:
        # The objects are those of the scheduler's in-memory map, shared by
        # the hosts, so identity tells them apart while the host states hold
        # them. Order may differ between hosts of one set: that costs a second
        # computation and no wrong answer.
        aggregates = host_state.aggregates
        key = tuple(map(id, aggregates))
        answer = self._verdicts.get(key)
        if answer is None:
            answer = _refuse_unread(aggregates) or self._decide(aggregates)
            self._verdicts[key] = answer
        if answer.passes and self._left_out:
            return _judge_left_out(self._left_out, host_state.host)
        return answer


class ByEachAggregate(ByAggregates):
    """Judges hosts by each of their aggregates on its own.

    Each aggregate is read once, into bits, and each combination of the bits
    of a host's aggregates is decided once. So it is as fast where every host
    has a set of aggregates of its own. ``decide`` is asked for the reasons
    alone.

    :param read: takes a nova Aggregate and its metadata, and returns what
        they mean as bits, which are combined by ``|``
    :param passes: whether a host may be used by the bits of its aggregates;
        the answer is that of ``decide``. Neither raises nor does I/O
    """

    # Every bit, so that no other aggregate lifts it.
    _UNREAD = -1

    def __init__(
        self,
        read: Callable[[typing.Any, Mapping[str, str]], int],
        passes: Callable[[int], bool],
        decide: Callable[[Sequence[typing.Any]], verdict.Verdict],
        left_out: request_state.LeftOut | None = None,
    ) -> None:
        super().__init__(decide, left_out)
        self._read = read
        # The aggregates are the objects of the scheduler's in-memory map,
        # shared by the hosts; nova compares them by identity.
        self._bits_of = memo.Memo(self._read_aggregate)
        self._passes = memo.Memo(passes)
        self._passes[self._UNREAD] = False

    def __call__(self, host_state: typing.Any) -> verdict.Verdict:
        if self._passes[self._combine(host_state)] and not self._left_out:
            return verdict.PASS
        return super().__call__(host_state)

    def split(
        self, hosts: list[typing.Any]
    ) -> tuple[list[typing.Any], list[typing.Any]]:
        """Return the hosts that pass, in their order, and the others."""
        passed: list[typing.Any] = []
        rejected: list[typing.Any] = []
        bits_of, passes = self._bits_of, self._passes
        # Written out: a call for each host would take longer than the rest.
        for host_state in hosts:
            bits = 0
            for aggregate in host_state.aggregates:
                bits |= bits_of[aggregate]
            (passed if passes[bits] else rejected).append(host_state)
        if self._left_out:
            out = self._left_out.refused({one.host for one in passed})
            rejected += [one for one in passed if one.host in out]
            passed = [one for one in passed if one.host not in out]
        return passed, rejected

    def bits(self, host_state: typing.Any) -> int | None:
        """Return the bits of a host; None if an aggregate cannot be read."""
        bits = self._combine(host_state)
        return None if bits == self._UNREAD else bits

    def _combine(self, host_state: typing.Any) -> int:
        bits = 0
        for aggregate in host_state.aggregates:
            bits |= self._bits_of[aggregate]
        return bits

    def _read_aggregate(self, aggregate: typing.Any) -> int:
        metadata = fields.read_metadata(aggregate)
        if metadata is None:
            # Here, because nobody asks for reasons where other hosts pass.
            _warn_unread(aggregate)
            return self._UNREAD
        return self._read(aggregate, metadata)


def left_out(
    spec_obj: typing.Any, policy: declaration.Policy
) -> request_state.LeftOut | None:
    """Return the aggregates that stage 1 left to a policy's host filter."""
    return request_state.of(spec_obj).left_out.get(policy.name)


def _judge_left_out(
    left_out: request_state.LeftOut, host: str
) -> verdict.Verdict:
    name = left_out.forbidden.get(host)
    if name is not None:
        return verdict.reject(
            f'aggregate {messages.clean(name)} is forbidden to the request by '
            f'the API database, and this nova-scheduler has not heard of it',
            aggregate=name,
        )
    for hosts, names in left_out.required:
        if host not in hosts:
            return verdict.reject(
                f'the host is in none of {names} by the API database, and '
                f'this nova-scheduler has not heard of it',
                lacks=True,
            )
    return verdict.PASS


def _refuse_unread(
    aggregates: Iterable[typing.Any],
) -> verdict.Verdict | None:
    for aggregate in aggregates:
        if fields.read_metadata(aggregate) is None:
            reason = _warn_unread(aggregate)
            return verdict.reject(
                reason, aggregate=fields.aggregate_name(aggregate)
            )
    return None


def _warn_unread(aggregate: typing.Any) -> str:
    # The reason, which is logged once for each aggregate.
    reason = (
        f'aggregate {messages.clean(fields.aggregate_name(aggregate))} has no '
        f'metadata in the memory of nova-scheduler, so nothing says who can '
        f'use it'
    )
    LOG_ONCE.warning(f'Hosts are rejected: {reason}')
    return reason


class PolicyFilter(filters.BaseHostFilter):
    """A host filter that compiles the request once and then judges hosts.

    A subclass overrides :meth:`decisions`.
    """

    #: The policies that it obeys, which the tools learn from here.
    policies: tuple[declaration.Policy, ...] = ()

    def decisions(self, spec_obj: typing.Any) -> Iterator[Decision]:
        """Compile the request, a nova RequestSpec.

        :returns: each policy that applies to the request, and what judges a
            HostState by it; a host must satisfy all of them. Where the host's
            aggregates alone decide, that is a :class:`ByAggregates`
        """
        raise NotImplementedError

    def prepare(self, ctxt: typing.Any, spec_obj: typing.Any) -> None:
        """Prepare a request as stage 1 does, where stage 1 did not run.

        For tools that judge a server where it stands. It may do I/O.
        """

    def filter_all(
        self, filter_obj_list: Iterable[typing.Any], spec_obj: typing.Any
    ) -> list[typing.Any]:
        """Return the hosts that pass, and log one line about the rest.

        The level is DEBUG, or INFO if no host is left, like nova's own line
        about that. The reasons are counted only if the line is logged; a
        :class:`ByEachAggregate` does not make them before.
        """
        hosts = list(filter_obj_list)
        # BaseHostFilter believes the hint, in _filter_one.
        if not self.RUN_ON_REBUILD and fields.is_rebuild(spec_obj):
            return hosts
        if fields.pretends_rebuild(spec_obj):
            _tell_of_hint(spec_obj)
        judges = [judge for _, judge in self.decisions(spec_obj)]
        if not judges:
            return hosts
        passed, rejected = _split(hosts, judges)
        if rejected and any(one.counts_group for one in self.policies):
            request_state.of(spec_obj).group.refused.update(
                ((state.host, state.nodename), state) for state in rejected
            )
        level = logging.DEBUG if passed else logging.INFO
        if rejected and LOG.isEnabledFor(level):
            reasons = self.count_reasons(rejected, judges).most_common(10)
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

    def count_reasons(
        self, rejected: list[typing.Any], judges: Sequence[typing.Any]
    ) -> collections.Counter[str]:
        """Return the number of rejected hosts by their first reason."""
        return collections.Counter(
            next(
                found.reason
                for judge in judges
                if not (found := judge(host_state)).passes
            )
            for host_state in rejected
        )


def _split(
    hosts: list[typing.Any], judges: Iterable[Judge]
) -> tuple[list[typing.Any], list[typing.Any]]:
    """Return the hosts that pass, in their order, and the others."""
    rejected: list[typing.Any] = []
    for judge in judges:
        if isinstance(judge, ByEachAggregate):
            hosts, refused = judge.split(hosts)
            rejected += refused
            continue
        passed: list[typing.Any] = []
        for host_state in hosts:
            passes = judge(host_state).passes
            (passed if passes else rejected).append(host_state)
        hosts = passed
    return hosts, rejected


def _tell_of_hint(spec_obj: typing.Any) -> None:
    project = fields.get_field(spec_obj, 'project_id')
    server = fields.get_field(spec_obj, 'instance_uuid')
    # No warning, which would raise an alert: a member writes the hint, and it
    # opens no host. Once for each project, however many servers it creates.
    LOG_ONCE.info(
        f'Server {messages.clean(server)} of project '
        f'{messages.clean(project)} has the scheduler hint '
        f'{fields.CHECK_TYPE}=rebuild, which only nova may write, and its '
        f'request is no rebuild. nova asked neither the request filters nor '
        f'placement. The host filters of nova-ext-sched judge every host for '
        f'it.',
        key=messages.clean(project),
    )
