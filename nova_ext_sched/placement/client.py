# SPDX-License-Identifier: Apache-2.0

"""A client of the placement API, for tools that run without nova."""

from collections.abc import Callable
from collections.abc import Iterable
import random
import time
import typing

from oslo_config import cfg

from nova_ext_sched import exception
from nova_ext_sched.placement import errors
from nova_ext_sched.placement import loading
from nova_ext_sched.placement import microversion
from nova_ext_sched.placement import reading
from nova_ext_sched.placement import values
from nova_ext_sched.policy import syntax

Current = typing.TypeVar(
    'Current', values.ProviderTraits, values.ProviderAggregates
)
Feature = microversion.Feature

# How often a change is tried from a fresh read, and the longest wait before
# the second try, in seconds; it grows with each.
_ATTEMPTS = 8
_WAIT = 0.1


class PlacementClient(reading.Reader):
    """Reads and changes what placement knows.

    Every method raises an error of :mod:`nova_ext_sched.placement.errors`
    that names the request, and exception.InvalidValue for an argument that
    placement would refuse. A request that the server's microversion cannot
    express is refused before it is sent. May be used by several threads.

    :param adapter: a keystoneauth1.adapter.Adapter for placement, with its
        retries and credentials
    :param credentials: where the credentials come from, for errors
    """

    @classmethod
    def from_conf(
        cls, conf: cfg.ConfigOpts, group: str = 'placement'
    ) -> 'PlacementClient':
        """Return a client for the section ``[placement]`` of nova.conf.

        :param conf: has read nova.conf; the options are registered here
        :raises exception.InvalidValue: an option is missing or wrong
        """
        return cls(loading.from_conf(conf, group), f'[{group}] of nova.conf')

    @classmethod
    def from_cloud(cls, name: str | None = None) -> 'PlacementClient':
        """Return a client for a cloud of clouds.yaml; needs openstacksdk.

        :param name: None for the cloud that ``OS_CLOUD`` names
        :raises exception.InvalidValue: there is no such cloud
        """
        credentials = f'cloud {name} of clouds.yaml' if name else 'clouds.yaml'
        return cls(loading.from_cloud(name), credentials)

    @classmethod
    def from_region(cls, region: typing.Any) -> 'PlacementClient':
        """Return a client on the session of a region of openstacksdk.

        :param region: openstack.config.cloud_region.CloudRegion
        """
        return cls(loading.from_region(region), f'cloud {region.name}')

    @classmethod
    def from_session(
        cls,
        session: typing.Any,
        region_name: str | None = None,
        interface: str | list[str] | None = None,
    ) -> 'PlacementClient':
        """Return a client on a keystoneauth1.session.Session."""
        return cls(
            loading.from_session(session, region_name, interface),
            'the given session',
        )

    def ensure_traits(self, names: Iterable[str]) -> frozenset[str]:
        """Create those of the traits that placement does not know.

        :returns: what was created
        :raises exception.InvalidValue: a trait that is missing and does not
            begin with ``CUSTOM_``; nothing is created then
        """
        names = set(names)
        missing = sorted(names - self.traits(names))
        for name in missing:
            syntax.check_custom_trait(name, 'trait to create')
        for name in missing:
            self.send('PUT', f'/traits/{name}', _nothing, {Feature.TRAITS})
        return frozenset(missing)

    def set_traits(
        self, uuid: str, traits: Iterable[str], generation: int
    ) -> values.ProviderTraits:
        """Give a provider these traits and no other.

        :param generation: of the provider, as it was when the traits were
            decided on
        :raises errors.GenerationConflict: the provider was changed since
        """
        return self._once(
            uuid, self.provider_traits, self._put_traits, traits, generation
        )

    def set_aggregates(
        self, uuid: str, aggregates: Iterable[str], generation: int
    ) -> values.ProviderAggregates:
        """Put a provider into these aggregates and no other.

        :param generation: of the provider, as it was when the aggregates
            were decided on
        :raises errors.GenerationConflict: the provider was changed since
        """
        return self._once(
            uuid,
            self.provider_aggregates,
            self._put_aggregates,
            aggregates,
            generation,
        )

    def change_traits(
        self, uuid: str, add: Iterable[str] = (), remove: Iterable[str] = ()
    ) -> values.ProviderTraits:
        """Add traits to a provider and take traits from it.

        What others change meanwhile is kept. Nothing is sent where nothing
        would change.

        :raises errors.GenerationConflict: others changed the provider at
            every attempt
        """
        return self.update_traits(uuid, _changed(add, remove))

    def update_traits(
        self, uuid: str, decide: Callable[[frozenset[str]], Iterable[str]]
    ) -> values.ProviderTraits:
        """Give a provider the traits that a decision on its traits returns.

        As :meth:`change_traits`, for a change that depends on what the
        provider has.

        :param decide: gets the traits as they are; called at every attempt
        :raises errors.GenerationConflict: others changed the provider at
            every attempt
        """
        return self._change(
            uuid,
            self.provider_traits,
            lambda current: current.traits,
            self._put_traits,
            decide,
        )

    def change_aggregates(
        self, uuid: str, add: Iterable[str] = (), remove: Iterable[str] = ()
    ) -> values.ProviderAggregates:
        """Put a provider into aggregates and take it out of others.

        As :meth:`change_traits`.
        """
        return self._change(
            uuid,
            self.provider_aggregates,
            lambda current: current.aggregates,
            self._put_aggregates,
            _changed(add, remove),
        )

    def _put_traits(
        self, uuid: str, traits: Iterable[str], generation: int
    ) -> values.ProviderTraits:
        names = [syntax.check_trait(trait, 'traits') for trait in set(traits)]
        return self.send(
            'PUT',
            reading.provider_path(uuid, 'traits'),
            values.ProviderTraits.from_json,
            {Feature.TRAITS},
            json={
                'traits': sorted(names),
                'resource_provider_generation': generation,
            },
        )

    def _put_aggregates(
        self, uuid: str, aggregates: Iterable[str], generation: int
    ) -> values.ProviderAggregates:
        uuids = [syntax.check_uuid(a, 'aggregates') for a in set(aggregates)]
        return self.send(
            'PUT',
            reading.provider_path(uuid, 'aggregates'),
            values.ProviderAggregates.from_json,
            {Feature.AGGREGATES},
            json={
                'aggregates': sorted(uuids),
                'resource_provider_generation': generation,
            },
        )

    def _once(
        self,
        uuid: str,
        read: Callable[[str], Current],
        put: Callable[[str, Iterable[str], int], Current],
        wanted: Iterable[str],
        generation: int,
    ) -> Current:
        try:
            return put(uuid, wanted, generation)
        except errors.Conflict as exc:
            raise _generation_conflict(
                exc, uuid, generation, read(uuid).generation, 1
            ) from exc

    def _change(
        self,
        uuid: str,
        read: Callable[[str], Current],
        names: Callable[[Current], frozenset[str]],
        put: Callable[[str, Iterable[str], int], Current],
        decide: Callable[[frozenset[str]], Iterable[str]],
    ) -> Current:
        fault: errors.PlacementError
        for attempt in range(_ATTEMPTS):
            # So that writers who met once do not meet again.
            time.sleep(random.uniform(0, _WAIT * attempt))
            current = read(uuid)
            wanted = frozenset(decide(names(current)))
            if wanted == names(current):
                return current
            try:
                return put(uuid, wanted, current.generation)
            except (errors.Conflict, errors.ServerError) as exc:
                # Placement also answers 500 where its database ended one of
                # two updates that met (MySQL: 1213, Deadlock found). Whether
                # it did or not, the next read tells.
                fault = exc
        if not isinstance(fault, errors.Conflict):
            raise fault
        raise _generation_conflict(
            fault,
            uuid,
            current.generation,
            read(uuid).generation,
            _ATTEMPTS,
        ) from fault


def _changed(
    add: Iterable[str], remove: Iterable[str]
) -> Callable[[frozenset[str]], frozenset[str]]:
    added, removed = frozenset(add), frozenset(remove)
    if both := added & removed:
        raise exception.InvalidValue(
            where='add and remove',
            expected='nothing in both',
            got=sorted(both),
        )
    return lambda current: (current | added) - removed


def _generation_conflict(
    exc: errors.Conflict, uuid: str, sent: int, current: int, attempts: int
) -> errors.PlacementError:
    return errors.GenerationConflict(
        method=exc.method,
        url=exc.url,
        status=exc.status,
        request_id=exc.request_id,
        provider=uuid,
        sent=sent,
        current=current,
        attempts=attempts,
    )


def _nothing(json: typing.Any) -> None:
    return None
