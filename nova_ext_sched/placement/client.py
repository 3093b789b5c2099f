# SPDX-License-Identifier: Apache-2.0

"""A client of the placement API, for tools that run without nova."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import random
import time
import typing

from nova_ext_sched import exception
from nova_ext_sched import objects
from nova_ext_sched.objects import syntax
from nova_ext_sched.placement import adapters
from nova_ext_sched.placement import division
from nova_ext_sched.placement import errors
from nova_ext_sched.placement import microversion

Json = dict[str, typing.Any]
Decide = Callable[[frozenset[str]], Iterable[str]]

# How often a change is tried from a fresh read, and the longest wait before
# the second try, in seconds; it grows with each.
_ATTEMPTS = 8
_WAIT = 0.1


class _Part(typing.NamedTuple):
    """A part of a resource provider that is written with its generation."""

    name: str
    needs: microversion.Needs
    check: Callable[[str, str], str]


_TRAITS = _Part('traits', microversion.TRAITS, syntax.check_trait)
_AGGREGATES = _Part('aggregates', microversion.AGGREGATES, syntax.check_uuid)


class PlacementClient(adapters.Base):
    """Reads and changes what placement stores.

    Every method raises an error of :mod:`nova_ext_sched.placement.errors`
    that names the request, and exception.InvalidValue for an argument that
    placement would refuse. A request that the server's microversion cannot
    express is refused before it is sent. May be used by several threads.

    :param adapter: a keystoneauth1.adapter.Adapter for placement, with its
        retries and credentials
    :param credentials: the source of the credentials, for errors
    """

    def allocation_candidates(
        self,
        groups: Sequence[objects.RequestGroup],
        group_policy: str | None = None,
        limit: int | None = None,
    ) -> Json:
        """Return the ways to satisfy all of the groups.

        :param groups: each with a suffix of its own
        :param group_policy: ``none`` or ``isolate``; placement demands one
            where two or more groups have a suffix
        :param limit: the largest number of candidates
        :returns: ``allocation_requests`` and ``provider_summaries``, as
            placement's API reference describes them
        """
        suffixes = [group.suffix for group in groups]
        if not groups or len(set(suffixes)) < len(suffixes):
            raise exception.InvalidValue(
                where='groups',
                expected='one group or more, each with a suffix of its own',
                got=suffixes,
            )
        params = [pair for group in groups for pair in group.to_queryparams()]
        if group_policy is not None:
            params.append(('group_policy', group_policy))
        if limit is not None:
            syntax.check_amount(limit, 'limit')
            params.append(('limit', str(limit)))
        return self._transport.request(
            'GET',
            '/allocation_candidates',
            lambda json: {
                name: json[name]
                for name in ('allocation_requests', 'provider_summaries')
            },
            microversion.candidates_needs(groups, group_policy, limit),
            sorted(params),
        )

    def resource_providers(
        self, filters: objects.RequestGroup | None = None
    ) -> list[Json]:
        """Return the resource providers that meet all of the filters.

        Long filters are asked in several queries; see
        :mod:`nova_ext_sched.placement.division`.

        :param filters: a group without a suffix. Unlike in a query for
            candidates, each provider is judged alone: its own resources,
            traits and aggregates.
        :returns: each as placement's API reference describes it
        """
        filters = filters or objects.RequestGroup()
        if filters.suffix:
            raise exception.InvalidValue(
                where='filters.suffix',
                expected='a request group without a suffix',
                got=filters.suffix,
            )
        needs = microversion.providers_needs(filters)
        providers = division.list_providers(
            filters.to_queryparams(),
            lambda params: self._transport.request(
                'GET', '/resource_providers', _read_providers, needs, params
            ),
        )
        return list(providers.values())

    def traits(self, associated: bool = False) -> frozenset[str]:
        """Return the traits that placement knows.

        :param associated: only those that some provider has
        """
        return self._transport.request(
            'GET',
            '/traits',
            lambda json: frozenset(json['traits']),
            microversion.TRAITS,
            [('associated', 'true')] if associated else [],
        )

    def ensure_traits(self, names: Iterable[str]) -> frozenset[str]:
        """Create the traits that placement does not know yet.

        :returns: the names that were created
        :raises exception.InvalidValue: a trait that is missing and does not
            begin with ``CUSTOM_``; nothing is created then
        """
        missing = sorted(set(names) - self.traits())
        for name in missing:
            syntax.check_custom_trait(name, 'trait to create')
        for name in missing:
            self._transport.request(
                'PUT', f'/traits/{name}', lambda _: None, microversion.TRAITS
            )
        return frozenset(missing)

    def aggregates(self, uuid: str) -> frozenset[str]:
        """Return the UUIDs of the aggregates that a provider is in."""
        return self._exchange(_AGGREGATES, uuid)[0]

    def update_traits(self, uuid: str, decide: Decide) -> frozenset[str]:
        """Give a provider the traits that ``decide`` returns.

        Changes that others make meanwhile are kept. Nothing is sent if
        nothing would change.

        :param decide: gets the traits as they are; called at every attempt
        :returns: the traits that the provider has now
        :raises errors.GenerationConflict: others changed the provider at
            every attempt
        """
        return self._update(_TRAITS, uuid, decide)

    def update_aggregates(self, uuid: str, decide: Decide) -> frozenset[str]:
        """Put a provider into the aggregates that ``decide`` returns.

        Works like :meth:`update_traits`.

        :param decide: gets the UUIDs of its aggregates as they are
        """
        return self._update(_AGGREGATES, uuid, decide)

    def _update(
        self, part: _Part, uuid: str, decide: Decide
    ) -> frozenset[str]:
        fault: errors.Refused
        for attempt in range(_ATTEMPTS):
            # So that writers who met once do not meet again.
            time.sleep(random.uniform(0, _WAIT * attempt))
            current, generation = self._exchange(part, uuid)
            wanted = frozenset(decide(current))
            if wanted == current:
                return current
            names = [part.check(name, part.name) for name in wanted]
            body = {
                part.name: sorted(names),
                'resource_provider_generation': generation,
            }
            try:
                return self._exchange(part, uuid, body)[0]
            except errors.Refused as exc:
                # Placement also answers 500 where two updates of traits
                # overlap, or where its database ended one of them (MySQL:
                # 1213, Deadlock found). The next read shows whether it did.
                if exc.status not in (409, 500):
                    raise
                fault = exc
        if fault.status != 409:
            raise fault
        raise errors.GenerationConflict(
            **vars(fault),
            provider=uuid,
            sent=generation,
            current=self._exchange(part, uuid)[1],
            attempts=_ATTEMPTS,
        ) from fault

    def _exchange(
        self, part: _Part, uuid: str, body: Json | None = None
    ) -> tuple[frozenset[str], int]:
        """Read a part of a provider, or write it where there is a body.

        :returns: the names in it, and the provider's generation
        """
        uuid = syntax.check_uuid(uuid, 'resource provider')
        return self._transport.request(
            'PUT' if body else 'GET',
            f'/resource_providers/{uuid}/{part.name}',
            lambda json: (
                frozenset(json[part.name]),
                int(json['resource_provider_generation']),
            ),
            part.needs,
            json=body,
        )


def _read_providers(json: typing.Any) -> dict[str, Json]:
    # An answer without these is not placement's.
    return {
        provider['uuid']: {
            'name': provider['name'],
            'generation': provider['generation'],
        }
        | provider
        for provider in json['resource_providers']
    }
