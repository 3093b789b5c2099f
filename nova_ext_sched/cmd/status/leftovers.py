# SPDX-License-Identifier: Apache-2.0

"""Finds hosts that keep a trait of an isolated aggregate that they left.

``openstack aggregate isolation list`` calls it ``leftover-trait``. Whoever may
list neither hosts nor providers learns it here.
"""

from collections.abc import Iterable
from collections.abc import Iterator
import typing

from nova import context as nova_context
from nova import objects

from nova_ext_sched import messages
from nova_ext_sched.policy import isolation


def find(
    ctxt: typing.Any,
    adapter: typing.Any,
    aggregates: Iterable[typing.Any],
) -> Iterator[str]:
    """Yield hosts with a trait of sync's that is not required of them.

    :param adapter: of keystoneauth, for placement with a microversion
    :param aggregates: nova Aggregates
    :raises keystoneauth1.exceptions.ClientException: placement refuses, or
        does not answer
    """

    def get(url: str) -> dict[str, typing.Any]:
        found: dict[str, typing.Any] = adapter.get(url, raise_exc=True).json()
        return found

    traits = {*get('/traits')['traits']}
    providers = {
        trait: [
            one['uuid']
            for one in get(
                f'/resource_providers?required={trait},'
                f'{isolation.RECORD}{trait}'
            )['resource_providers']
        ]
        for trait in sorted(isolation.get_recorded(traits) & traits)
    }
    uuids = sorted({uuid for found in providers.values() for uuid in found})
    if not uuids:
        return
    hosts: dict[str, str] = {}
    silent = 0
    for nodes in nova_context.scatter_gather_skip_cell0(
        ctxt, objects.ComputeNodeList.get_all_by_uuids, uuids
    ).values():
        if nova_context.is_cell_failure_sentinel(nodes):
            silent += 1
        else:
            hosts |= {one.uuid: one.host for one in nodes}
    required = {
        (isolation.read_item(*item).trait, host)
        for one in aggregates
        for item in one.metadata.items()
        for host in one.hosts
    }
    for trait, found in providers.items():
        leftover = {hosts[uuid] for uuid in found if uuid in hosts}
        if kept := sorted(
            host for host in leftover if (trait, host) not in required
        ):
            have = messages.agree(len(kept), 'has', 'have')
            yield (
                f'{messages.first_few(kept)} {have} {trait}, which sync gave, '
                f'and no aggregate there requires it: a server that requires '
                f'it can land there. Run openstack aggregate isolation sync '
                f'--prune'
            )
    if silent:
        yield (
            f'{messages.count("cell", silent)} did not answer, and what hosts '
            f'have there is not known'
        )
