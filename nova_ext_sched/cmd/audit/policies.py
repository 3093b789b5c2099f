# SPDX-License-Identifier: Apache-2.0

"""The policies that are on, each with the scheduler's own decision."""

from collections.abc import Sequence
import typing

import nova.conf

from nova_ext_sched import exception
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.audit import servers
from nova_ext_sched.conf import blazar as conf
from nova_ext_sched.filters import aggregate_instance_type
from nova_ext_sched.filters import base
from nova_ext_sched.filters import blazar
from nova_ext_sched.filters import failure_domain
from nova_ext_sched.filters import isolated_aggregates
from nova_ext_sched.filters import server_group_anti_affinity
from nova_ext_sched.policy import failure_domains
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import fields
from nova_ext_sched.queries import group_members
from nova_ext_sched.request_filters import failure_domains as request_filter
from nova_ext_sched.request_filters import reserved_aggregates

CONF = nova.conf.CONF


class Policy:
    """One policy of the scheduler.

    A subclass names the policy and the filters that obey it; one of them is
    enough to keep a request out. One whose host filter needs more than a host
    (the other hosts of a server group, say) overrides :meth:`judge`.

    :param ctxt: a nova RequestContext of an administrator
    :param scheduler: its aggregates count, not those of the database
    """

    #: What operators call it.
    name: typing.ClassVar[str]
    #: The host filter that decides.
    host_filter: typing.ClassVar[type[base.PolicyFilter]]
    #: As ``[nova_ext_sched] request_filters`` names it.
    request_filter: typing.ClassVar[str | None] = None
    #: Said before the filter's reason, where that leaves the server out.
    introduction: typing.ClassVar[str] = ''

    def __init__(
        self, ctxt: typing.Any, scheduler: nova_scheduler.ReadOnlyHostManager
    ) -> None:
        self._ctxt = ctxt
        self._scheduler = scheduler
        self._filter = self.host_filter()

    @classmethod
    def is_on(cls) -> bool:
        """Return whether the scheduler obeys the policy, by nova.conf."""
        return (
            cls.host_filter.__name__ in CONF.filter_scheduler.enabled_filters
            or cls.request_filter in CONF.nova_ext_sched.request_filters
        )

    def judge(self, server: servers.Server) -> verdict.Verdict:
        """Decide whether a server may stand where it does.

        :param server: one whose ``request_spec`` is known
        """
        judge = self._filter.judge(server.request_spec)
        if judge is None:
            return verdict.PASS
        passes, reason = judge(server.host_state)
        return verdict.Verdict(passes, self.introduction + reason)


class Isolation(Policy):
    """Isolated aggregates: one half of what the filter judges."""

    name = 'isolation'
    host_filter = isolated_aggregates.IsolatedAggregatesFilter
    request_filter = 'isolate_aggregates'

    @classmethod
    def is_on(cls) -> bool:
        return (
            CONF.nova_ext_sched.enable_isolated_aggregate_filtering
            and super().is_on()
        )

    def judge(self, server: servers.Server) -> verdict.Verdict:
        decide = self._filter.compile_isolation(server.request_spec)
        return decide(fields.names_and_metadata(server.host_state.aggregates))


class Reservation(Policy):
    """Reserved aggregates: the other half."""

    name = 'reservation'
    host_filter = isolated_aggregates.IsolatedAggregatesFilter
    request_filter = 'reserved_aggregates'

    @classmethod
    def is_on(cls) -> bool:
        return bool(reserved_aggregates.rules().prefixes) and super().is_on()

    def judge(self, server: servers.Server) -> verdict.Verdict:
        decide = self._filter.compile_reservation(server.request_spec)
        return decide(fields.names_and_metadata(server.host_state.aggregates))


class AggregateInstanceType(Policy):
    """The flavor/aggregate language."""

    name = 'aggregate-instance-type'
    host_filter = aggregate_instance_type.AggregateInstanceTypeFilter


class AntiAffinity(Policy):
    """Anti-affinity with its rules; every server of a full host is found."""

    name = 'anti-affinity'
    host_filter = server_group_anti_affinity.ServerGroupAntiAffinityFilter
    introduction = 'not counting this server, '


class FailureDomain(Policy):
    """Failure domains; each server of a domain that holds too many is found.

    The filter knows the candidates of one request. Here the members of the
    group are counted by what the request filter counts them with, in the
    aggregates of the scheduler's memory.
    """

    name = 'failure-domain'
    host_filter = failure_domain.FailureDomainFilter
    request_filter = 'failure_domains'
    introduction = 'not counting this server, '

    def judge(self, server: servers.Server) -> verdict.Verdict:
        spec = server.request_spec
        try:
            limit = request_filter.read_limit(spec)
        except exception.InvalidValue as exc:
            return verdict.reject(str(exc))
        if limit is None:
            return verdict.PASS
        group = spec.instance_group
        hosts = group_members.get_hosts(
            self._ctxt, set(group.members) - {server.uuid}
        )
        by_host = {
            host: [agg.metadata for agg in self._scheduler.aggregates_of(host)]
            for host in frozenset[str]().union(*hosts.values())
        }
        key = CONF.nova_ext_sched.failure_domain_key
        count = failure_domains.count_members(hosts, by_host, key)
        spread = failure_domains.Spread(group.uuid, limit, key, count)
        passes, reason = spread.judge(
            failure_domains.read_domains(
                (agg.metadata for agg in server.host_state.aggregates), key
            )
        )
        return verdict.Verdict(passes, self.introduction + reason)


class Blazar(Policy):
    """Hosts that Blazar manages."""

    name = 'blazar'
    host_filter = blazar.BlazarFilter

    @classmethod
    def is_on(cls) -> bool:
        # Its request filter does nothing without the host filter.
        return conf.is_on(CONF)


#: Every policy, in the order in which findings are shown.
ALL: Sequence[type[Policy]] = (
    Isolation,
    Reservation,
    AggregateInstanceType,
    AntiAffinity,
    FailureDomain,
    Blazar,
)


def enabled(names: Sequence[str] = ()) -> list[type[Policy]]:
    """Return the policies that are on.

    :param names: those to return; by default all
    """
    return [
        policy
        for policy in ALL
        if policy.is_on() and (not names or policy.name in names)
    ]
