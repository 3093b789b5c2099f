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
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import verdict

DECLARATION: declaration.Policy = declaration.Policy(
    name='blazar',
    summary='Hosts that Blazar manages take only requests of their leases.',
    refuses='are managed by Blazar',
    lacks='are in no pool that the request names',
    request_filter='blazar_reservations',
    host_filter='BlazarFilter',
    # The request filter does nothing without the host filter.
    wanted=lambda conf: (
        DECLARATION.host_filter in conf.filter_scheduler.enabled_filters
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

Metadata = Mapping[str, str | None]
Aggregates = Iterable[tuple[str, Metadata]]


class Resolution(typing.NamedTuple):
    """Which aggregates of a cloud a request must use, and which it must not.

    :ivar required: UUIDs; the host must be in one of them, unless empty
    :ivar forbidden: UUIDs
    :ivar unmet: why no host can take the request, else empty
    :ivar detail: more about that, for operators only: it tells of others
    """

    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    unmet: str = ''
    detail: str = ''


class Request(typing.Protocol):
    """A request under the rules.

    :ivar names: names of aggregates that :meth:`resolve` must know
    :ivar keys: the metadata keys that it must know of them
    :ivar zone_prefixes: it must know the zones with such a prefix too, and
        nothing else of the aggregates in them
    """

    @property
    def names(self) -> Collection[str]: ...

    @property
    def keys(self) -> Collection[str]: ...

    @property
    def zone_prefixes(self) -> Collection[str]: ...

    def judge(self, aggregates: Aggregates) -> verdict.Verdict:
        """Decide whether a host in these aggregates may take the request.

        :param aggregates: name and metadata of each, in the host's order
        """

    def resolve(
        self, items: Iterable[tuple[str, str, str | None, str | None]]
    ) -> Resolution:
        """Decide about all aggregates of a cloud, for the placement query.

        :param items: (UUID, name, key, value): at least those that
            ``names``, ``keys`` and ``zone_prefixes`` say; an aggregate
            without any of the keys has one whose key is None
        """


@dataclasses.dataclass(frozen=True)
class Rules:
    """What the operator's options say.

    :ivar zone_prefixes: of the zones of reservations' pools
    :ivar freepool: name of the aggregate of free hosts
    :ivar preemptible: name of the aggregate for preemptible servers
    :ivar allow_preemptibles: whether it takes any
    :ivar owner_key: metadata key of the project that owns a pool
    """

    zone_prefixes: tuple[str, ...] = ('blazar_', _OLD_ZONE_PREFIX)
    freepool: str = 'freepool'
    preemptible: str = 'freepool'
    allow_preemptibles: bool = False
    owner_key: str = 'blazar:owner'

    @classmethod
    def from_options(cls, options: typing.Any) -> 'Rules':
        """Return the rules of ``[blazar:physical:host]`` of nova.conf."""
        return cls(
            (options.blazar_az_prefix, _OLD_ZONE_PREFIX),
            options.aggregate_freepool_name,
            options.preemptible_aggregate,
            options.allow_preemptibles,
            options.blazar_owner,
        )

    def with_reservations(
        self, reservations: Collection[str], project_id: str | None
    ) -> Request:
        """Return a request with the hint.

        :param reservations: IDs, at least one
        """
        return _WithReservations(self, frozenset(reservations), project_id)

    def without_reservation(
        self, extra_specs: Mapping[str, str]
    ) -> Request | None:
        """Return a request without the hint; None where every host will do.

        :param extra_specs: of the flavor
        """
        if INSTANCE_RESERVATION in extra_specs:
            return None
        if self.allow_preemptibles and strutils.bool_from_string(
            extra_specs.get(PREEMPTIBLE)
        ):
            return _Preemptible(self)
        return _WithoutReservation(self)

    @property
    def named_pools(self) -> frozenset[str]:
        """The names by which pools are known."""
        return frozenset((self.freepool, self.preemptible))

    def why_pool(self, name: str, metadata: Metadata) -> Iterator[str]:
        """Yield in which ways an aggregate is a pool: none, one or two."""
        zone = metadata.get(ZONE)
        if zone and zone.startswith(self.zone_prefixes):
            yield f'in zone {messages.quoted(zone)}'
        if name in self.named_pools:
            kind = 'free hosts' if name == self.freepool else 'preemptibles'
            yield f'of {kind}'


@dataclasses.dataclass(frozen=True)
class _WithReservations:
    rules: Rules
    names: frozenset[str]
    project_id: str | None

    zone_prefixes: typing.ClassVar[tuple[str, ...]] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        mine = () if self.project_id is None else (self.project_id,)
        return (ZONE, self.rules.owner_key, *mine)

    def judge(self, aggregates: Aggregates) -> verdict.Verdict:
        for name, metadata in self._named(aggregates):
            if self._may_use(metadata):
                return verdict.PASS
            return verdict.reject(self._why_closed(name, metadata))
        return verdict.reject(
            f'no pool of Blazar that the host is in is named {self._wanted}'
        )

    def resolve(
        self, items: Iterable[tuple[str, str, str | None, str | None]]
    ) -> Resolution:
        pools = {
            uuid: aggregate
            for uuid, aggregate in _group(items).items()
            if list(self._named([aggregate]))
        }
        usable = frozenset(
            uuid
            for uuid, (_, metadata) in pools.items()
            if self._may_use(metadata)
        )
        if usable:
            return Resolution(required=usable)
        closed = sorted(self._why_closed(*pool) for pool in pools.values())
        return Resolution(
            unmet=f'no reservation that project '
            f'{messages.clean(self.project_id)} may use is named '
            f'{self._wanted}',
            detail='; '.join(closed)
            or f'no pool of Blazar is named {self._wanted}',
        )

    def _named(self, aggregates: Aggregates) -> Iterator[tuple[str, Metadata]]:
        for name, metadata in aggregates:
            if name in self.names and any(self.rules.why_pool(name, metadata)):
                yield name, metadata

    def _may_use(self, metadata: Metadata) -> bool:
        # A request without a project owns what nobody owns, as in
        # blazar-nova; nova's requests have a project.
        return self.project_id == metadata.get(self.rules.owner_key) or (
            self.project_id is not None and bool(metadata.get(self.project_id))
        )

    def _why_closed(self, name: str, metadata: Metadata) -> str:
        owner = metadata.get(self.rules.owner_key)
        whose = (
            f'has {messages.clean(self.rules.owner_key)}='
            f'{messages.clean(owner)}'
            if owner
            else f'has no {messages.clean(self.rules.owner_key)}'
        )
        return (
            f"Blazar's pool {messages.clean(name)} {whose} and no key for "
            f'project {messages.clean(self.project_id)}, which asks for it'
        )

    @property
    def _wanted(self) -> str:
        # A hint may be empty.
        return messages.first_few(sorted(self.names)) or "''"


@dataclasses.dataclass(frozen=True)
class _WithoutReservation:
    rules: Rules

    keys: typing.ClassVar[tuple[str, ...]] = (ZONE,)

    @property
    def names(self) -> frozenset[str]:
        return self.rules.named_pools

    @property
    def zone_prefixes(self) -> tuple[str, ...]:
        return self.rules.zone_prefixes

    def judge(self, aggregates: Aggregates) -> verdict.Verdict:
        for name, metadata in aggregates:
            for why in self.rules.why_pool(name, metadata):
                return verdict.reject(
                    f'aggregate {messages.clean(name)} is a pool of Blazar '
                    f'({why}) and the request names no reservation'
                )
        return verdict.PASS

    def resolve(
        self, items: Iterable[tuple[str, str, str | None, str | None]]
    ) -> Resolution:
        return Resolution(
            forbidden=frozenset(
                uuid
                for uuid, aggregate in _group(items).items()
                if any(self.rules.why_pool(*aggregate))
            )
        )


class _Preemptible(_WithoutReservation):
    def judge(self, aggregates: Aggregates) -> verdict.Verdict:
        pools = [
            (name, why)
            for name, metadata in aggregates
            for why in self.rules.why_pool(name, metadata)
        ]
        if [name for name, _ in pools] == [self.rules.preemptible]:
            return verdict.PASS
        wanted = (
            f'a preemptible server must be in aggregate '
            f'{messages.clean(self.rules.preemptible)} and no other pool of '
            f'Blazar; the host is in '
        )
        return verdict.reject(
            wanted
            + (
                messages.first_few(
                    [f'{messages.clean(n)} ({why})' for n, why in pools],
                    show=str,
                )
                or 'none'
            )
        )

    def resolve(
        self, items: Iterable[tuple[str, str, str | None, str | None]]
    ) -> Resolution:
        required = set()
        forbidden = set()
        for uuid, (name, metadata) in _group(items).items():
            ways = len(list(self.rules.why_pool(name, metadata)))
            if ways == 1 and name == self.rules.preemptible:
                required.add(uuid)
            elif ways:
                forbidden.add(uuid)
        if not required:
            return Resolution(
                unmet=f'no aggregate '
                f'{messages.clean(self.rules.preemptible)} takes preemptible '
                f'servers'
            )
        return Resolution(frozenset(required), frozenset(forbidden))


def _group(
    items: Iterable[tuple[str, str, str | None, str | None]],
) -> dict[str, tuple[str, dict[str, str | None]]]:
    found: dict[str, tuple[str, dict[str, str | None]]] = {}
    for uuid, name, key, value in items:
        metadata = found.setdefault(uuid, (name, {}))[1]
        if key is not None:
            metadata[key] = value
    return found
