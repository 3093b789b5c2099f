# SPDX-License-Identifier: Apache-2.0

"""Finds the faults of an isolated aggregate in nova and placement.

:mod:`nova_ext_sched.policy.isolation` says which aggregates are isolated. To
let the right requests in and keep the others out,

* placement must know each trait that the aggregate requires,
* each of the aggregate's hosts must have each of these traits, on its own
  resource provider or on another one that its servers can use, for example a
  device's (nova documents a shell loop that sets them), and
* the host's own provider must be in the placement aggregate of the same UUID
  (nova puts it there when the host is added, unless placement is down).

A finding has the steps by which ``openstack aggregate isolation sync`` would
fix it, and none if a person has to. A step that has a reason cannot be taken.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import typing

from nova_ext_sched import messages
from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.osc import isolation_step
from nova_ext_sched.policy import force_metadata_check
from nova_ext_sched.policy import isolation


class Fault(typing.NamedTuple):
    """A kind of fault: consequence and remedy.

    :ivar consequence: its effect on requests and hosts
    :ivar remedy: an instruction for a person
    :ivar closes: whether it keeps every server off the hosts that it concerns
    """

    consequence: str
    remedy: str
    closes: bool = False


_SYNC = 'Run sync'
_SET = 'openstack aggregate set --property'

#: The kinds of fault by the name that programs read; the names are stable.
FAULTS = {
    'trait-missing': Fault(
        'No server can land on these hosts: requests with the trait do not '
        'find them, and others are kept out',
        _SYNC,
        closes=True,
    ),
    'unknown-trait': Fault(
        'No server can land on these hosts, because no request can require '
        'the trait',
        _SYNC,
        closes=True,
    ),
    'impossible-trait': Fault(
        'No server can land on these hosts, because no request can require '
        'the trait',
        f'Correct the name with {_SET}, or upgrade placement (os-traits)',
        closes=True,
    ),
    'no-provider': Fault(
        'No server can land on these hosts',
        'Start nova-compute there, or remove the hosts from the aggregate',
        closes=True,
    ),
    'unread-value': Fault(
        'The value isolates nothing: any server can land on these hosts',
        f'Correct or remove it with {_SET}',
    ),
    'not-mirrored': Fault(
        'Placement does not keep requests out of these hosts; '
        'IsolatedAggregatesFilter alone does',
        _SYNC,
    ),
    'stray-member': Fault(
        'Requests without the trait are kept out of these hosts',
        'Add the hosts in nova, or remove the providers with openstack '
        'resource provider aggregate set',
    ),
    'conflict': Fault(
        'Fewer requests can use these hosts than the aggregate says',
        'Separate the hosts or the metadata, unless this is intended',
    ),
    'trait-outside': Fault(
        'Requests without the trait never land on these hosts',
        'Remove the trait from the hosts, or from forbid_by_trait',
    ),
    'leftover-trait': Fault(
        'No aggregate of these hosts requires the trait any more, but they '
        'keep it from an earlier sync, so servers that require it can land on '
        'them',
        'Run sync --prune without a name',
    ),
    'force-metadata-check': Fault(
        'The aggregate does not enforce its metadata',
        f'Correct the value with {_SET}',
    ),
    'misspelt': Fault(
        'The aggregate is isolated anyway', f'Correct the item with {_SET}'
    ),
}

#: The names of the faults that let no server land on the hosts.
CLOSING = {fault for fault, meant in FAULTS.items() if meant.closes}


class Finding(typing.NamedTuple):
    """A fault of an aggregate.

    :ivar fault: one of :data:`FAULTS`
    :ivar problem: a clause that describes it, without the hosts
    :ivar hosts: the hosts that it concerns; empty if it concerns all of the
        aggregate
    :ivar steps: the steps by which sync would fix it; one with a reason cannot
        be taken
    """

    fault: str
    problem: str
    hosts: Sequence[str] = ()
    steps: Sequence[isolation_step.Step] = ()

    @property
    def by_sync(self) -> bool:
        """Whether sync fixes it."""
        return bool(self.steps) and not any(one.reason for one in self.steps)

    def make_document(self) -> dict[str, typing.Any]:
        """Return its document for programs."""
        return {
            'fault': self.fault,
            'problem': self.problem,
            'hosts': list(self.hosts),
            'by_sync': self.by_sync,
        }


def find(
    aggregate: isolation_cloud.Aggregate,
    cloud: isolation_cloud.Cloud,
    declared: isolation.DeclaredTraits,
) -> list[Finding]:
    """Return the faults of an isolated aggregate.

    :param declared: the traits that the option ``forbid_by_trait`` reserves
        for hosts of isolated aggregates
    """
    return [
        *_find_in_metadata(aggregate, cloud),
        *_find_in_hosts(aggregate, cloud),
        *_find_conflicts(aggregate, cloud),
        *_find_outside(aggregate, cloud, declared),
    ]


def _find_in_metadata(
    aggregate: isolation_cloud.Aggregate, cloud: isolation_cloud.Cloud
) -> Iterable[Finding]:
    for key, value in sorted(aggregate.metadata.items()):
        trait, fault = isolation.read_item(key, value)
        # An impossible trait name is reported as impossible-trait, by the loop
        # over the traits.
        if fault and (trait is None or isolation.is_trait_name(trait)):
            yield Finding(
                'unread-value' if trait is None else 'misspelt',
                f'aggregate {messages.clean(aggregate.name)}: {fault}',
            )
    for problem in force_metadata_check.faults(
        aggregate.name, aggregate.metadata
    ):
        yield Finding('force-metadata-check', messages.clean(problem, 1000))
    for trait in aggregate.traits:
        if trait in cloud.traits:
            continue
        problem = f'placement does not know {messages.clean(trait)}'
        step = isolation_step.create(trait)
        if step.reason:
            problem += f', and it cannot be created: {step.reason}'
            yield Finding('impossible-trait', problem, steps=[step])
            continue
        given = [
            isolation_step.give(node, trait)
            for node in cloud.list_nodes(aggregate)
        ]
        yield Finding('unknown-trait', problem, steps=[step, *given])


def _find_in_hosts(
    aggregate: isolation_cloud.Aggregate, cloud: isolation_cloud.Cloud
) -> Iterable[Finding]:
    present = cloud.list_nodes(aggregate)
    # The values of Step.wanted are names for people; the name of a trait is
    # its key.
    traits = {trait: trait for trait in aggregate.traits}
    if hosts := [
        host for host in aggregate.hosts if host not in cloud.nodes_by_host
    ]:
        steps = [
            isolation_step.Step(
                isolation_step.Change.ADD_TRAITS,
                traits,
                host,
                reason='the host has no compute node with a resource provider',
            )
            for host in hosts
        ]
        yield Finding(
            'no-provider',
            'no compute node with a resource provider',
            hosts,
            steps,
        )
    for trait in filter(cloud.traits.__contains__, traits):
        if lacking := [node for node in present if not node.offers(trait)]:
            problem = f'the resource provider lacks {trait}'
            steps = [isolation_step.give(node, trait) for node in lacking]
            # A step that gives a trait has a reason only if nova-compute sets
            # that trait, so the reason is the same for all hosts.
            if steps[0].reason:
                problem += (
                    ', which nova-compute sets itself where the host supports '
                    'it'
                )
            yield Finding(
                'trait-missing', problem, cloud.name_hosts(lacking), steps
            )
    outside = [n for n in present if aggregate.uuid not in n.aggregates]
    # Without traits the aggregate isolates nothing.
    if outside and traits:
        steps = [
            isolation_step.Step(
                isolation_step.Change.ADD_TO_AGGREGATES,
                {aggregate.uuid: aggregate.name},
                node.host,
                node,
            )
            for node in outside
        ]
        yield Finding(
            'not-mirrored',
            'the resource provider is not in the placement aggregate',
            cloud.name_hosts(outside),
            steps,
        )


def _find_conflicts(
    aggregate: isolation_cloud.Aggregate, cloud: isolation_cloud.Cloud
) -> Iterable[Finding]:
    if not aggregate.traits:
        return
    if force_metadata_check.read(aggregate.metadata):
        yield Finding(
            'conflict',
            f'{force_metadata_check.FLAG} is on, so '
            f'AggregateInstanceTypeFilter requires '
            f'{messages.first_few(aggregate.traits)} in the flavor too and '
            f'rejects requests with the trait only in the image',
        )
    others = {
        other.name: other
        for host in aggregate.hosts
        for other in cloud.isolated_by_host.get(host, ())
        if other.uuid != aggregate.uuid
    }
    for name, other in sorted(others.items()):
        if more := sorted(set(other.traits).difference(aggregate.traits)):
            yield Finding(
                'conflict',
                f'also hosts of aggregate {messages.clean(name)}, so they '
                f'take only requests that require '
                f'{messages.first_few(more)} too',
                sorted(set(aggregate.hosts).intersection(other.hosts)),
            )


def _find_outside(
    aggregate: isolation_cloud.Aggregate,
    cloud: isolation_cloud.Cloud,
    declared: isolation.DeclaredTraits,
) -> Iterable[Finding]:
    if hosts := cloud.name_hosts(
        node
        for node in cloud.nodes
        if aggregate.uuid in node.aggregates
        and node.host not in aggregate.hosts
    ):
        yield Finding(
            'stray-member',
            'the resource provider is in the placement aggregate, but the '
            "host is not in nova's aggregate",
            hosts,
        )
    for trait in aggregate.traits:
        yield from find_leftovers(cloud, trait)
    for trait in filter(declared.__contains__, aggregate.traits):
        if hosts := cloud.name_hosts(
            node
            for node in cloud.nodes
            # Placement checks forbidden traits on the host's own provider
            # alone (root_required), so ``elsewhere`` does not count.
            if trait in node.traits
            and trait not in cloud.get_required_traits(node.host)
        ):
            yield Finding(
                'trait-outside',
                f'forbid_by_trait names {trait}, but hosts have it whose '
                f'aggregates do not require it',
                hosts,
            )


def find_leftovers(
    cloud: isolation_cloud.Cloud, trait: str
) -> Iterable[Finding]:
    """Yield a finding if hosts still have a trait that sync once gave them.

    No aggregate of these hosts requires it any more.

    :param trait: a trait that some aggregate requires, or required once
    """
    if hosts := cloud.name_hosts(
        node
        for node, traits in cloud.leftovers.items()
        if trait in node.traits & traits
    ):
        yield Finding(
            'leftover-trait',
            f'no aggregate of the hosts requires {trait}',
            hosts,
        )
