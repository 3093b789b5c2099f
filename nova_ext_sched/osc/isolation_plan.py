# SPDX-License-Identifier: Apache-2.0

"""Plans the changes in placement that isolated aggregates need.

The plan has the steps of what :mod:`.isolation_findings` finds, one write for
each provider, and what ``--prune`` takes back. It has only what is missing, so
it is idempotent: after a complete run the next plan is empty, and after a
partial run it has the rest.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses

from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.osc import isolation_findings
from nova_ext_sched.osc import isolation_step
from nova_ext_sched.policy import isolation


def make(
    cloud: isolation_cloud.Cloud,
    selected: Sequence[isolation_cloud.Aggregate] = (),
    prune: bool = False,
) -> list[isolation_step.Step]:
    """Return the changes, in the order in which to make them.

    :param selected: the aggregates to set up, and to whose nodes pruning is
        bounded; empty for all
    :param prune: whether to remove traits that no aggregate requires
    """
    aggregates = selected or [agg for agg in cloud.aggregates if agg.traits]
    none = isolation.DeclaredTraits(())
    steps = [
        step
        for aggregate in aggregates
        for finding in isolation_findings.find(aggregate, cloud, none)
        for step in finding.steps
    ]
    given = {
        name
        for step in steps
        if step.change is isolation_step.Change.ADD_TRAITS
        for name in step.names
    }
    steps += map(isolation_step.create, given - cloud.traits)
    for node, traits in cloud.leftovers.items() if prune else ():
        if not selected or any(
            node.host in one.hosts or one.uuid in node.aggregates
            for one in selected
        ):
            steps.append(
                isolation_step.Step(
                    isolation_step.Change.REMOVE_TRAITS,
                    {trait: trait for trait in traits},
                    node.host,
                    node,
                )
            )
    order = list(isolation_step.Change)
    return sorted(
        _merge(steps),
        key=lambda step: (
            order.index(step.change),
            step.host,
            step.provider,
            bool(step.reason),
            step.names,
        ),
    )


def _merge(
    steps: Iterable[isolation_step.Step],
) -> Iterator[isolation_step.Step]:
    """Yield one step for all of a kind that change one provider."""
    merged: dict[tuple[object, ...], isolation_step.Step] = {}
    for step in steps:
        # Each trait is created by itself.
        of = step.node or step.host or tuple(step.wanted)
        key = step.change, of, step.reason
        wanted = merged[key].wanted if key in merged else {}
        merged[key] = dataclasses.replace(
            step, wanted={**wanted, **step.wanted}
        )
    return iter(merged.values())
