# SPDX-License-Identifier: Apache-2.0

"""Reading a cloud's isolation over real HTTP, beside asking each provider.

NOVA_EXT_SCHED_TEST_PROVIDERS sets how many providers there are.
"""

import os
import types
import uuid

from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
import os_traits
import pytest

from nova_ext_sched import placement
from nova_ext_sched.osc import isolation_cloud
from tests.functional.placement import servers

PROVIDERS = int(os.environ.get('NOVA_EXT_SCHED_TEST_PROVIDERS', '200'))
COMMON = sorted(os_traits.get_traits('HW_CPU_X86'))[:40]
CUSTOM = [f'CUSTOM_LICENSE_{n}' for n in range(10)]
AGGREGATES = [str(uuid.UUID(int=n + 1)) for n in range(20)]
HOSTS = {f'host{n}': str(uuid.uuid4()) for n in range(PROVIDERS)}


class Compute:
    """nova's lists of aggregates and hypervisors."""

    def aggregates(self, microversion):
        for n, found in enumerate(AGGREGATES):
            trait = CUSTOM[n % len(CUSTOM)]
            yield types.SimpleNamespace(
                id=n,
                uuid=found,
                name=f'agg{n}',
                hosts=[],
                metadata={f'trait:{trait}': 'required'},
            )

    def hypervisors(self, details, microversion):
        for name, found in HOSTS.items():
            yield types.SimpleNamespace(
                id=found, name=name, service_details={'host': name}
            )


@pytest.fixture(scope='module')
def client():
    if reason := servers.missing('gunicorn'):
        pytest.skip(reason)
    with servers.Placement('gunicorn') as server:
        raw = adapter.Adapter(
            session.Session(auth=token_endpoint.Token(server.url, 'admin')),
            service_type='placement',
        )
        client = placement.PlacementClient(raw)
        client.ensure_traits(CUSTOM)
        for n, (name, provider) in enumerate(HOSTS.items()):
            raw.post(
                '/resource_providers',
                json={'name': name, 'uuid': provider},
                microversion='1.20',
            )
            traits = [*COMMON, CUSTOM[n % len(CUSTOM)]]
            aggregate = AGGREGATES[n % len(AGGREGATES)]
            client.update_traits(provider, lambda _, t=traits: t)
            client.update_aggregates(provider, lambda _, a=aggregate: [a])
        yield client


def ask_each(client):
    return {
        name: (
            client.update_traits(provider, frozenset).intersection(CUSTOM),
            client.update_aggregates(provider, frozenset),
        )
        for name, provider in HOSTS.items()
    }


def read(client):
    cloud = isolation_cloud.read(Compute(), client, by_name=False)
    return {node.host: (node.traits, node.aggregates) for node in cloud.nodes}


@pytest.mark.benchmark(group=f'reading {PROVIDERS} providers')
@pytest.mark.parametrize('way', [read, ask_each])
def test_reading(benchmark, client, way):
    found = benchmark.pedantic(way, args=(client,), rounds=3)
    assert found == {
        f'host{n}': (
            {CUSTOM[n % len(CUSTOM)]},
            {AGGREGATES[n % len(AGGREGATES)]},
        )
        for n in range(PROVIDERS)
    }
