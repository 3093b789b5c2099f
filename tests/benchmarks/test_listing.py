# SPDX-License-Identifier: Apache-2.0

"""Listing providers with their traits and aggregates, over real HTTP.

Beside asking each provider. NOVA_EXT_SCHED_TEST_PROVIDERS sets how many
providers there are.
"""

import os
import uuid

from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
import os_traits
import pytest

from nova_ext_sched import placement
from nova_ext_sched.placement import listing
from tests.functional.placement import servers

PROVIDERS = int(os.environ.get('NOVA_EXT_SCHED_TEST_PROVIDERS', '200'))
COMMON = sorted(os_traits.get_traits('HW_CPU_X86'))[:40]
CUSTOM = [f'CUSTOM_LICENSE_{n}' for n in range(10)]
AGGREGATES = [str(uuid.UUID(int=n + 1)) for n in range(20)]


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
        for n in range(PROVIDERS):
            provider = str(uuid.uuid4())
            raw.post(
                '/resource_providers',
                json={'name': f'host{n}', 'uuid': provider},
                microversion='1.20',
            )
            traits = [*COMMON, CUSTOM[n % len(CUSTOM)]]
            generation = client.set_traits(provider, traits, 0).generation
            client.set_aggregates(
                provider, [AGGREGATES[n % len(AGGREGATES)]], generation
            )
        yield client


def each(client):
    return [
        listing.Listed(
            provider,
            client.provider_traits(provider.uuid).traits,
            client.provider_aggregates(provider.uuid).aggregates,
        )
        for provider in client.resource_providers()
    ]


def bulk(client):
    return client.list_providers(aggregates=AGGREGATES)


@pytest.mark.benchmark(group=f'listing {PROVIDERS} providers')
@pytest.mark.parametrize('way', [bulk, each])
def test_listing(benchmark, client, way):
    found = benchmark.pedantic(way, args=(client,), rounds=3)
    assert PROVIDERS == len(found)
    for listed in found:
        n = int(listed.provider.name.removeprefix('host'))
        assert {AGGREGATES[n % len(AGGREGATES)]} == listed.aggregates
        assert {*COMMON, CUSTOM[n % len(CUSTOM)]} == listed.traits
