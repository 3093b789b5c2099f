# SPDX-License-Identifier: Apache-2.0

"""Keeps supposed allocations above those that placement has.

nova's own report client reads and writes allocations, of a server that comes,
moves or is evacuated. Here its requests for them are answered from memory, so
that what a claim takes is what nova makes it take: an evacuation, for example,
adds nothing to a provider that the server holds already.

===========================  ==============================================
nova asks                    what answers
===========================  ==============================================
GET /allocations/CONSUMER    what was written here; else placement, once
PUT /allocations/CONSUMER    the ledger: 204, or 409 as placement would
POST /allocations            the same, for all consumers at once
===========================  ==============================================

Placement decides which providers a candidate uses, in which units and with
which traits. Only the ledger knows the claims, so it decides whether the
amounts are free, and whether amounts that are held already still are in these
units (placement.objects.allocation._check_capacity_exceeded).
"""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import typing

# The body of GET /allocations/CONSUMER: allocations, project and user.
Body = dict[str, typing.Any]
Allocations = Mapping[str, Mapping[str, typing.Any]]

#: A consumer that placement does not know.
NOTHING: Body = {'allocations': {}, 'consumer_generation': None}

# The fields of such a body besides the generation.
_KEPT = ('allocations', 'project_id', 'user_id', 'consumer_type')

#: Provider and resource class.
Key = tuple[str, str]


class Response:
    """An answer in the form that nova's report client expects."""

    headers: typing.ClassVar[dict[str, str]] = {}

    def __init__(self, status_code: int, body: Body | None = None) -> None:
        self.status_code = status_code
        self._body = body or {}

    def __bool__(self) -> bool:
        return self.status_code < 400

    @property
    def text(self) -> str:
        """The error, for nova's log."""
        return str(self._body)

    def json(self) -> Body:
        """Return the body."""
        return self._body


class Ledger:
    """Allocations of consumers, over those that placement has.

    :param read: returns the allocations of a consumer as placement has them
    :param get_inventory: returns ``capacity`` and ``used`` of each resource
        class of a provider, by its UUID
    :param get_units: returns ``min_unit``, ``max_unit`` and ``step_size``,
        likewise
    :param before: the ledger below, which this one does not change
    """

    def __init__(
        self,
        read: Callable[[str], Body],
        get_inventory: Callable[[str], Mapping[str, Mapping[str, int]]],
        get_units: Callable[[str], Mapping[str, Mapping[str, int]]],
        before: 'Ledger | None' = None,
    ) -> None:
        self._read = read
        self._get_inventory = get_inventory
        self._get_units = get_units
        # A chain, because a copy would be as large as all claims together.
        self._written: collections.ChainMap[str, Body] = (
            before._written.new_child() if before else collections.ChainMap()
        )
        self._taken: collections.ChainMap[Key, int] = (
            before._taken.new_child() if before else collections.ChainMap()
        )

    @property
    def is_changed(self) -> bool:
        """Whether placement's answers may lack what was claimed here."""
        return bool(self._written)

    def take_over(self, after: 'Ledger') -> Iterable[str]:
        """Take over the allocations of a ledger above this one.

        :returns: the consumers whose allocations this one has now
        """
        self._written.update(after._written.maps[0])
        self._taken.update(after._taken.maps[0])
        return after._written.maps[0]

    def get(self, consumer: str) -> Response:
        """Answer GET /allocations/CONSUMER."""
        return Response(200, dict(self._get(consumer)))

    def put(self, consumer: str, body: Body) -> Response:
        """Answer PUT /allocations/CONSUMER."""
        return self.post({consumer: body})

    def post(self, bodies: Mapping[str, Body]) -> Response:
        """Answer POST /allocations.

        ============================  ====================================
        it asks for                   answer
        ============================  ====================================
        the consumer's generation,    409, ``placement.concurrent_update``
        and it has another
        more than a provider has      409
        left
        what was held before, of      409
        which a provider gives no
        such amount any more
        no more of what is left       204, though it is more than there is
        than was held before
        anything else                 204
        ============================  ====================================
        """
        change = collections.Counter[Key]()
        wanted: list[tuple[Key, int]] = []
        carried: set[Key] = set()
        for consumer, body in bodies.items():
            held = self._get(consumer)
            known, given = (
                one.get('consumer_generation') for one in (held, body)
            )
            if given != known:
                return _refuse(
                    f'consumer generation conflict - expected {known} but got '
                    f'{given}',
                    'placement.concurrent_update',
                )
            wanted += amounts(body['allocations'])
            carried.update(key for key, _ in amounts(held['allocations']))
            change.update(dict(amounts(body['allocations'])))
            change.subtract(dict(amounts(held['allocations'])))
        for (provider, name), amount in wanted:
            # The claim of a candidate fits; what is carried over may not.
            if (provider, name) in carried and not self._gives(
                provider, name, amount
            ):
                return _refuse(
                    f"Unable to create allocation for '{name}' on resource "
                    f"provider '{provider}'. The requested amount would "
                    f'violate inventory constraints.'
                )
        for (provider, name), amount in change.items():
            if amount > 0 and amount > self.get_free(provider, name):
                return _refuse(
                    f"Unable to create allocation for '{name}' on resource "
                    f"provider '{provider}'. The requested amount would "
                    f'exceed the capacity.'
                )
        for key, amount in change.items():
            self._taken[key] = self._taken.get(key, 0) + amount
        for consumer, body in bodies.items():
            generation = (body.get('consumer_generation') or 0) + 1
            kept = {name: body[name] for name in _KEPT if name in body}
            self._written[consumer] = (
                {**kept, 'consumer_generation': generation}
                if body['allocations']
                # Placement forgets a consumer that has nothing.
                else NOTHING
            )
        return Response(204)

    def get_free(self, provider: str, name: str) -> int:
        """Return the free amount of a provider's resource class."""
        inventory = self._get_inventory(provider).get(name)
        if inventory is None:
            return 0
        taken = self._taken.get((provider, name), 0)
        free = inventory['capacity'] - inventory['used'] - taken
        return int(free)

    def find_lacking(
        self, request: Mapping[str, typing.Any], claimed: int = 0
    ) -> list[str]:
        """Return the resource classes that a provider lacks.

        :param request: an allocation request of placement's candidates
        :param claimed: how often it was claimed besides
        """
        return sorted(
            {
                name
                for (provider, name), amount in amounts(request['allocations'])
                if amount * (1 + claimed) > self.get_free(provider, name)
            }
        )

    def fits(self, request: Mapping[str, typing.Any]) -> bool:
        """Return whether an allocation request could be claimed."""
        return all(
            amount <= self.get_free(provider, name)
            for provider, one in request['allocations'].items()
            for name, amount in one['resources'].items()
        )

    def count_fitting(
        self, request: Mapping[str, typing.Any], most: int
    ) -> int:
        """Count how often an allocation request could be claimed.

        :param most: returned where it could be claimed as often, or more
        """
        times = [
            self.get_free(*key) // amount
            for key, amount in amounts(request['allocations'])
            if amount
        ]
        return max(0, min([most, *times]))

    def find_violated(self, consumer: str) -> list[tuple[str, int]]:
        """Return the amounts of a consumer that its providers no longer give.

        :returns: resource class and amount; min_unit, max_unit or step_size
            have changed since
        """
        return sorted(
            (name, amount)
            for (provider, name), amount in amounts(
                self._get(consumer)['allocations']
            )
            if not self._gives(provider, name, amount)
        )

    def _gives(self, provider: str, name: str, amount: int) -> bool:
        units = self._get_units(provider).get(name)
        return units is not None and fits_units(units, amount)

    def _get(self, consumer: str) -> Body:
        found = self._written.get(consumer)
        return self._read(consumer) if found is None else found


