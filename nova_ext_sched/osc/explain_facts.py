# SPDX-License-Identifier: Apache-2.0

"""What ``openstack scheduler explain`` asks nova and placement about hosts.

Hosts, aggregates and answers are asked for all hosts at once: the number of
requests grows with the parts of the request and the isolated aggregates, and
with hosts only by the pages of nova's list.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import typing

from openstack import exceptions as sdk_exc
from openstack.compute.v2 import hypervisor as sdk_hypervisor

from nova_ext_sched import exception
from nova_ext_sched import objects
from nova_ext_sched import placement
from nova_ext_sched.placement import errors
from nova_ext_sched.placement import values
from nova_ext_sched.policy import explanation
from nova_ext_sched.policy import extra_specs
from nova_ext_sched.policy import placement_demands
from nova_ext_sched.policy import placement_query

# From 2.88 on nova-api asks every nova-compute for its uptime.
_HYPERVISORS_MICROVERSION = '2.53'
_AGGREGATES_MICROVERSION = '2.41'
_PAGE = 1000

_SHARING = 'MISC_SHARES_VIA_AGGREGATE'

# More aggregates than these make a query too long for some servers. They are
# then asked apart alone.
_FEW_AGGREGATES = 20


@dataclasses.dataclass(frozen=True)
class Answer:
    """The root providers that meet a demand.

    :ivar problem: why placement refuses the question
    """

    providers: frozenset[str] = frozenset()
    problem: str | None = None


def aggregates(compute: typing.Any) -> list[explanation.Aggregate]:
    """Return nova's aggregates.

    :param compute: the compute proxy of openstacksdk
    """
    body = read(compute, '/os-aggregates', _AGGREGATES_MICROVERSION)
    return [
        explanation.Aggregate(
            uuid=aggregate['uuid'],
            name=aggregate['name'],
            metadata=aggregate['metadata'],
            hosts=frozenset(aggregate['hosts']),
        )
        for aggregate in body['aggregates']
    ]


def hosts(
    compute: typing.Any,
    found_aggregates: Iterable[explanation.Aggregate],
    advance: Callable[..., None],
) -> list[explanation.Host]:
    """Return the compute nodes with their aggregates.

    :param advance: called with the number of hosts read
    """
    by_host: dict[str, list[explanation.Aggregate]] = {}
    for aggregate in found_aggregates:
        for name in aggregate.hosts:
            by_host.setdefault(name, []).append(aggregate)
    found = []
    for hypervisor in sdk_hypervisor.Hypervisor.list(
        compute,
        base_path='/os-hypervisors/detail',
        microversion=_HYPERVISORS_MICROVERSION,
        limit=_PAGE,
    ):
        service = hypervisor.service_details
        found.append(
            explanation.Host(
                name=service['host'],
                node=hypervisor.name,
                provider=hypervisor.id,
                up=hypervisor.state == 'up',
                enabled=hypervisor.status == 'enabled',
                disabled_reason=service.get('disabled_reason'),
                aggregates=tuple(
                    sorted(
                        by_host.get(service['host'], ()),
                        key=lambda aggregate: aggregate.name,
                    )
                ),
            )
        )
        advance()
    return found


def read(
    proxy: typing.Any, path: str, microversion: str | None = None
) -> typing.Any:
    """Return the JSON that a service answers to GET.

    Past openstacksdk's resources where those would take the microversion
    from the user's ``--os-compute-api-version``, or hide what is custom.

    :param proxy: a proxy of openstacksdk
    :raises openstack.exceptions.HttpException: the service refuses
    """
    response = proxy.get(path, microversion=microversion)
    sdk_exc.raise_from_response(response)
    return response.json()


class Asker:
    """Asks placement the questions of a query.

    :param client: the placement client
    """

    def __init__(self, client: placement.PlacementClient) -> None:
        self._client = client
        self._sharing: set[str] | None = None
        self._shared_with: dict[str, set[str]] = {}

    def answer(self, demand: placement_demands.Demand) -> Answer:
        """Return the root providers that are in the answer of a demand."""
        roots: set[str] = set()
        try:
            for question in demand.questions:
                found = self._client.resource_providers(_group(question))
                if demand.of_root:
                    roots |= {provider.uuid for provider in found}
                else:
                    roots |= self._roots(found)
        except (errors.BadRequest, exception.InvalidValue) as exc:
            return Answer(problem=str(exc))
        return Answer(frozenset(roots))

    def whole(
        self, query: placement_query.Query, in_tree: str | None
    ) -> Answer:
        """Return the root providers of the candidates of a whole query.

        Aggregates are part of it where they are few.

        :param in_tree: UUID of the root provider of the host that the request
            names. It is more than a choice among the answers: placement then
            leaves out the providers that other trees share.
        """
        roots: set[str] = set()
        problem = None
        for wanted in query.wanted:
            try:
                found = self._client.allocation_candidates(
                    _candidates_request(wanted, query, in_tree)
                )
            except (errors.BadRequest, exception.InvalidValue) as exc:
                problem = str(exc)
                continue
            roots |= {
                found.summaries[uuid].root_uuid or uuid
                for candidate in found.requests
                for uuid in candidate.allocations
            }
        return Answer(frozenset(roots), None if roots else problem)

    def _roots(self, found: list[values.ResourceProvider]) -> set[str]:
        roots = set()
        for provider in found:
            roots.add(provider.root_uuid or provider.uuid)
            if provider.uuid in self._sharing_providers():
                roots |= self._roots_that_share(provider.uuid)
        return roots

    def _sharing_providers(self) -> set[str]:
        if self._sharing is None:
            group = objects.RequestGroup(required_traits={_SHARING})
            self._sharing = {
                provider.uuid
                for provider in self._client.resource_providers(group)
            }
        return self._sharing

    def _roots_that_share(self, uuid: str) -> set[str]:
        if uuid not in self._shared_with:
            member_of = self._client.provider_aggregates(uuid).aggregates
            roots: set[str] = set()
            if member_of:
                group = objects.RequestGroup(
                    required_aggregates=[sorted(member_of)]
                )
                roots = {
                    provider.root_uuid or provider.uuid
                    for provider in self._client.resource_providers(group)
                }
            self._shared_with[uuid] = roots
        return self._shared_with[uuid]


def free(client: placement.PlacementClient, root: str) -> dict[str, str]:
    """Return how much of each resource class a tree of providers has free.

    :param root: UUID of the root provider
    :returns: a sentence by resource class
    """
    found: dict[str, list[str]] = {}
    tree = client.resource_providers(objects.RequestGroup(in_tree=root))
    for provider in sorted(tree, key=lambda provider: provider.name):
        inventories = client.provider_inventories(provider.uuid).inventories
        usages = client.provider_usages(provider.uuid).usages
        for name, inventory in inventories.items():
            used = usages.get(name, 0)
            found.setdefault(name, []).append(
                f'{inventory.capacity - used} of {inventory.capacity} free on '
                f'provider {provider.name} (at least {inventory.min_unit}, at '
                f'most {inventory.max_unit}, in steps of '
                f'{inventory.step_size})'
            )
    return {name: ', '.join(amounts) for name, amounts in found.items()}


def _group(question: placement_demands.Question) -> objects.RequestGroup:
    group = objects.RequestGroup.from_wanted('', question.group)
    if question.member_of:
        group.required_aggregates = [list(question.member_of)]
    return group


def _candidates_request(
    wanted: extra_specs.Wanted,
    query: placement_query.Query,
    in_tree: str | None,
) -> objects.AllocationCandidatesRequest:
    groups = {
        suffix: objects.RequestGroup.from_wanted(suffix, group)
        for suffix, group in wanted.groups.items()
    }
    required = _few(query.required_aggregates)
    forbidden = (
        query.forbidden_aggregates
        if len(query.forbidden_aggregates) <= _FEW_AGGREGATES
        else set()
    )
    if required or forbidden or in_tree:
        group = groups.setdefault('', objects.RequestGroup())
        group.required_aggregates = required
        group.forbidden_aggregates = forbidden
        group.in_tree = in_tree
    return objects.AllocationCandidatesRequest(
        groups=list(groups.values()),
        group_policy=wanted.group_policy,
        root_required=query.root_required,
        root_forbidden=query.root_forbidden,
    )


def _few(sets: Sequence[list[str]]) -> list[list[str]]:
    few = []
    room = _FEW_AGGREGATES
    for uuids in sets:
        if len(uuids) <= room:
            few.append(uuids)
            room -= len(uuids)
    return few
