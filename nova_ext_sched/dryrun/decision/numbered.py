# SPDX-License-Identifier: Apache-2.0

"""Explains why hosts lack a provider for a numbered group.

vGPUs, PCI devices and the like are asked for in groups of their own: one
provider of the host has to give all of a group. Placement says no more than
that none does. The inventories of the first 32 hosts say why, and the best
provider of a host is told:

==============================  ==========================================
of its providers                the host
==============================  ==========================================
none has the resource class     has none
none that has it is as asked    has none that is as asked (traits)
one has room if it were empty   is full
one would, but for what is      has it reserved; a device that is used up
reserved                        once (``one_time_use``) until it is cleaned
others                          is too small
==============================  ==========================================
"""

from collections.abc import Collection
from collections.abc import Iterator

from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.decision import shortage


def explain(
    providers: placement.Providers,
    part: query.Part,
    refused: Collection[str],
    name: str = '',
) -> dict[str, refusals.Refusal]:
    """Return why hosts have no provider for a group, by UUID.

    :param providers: placement's answers about them
    :param part: a part of the query, a numbered group
    :param refused: UUIDs of the hosts
    :param name: name of the PCI alias that the group stands for, or empty
    :returns: nothing for hosts beyond the bound of questions, and for those
        that several resource classes keep out
    """
    amounts = _read_amounts(part)
    if len(amounts) != 1:
        return {}
    [(resource, amount)] = amounts.items()
    asked = [one for one in part.group if one[0] != 'resources']
    alike = providers.find_fitting(asked) if asked else None
    shown = messages.clean(resource)
    if name:
        shown = f'{shown}, PCI alias {messages.clean(name)}'
    wanted = ', '.join(
        messages.clean(value) for key, value in asked if key == 'required'
    )
    # The type of a vGPU is a trait; an alias says it.
    kind = f'{shown} with {wanted}' if wanted and not name else shown
    refusal_of = {}
    for uuid in sorted(refused)[: shortage.MOST]:
        device = max(
            _classify(providers, uuid, resource, amount, alike),
            default=shortage.Supply.WITHOUT,
        )
        # What another constraint of the group is, nobody says.
        if device is shortage.Supply.UNLIKE and not wanted:
            continue
        acts = (
            refusals.free(resource) if device is shortage.Supply.FULL else ()
        )
        refusal_of[uuid] = reasons.refusal_by_resource(
            shortage.WORDS[device].format(
                shown if device is shortage.Supply.WITHOUT else kind
            ),
            resource,
            lifts=device in (shortage.Supply.FULL, shortage.Supply.RESERVED),
            acts=acts,
            is_full=bool(acts),
        )
    return refusal_of


def _read_amounts(part: query.Part) -> dict[str, int]:
    """Read the amounts that a group asks for, by resource class."""
    return {
        name: int(number)
        for key, value in part.group
        if key == 'resources'
        for name, _, number in [one.partition(':') for one in value.split(',')]
    }


def _classify(
    providers: placement.Providers,
    host: str,
    resource: str,
    amount: int,
    alike: Collection[str] | None,
) -> Iterator[shortage.Supply]:
    """Yield the judgement of each provider of a host for an amount.

    :param alike: UUIDs of those that are as asked; None for all
    """
    for uuid in providers.get_tree(host):
        inventory = providers.get_inventories(uuid).get(resource)
        if inventory is None:
            continue
        if alike is not None and uuid not in alike:
            yield shortage.Supply.UNLIKE
            continue
        whole = int(inventory['total'] * inventory['allocation_ratio'])
        capacity = inventory['capacity']
        units = shortage.Units(
            inventory['max_unit'], reserved=whole - capacity
        )
        yield shortage.classify(amount, capacity, units)