def fits_units(inventory: Mapping[str, int], amount: int) -> bool:
    """Return whether an inventory ever gives this amount to one consumer."""
    return (
        inventory['min_unit'] <= amount <= inventory['max_unit']
        and amount % inventory['step_size'] == 0
    )


def count_capacity(inventory: Mapping[str, float]) -> int:
    """Return how much of a resource class servers get at most, together."""
    usable = inventory['total'] - inventory['reserved']
    return int(usable * inventory['allocation_ratio'])


def amounts(allocations: Allocations) -> Iterator[tuple[Key, int]]:
    """Yield provider, resource class and amount of allocations."""
    for provider, one in allocations.items():
        for name, amount in one['resources'].items():
            yield (provider, name), amount


def collect(
    of_host: Mapping[str, Allocations], shared: Mapping[str, Allocations]
) -> dict[str, Body]:
    """Return the allocations of consumers out of those of providers.

    :param of_host: placement's answers of the providers of one host, by UUID
        (GET /resource_providers/PROVIDER/allocations: by consumer)
    :param shared: the same of those that it shares with others
    :returns: of those that hold something of the host
    """
    bodies: dict[str, Body] = {}
    for provider, allocations in of_host.items():
        for consumer, allocation in allocations.items():
            body = bodies.setdefault(
                consumer,
                {
                    'allocations': {},
                    'consumer_generation': allocation['consumer_generation'],
                    # nova hands these on; they are not known per provider.
                    'project_id': '',
                    'user_id': '',
                },
            )
            body['allocations'][provider] = {
                'resources': allocation['resources']
            }
    for provider, allocations in shared.items():
        for consumer in allocations.keys() & bodies.keys():
            bodies[consumer]['allocations'][provider] = {
                'resources': allocations[consumer]['resources']
            }
    return bodies


def _refuse(detail: str, code: str = 'placement.undefined_code') -> Response:
    return Response(
        409, {'errors': [{'status': 409, 'code': code, 'detail': detail}]}
    )
