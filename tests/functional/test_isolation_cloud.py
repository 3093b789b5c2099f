# SPDX-License-Identifier: Apache-2.0

"""Reading a cloud, against a real placement.

nova's lists are given: with a real nova the commands are run in
test_osc_isolation.
"""

import contextlib
import types
import unittest.mock

import fixtures

from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.placement import transport
from tests.functional.placement import base

A = 'aaaaaaaa-0000-4000-8000-000000000001'
B = 'bbbbbbbb-0000-4000-8000-000000000002'
RECORD = isolation_cloud.RECORD + 'CUSTOM_OLD'


class Compute:
    """nova's lists of aggregates and hypervisors."""

    def __init__(self, hosts, **aggregates):
        self._hosts = hosts
        self._aggregates = aggregates

    def aggregates(self, microversion):
        for name, (uuid, metadata) in self._aggregates.items():
            yield types.SimpleNamespace(
                id=1, uuid=uuid, name=name, hosts=None, metadata=metadata
            )

    def hypervisors(self, details, microversion):
        for name, uuid in self._hosts.items():
            yield types.SimpleNamespace(
                id=uuid, name=name, service_details={'host': name}
            )


class ReadTest(base.PlacementTestCase):
    def setUp(self):
        super().setUp()
        # placement's database in memory has one connection; several requests
        # at once are tested over HTTP.
        self.useFixture(
            fixtures.MockPatchObject(isolation_cloud, 'WORKERS', new=1)
        )
        self.providers = {
            name: self.create_provider(
                name, traits=traits, aggregates=aggregates
            )
            for name, traits, aggregates in (
                ('h1', ['CUSTOM_SSD', 'CUSTOM_OTHER', 'HW_CPU_X86_VMX'], [A]),
                ('h2', [RECORD, 'CUSTOM_OLD'], [B]),
                ('h3', [], []),
                ('storage', ['CUSTOM_SSD'], [A]),
            )
        }
        self.hosts = {
            name: uuid
            for name, uuid in self.providers.items()
            if name != 'storage'
        }
        self.hosts['h4'] = 'ffffffff-0000-4000-8000-00000000000f'

    def read(self, *operator_traits, **aggregates):
        aggregates['ssd'] = (A, {'trait:CUSTOM_SSD': 'required'})
        aggregates['plain'] = (B, {'ssd': 'true'})
        cloud = isolation_cloud.read(
            Compute(self.hosts, **aggregates), self.client, operator_traits
        )
        return cloud, {
            node.host: (node.traits, node.aggregates) for node in cloud.nodes
        }

    def test_read(self):
        cloud, nodes = self.read()
        self.assertEqual(
            {
                'h1': ({'CUSTOM_SSD'}, {A}),
                'h2': ({'CUSTOM_OLD', RECORD}, set()),
                'h3': (set(), set()),
            },
            nodes,
        )
        self.assertLessEqual({'CUSTOM_OTHER', 'COMPUTE_NODE'}, cloud.traits)
        _, nodes = self.read('CUSTOM_OTHER', 'CUSTOM_NO_SUCH')
        self.assertEqual({'CUSTOM_SSD', 'CUSTOM_OTHER'}, nodes['h1'][0])

    def test_more_names_than_providers(self):
        # Then each provider is asked, and the answers are the same.
        several = {
            f'agg{number}': (
                f'{number:08}-0000-4000-8000-000000000000',
                {f'trait:CUSTOM_{number}': 'required'},
            )
            for number in range(9)
        }
        self.client.ensure_traits(f'CUSTOM_{number}' for number in range(9))
        self.client.update_traits(
            self.providers['h3'],
            lambda _: {f'CUSTOM_{number}' for number in range(9)},
        )
        _, few = self.read()
        with self.requests() as sent:
            _, many = self.read(**several)
        self.assertEqual(
            {'h1', 'h2'}, {host for host in few if few[host] == many[host]}
        )
        self.assertEqual(9, len(many['h3'][0]))
        asked = [path for path in sent if path.endswith('/aggregates')]
        self.assertEqual(len(self.providers), len(asked))

    def test_a_provider_that_is_deleted_meanwhile(self):
        several = {
            f'agg{number}': (
                f'{number:08}-0000-4000-8000-000000000000',
                {'trait:CUSTOM_SSD': 'required'},
            )
            for number in range(9)
        }
        list_all = self.client.resource_providers

        def delete_one(*args):
            found = list_all(*args)
            if not args:
                self.raw.delete(f'/resource_providers/{self.providers["h3"]}')
            return found

        with unittest.mock.patch.object(
            self.client, 'resource_providers', side_effect=delete_one
        ):
            _, nodes = self.read(**several)
        self.assertEqual((set(), set()), nodes['h3'])
        self.assertEqual(({'CUSTOM_SSD'}, {A}), nodes['h1'])

    @contextlib.contextmanager
    def requests(self):
        """Record the paths of the requests that are sent."""
        request = transport.Transport.request
        sent = []

        def recording(client, method, path, *args, **kwargs):
            sent.append(path)
            return request(client, method, path, *args, **kwargs)

        with unittest.mock.patch.object(
            transport.Transport, 'request', recording
        ):
            yield sent
