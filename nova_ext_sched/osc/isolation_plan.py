# SPDX-License-Identifier: Apache-2.0

"""Plans the changes in placement that isolated aggregates need.

The plan has the steps of the findings of :mod:`.isolation_findings`, one write
for each provider, and with ``--prune`` the removal of leftovers. It has only
what is missing, so it is idempotent: after a complete run the next plan is
empty, and after a partial run it has the rest.
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

    :param selected: the aggregates to set up and to prune; empty for all
    :param prune: whether to remove leftovers
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
    """Yield the steps, with those of one kind for one provider in one."""
    merged: dict[tuple[object, ...], isolation_step.Step] = {}
    for step in steps:
        # Creations have neither node nor host: they are not merged.
        target = step.node or step.host or tuple(step.wanted)
        key = step.change, target, step.reason
        wanted = merged[key].wanted if key in merged else {}
        merged[key] = dataclasses.replace(
            step, wanted={**wanted, **step.wanted}
        )
    return iter(merged.values())
