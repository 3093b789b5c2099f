# SPDX-License-Identifier: Apache-2.0

"""Hosts that Blazar manages: who may use them.

Gives the answers of ``BlazarFilter`` of blazar-nova 10.0.0, and follows what
Blazar 18.0.0 writes to aggregates (blazar.plugins.oshosts.host_plugin,
blazar.utils.openstack.nova). Blazar keeps each host that it manages in one of
its pools, which are aggregates:

======================  =====================================================
pool                    how it is known (option of ``[blazar:physical:host]``)
======================  =====================================================
of a host reservation   zone ``blazar_<id>`` (``blazar_az_prefix``), or the
                        old form ``blazar:<id>``; its name is the ID
of free hosts           name ``freepool`` (``aggregate_freepool_name``)
of preemptible servers  name ``freepool`` (``preemptible_aggregate``)
======================  =====================================================

A request names pools with the scheduler hint ``reservation``: one ID or
several. A project may use a pool whose ``blazar:owner`` (``blazar_owner``) it
is, or that has a metadata key of the project's ID with any value but an empty
one (Blazar writes ``<project>=blazar:project``):

=======================  ==========================  ========================
request                  pools of the host           decision
=======================  ==========================  ========================
no hint                  none                        allowed
no hint                  any                         forbidden
hint a                   none                        forbidden
hint a                   b                           forbidden
hint a                   a, the project may use it   allowed
hint a                   a, of another project       forbidden
hint a                   a and b                     as with a alone
hints a and b            one of them                 as with that one alone
hints a and b            both                        as with the one that
                                                     comes first in the host
flavor of an instance    any                         allowed: its extra specs
reservation, no hint                                 and resources decide
preemptible flavor, no   that of preemptible         allowed
hint, option on          servers alone
preemptible flavor, no   none, or any other          forbidden
hint, option on
preemptible flavor, no   any                         as without the extra
hint, option off                                     spec
=======================  ==========================  ========================

The flavor of an instance reservation has the extra spec
``aggregate_instance_extra_specs:reservation``; a preemptible flavor has
``blazar:preemptible=true``; the option is ``allow_preemptibles``. A pool that
is known in both ways, by zone and by name, counts as two.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import typing

from oslo_utils import strutils

from nova_ext_sched import messages
from nova_ext_sched.policy import act
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import verdict

HOST_FILTER = 'BlazarFilter'

DECLARATION = declaration.Policy(
    name='blazar',
    summary='Hosts that Blazar manages take only requests of their leases.',
    refuses='are managed by Blazar',
    lacks='are in no pool that the request names',
    closes=True,
    acts=(
        act.Act(
            act.POLICY,
            'remove {hosts} from Blazar',
            act.LEAVES,
            admits='requests without a lease',
            # Blazar would put it back.
            by_command=False,
        ),
    ),
    acts_lacking=(
        act.Act(
            act.POLICY,
            'add {hosts} to a reservation that the request names',
            by_command=False,
        ),
    ),
    request_filter='blazar_reservations',
    host_filter=HOST_FILTER,
    # The request filter does nothing without the host filter.
    turned_on=lambda conf: (
        HOST_FILTER in conf.filter_scheduler.enabled_filters
    ),
    without_request_filter='placement is not asked to leave reserved hosts '
    'out, and a server whose host an administrator forces lands on a '
    'reserved one',
)

#: The scheduler hint that names reservations.
HINT = 'reservation'

INSTANCE_RESERVATION = 'aggregate_instance_extra_specs:reservation'
PREEMPTIBLE = 'blazar:preemptible'

ZONE = 'availability_zone'
# Of Blazar's first releases; no option names it.
_OLD_ZONE_PREFIX = 'blazar:'


@dataclasses.dataclass(frozen=True)
class Request:
    """A request's reservations and project, compiled for Blazar's pools.

    :ivar reservations: the pools that it names; without any it names none
    :ivar preemptible: whether it is for a preemptible server

    The rest is what the operator's options say.

    :ivar pool_zones: prefixes of the zones of reservations' pools
    :ivar freepool: name of the aggregate of free hosts
    :ivar spot: name of the aggregate for preemptible servers
    :ivar owner_key: metadata key of the project that owns a pool
    """

    reservations: frozenset[str]
    project_id: str | None
    preemptible: bool
    pool_zones: tuple[str, ...]
    freepool: str
    spot: str
    owner_key: str

    @classmethod
    def compile(
        cls,
        options: typing.Any,
        reservations: Collection[str],
        extra_specs: Mapping[str, str],
        project_id: str | None = None,
    ) -> 'Request | None':
        """Compile a request; None if it can use every host.

        :param options: ``[blazar:physical:host]`` of nova.conf
        :param reservations: IDs, of the hint
        :param extra_specs: of the flavor; they matter without the hint
        """
        if not reservations and INSTANCE_RESERVATION in extra_specs:
            return None
        return cls(
            frozenset(reservations),
            project_id,
            not reservations
            and options.allow_preemptibles
            and strutils.bool_from_string(extra_specs.get(PREEMPTIBLE)),
            (options.blazar_az_prefix, _OLD_ZONE_PREFIX),
            options.aggregate_freepool_name,
            options.preemptible_aggregate,
            options.blazar_owner,
        )

    @property
    def names(self) -> Collection[str]:
        """Names of all aggregates that :meth:`resolve` must get."""
        return self.reservations or {self.freepool, self.spot}

    @property
    def zone_prefixes(self) -> tuple[str, ...]:
        """Prefixes of the zones that :meth:`resolve` must get."""
        return () if self.reservations else self.pool_zones

    def judge(
        self, aggregates: Iterable[verdict.Aggregate]
    ) -> verdict.Verdict:
        """Decide whether a host in these aggregates may take the request.

        :param aggregates: name and metadata of each, in the host's order
        """
        pools = [
            (name, metadata, why)
            for name, metadata in aggregates
            for why in self._why_pool(name, metadata)
        ]
        if self.reservations:
            for name, metadata, _ in pools:
                if name in self.reservations:
                    if self._may_use(metadata):
                        return verdict.PASS
                    return verdict.reject(
                        self._why_closed(name, metadata), aggregate=name
                    )
            return verdict.reject(
                f'no pool of Blazar that the host is in is named '
                f'{self._wanted}',
                lacks=True,
            )
        if self.preemptible:
            if [name for name, *_ in pools] == [self.spot]:
                return verdict.PASS
            shown = [
                f'{messages.clean(name)} ({why})' for name, _, why in pools
            ]
            return verdict.reject(
                f'a preemptible server must be in aggregate '
                f'{messages.clean(self.spot)} and no other pool '
                f'of Blazar; the host is in '
                + (messages.first_few(shown, show=str) or 'none'),
                aggregate=next(
                    (name for name, *_ in pools if name != self.spot), ''
                ),
                lacks=not pools,
            )
        for name, _, why in pools:
            return verdict.reject(
                f'aggregate {messages.clean(name)} is a pool of Blazar '
                f'({why}) and the request names no reservation',
                aggregate=name,
            )
        return verdict.PASS

    def resolve(self, items: Iterable[verdict.Item]) -> verdict.Resolution:
        """Decide about all aggregates of a cloud, for the placement query.

        :param items: at least those that :attr:`names` and
            :attr:`zone_prefixes` say
        """
        required, forbidden, closed = set(), set(), []
        for uuid, aggregate in verdict.group_items(items).items():
            judged = self.judge([aggregate])
            if judged.passes:
                required.add(uuid)
            elif any(self._why_pool(*aggregate)):
                forbidden.add(uuid)
                if aggregate[0] in self.reservations:
                    closed.append(judged.reason)
        if not self.reservations and not self.preemptible:
            return verdict.Resolution(forbidden=forbidden)
        if required:
            # Of reservations, others' pools may hold the host too.
            return verdict.Resolution(
                [required], () if self.reservations else forbidden
            )
        if self.reservations:
            return verdict.Resolution(
                unmet=f'no reservation that project '
                f'{messages.clean(self.project_id)} may use is named '
                f'{self._wanted}',
                detail='; '.join(sorted(closed))
                or f'no pool of Blazar is named {self._wanted}',
                by_member=True,
            )
        return verdict.Resolution(
            unmet=f'no aggregate {messages.clean(self.spot)} '
            f'takes preemptible servers'
        )

    def _why_pool(
        self, name: str, metadata: verdict.Metadata
    ) -> Iterator[str]:
        # In which ways an aggregate is a pool: none, one or two.
        zone = metadata.get(ZONE)
        if zone and zone.startswith(self.pool_zones):
            yield f'in zone {messages.quoted(zone)}'
        if name in (self.freepool, self.spot):
            kind = 'free hosts' if name == self.freepool else 'preemptibles'
            yield f'of {kind}'

    def _may_use(self, metadata: verdict.Metadata) -> bool:
        # A request without a project owns what nobody owns, as in
        # blazar-nova; nova's requests have a project.
        return self.project_id == metadata.get(self.owner_key) or (
            self.project_id is not None and bool(metadata.get(self.project_id))
        )

    def _why_closed(self, name: str, metadata: verdict.Metadata) -> str:
        key = messages.clean(self.owner_key)
        owner = metadata.get(self.owner_key)
        whose = (
            f'has {key}={messages.clean(owner)}' if owner else f'has no {key}'
        )
        return (
            f"Blazar's pool {messages.clean(name)} {whose} and no key for "
            f'project {messages.clean(self.project_id)}, which asks for it'
        )

    @property
    def _wanted(self) -> str:
        # A hint may be empty.
        return messages.first_few(sorted(self.reservations)) or "''"
