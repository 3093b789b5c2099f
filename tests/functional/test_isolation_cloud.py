# SPDX-License-Identifier: Apache-2.0

"""Reading a cloud, against a real placement.

nova's lists are given: with a real nova the commands are run in
test_osc_isolation.
"""

import types
from unittest import mock

from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.policy import isolation
from tests.functional.placement import base

A = 'aaaaaaaa-0000-4000-8000-000000000001'
B = 'bbbbbbbb-0000-4000-8000-000000000002'
RECORD = isolation.RECORD + 'CUSTOM_OLD'


class Compute:
    """nova's lists of aggregates and hypervisors."""

    def __init__(self, hosts, services=(), **aggregates):
        self._hosts = hosts
        self._services = services
        self.asked = False
        self._aggregates = aggregates

    def aggregates(self, microversion):
        for name, (uuid, metadata) in self._aggregates.items():
            yield types.SimpleNamespace(
                id=1, uuid=uuid, name=name, hosts=None, metadata=metadata
            )

    def services(self, binary):
        return [
            types.SimpleNamespace(host=host)
            for host in self._services or self._hosts
        ]

    def hypervisors(self, details, microversion):
        self.asked = True
        for name, uuid in self._hosts.items():
            yield types.SimpleNamespace(
                id=uuid, name=name, service_details={'host': name}
            )


class ReadTest(base.PlacementTestCase):
    def setUp(self):
        super().setUp()
        # placement's database in memory has one connection; several requests
        # at once are tested over HTTP.
        self.patch(isolation_cloud, 'WORKERS', 1)
        self.providers = {
            name: self.server.create_provider(
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

    def test_the_number_of_requests_does_not_grow_with_the_hosts(self):
        ssd = (A, {'trait:CUSTOM_SSD': 'required'})
        counts = []
        for number in range(2):
            with mock.patch.object(
                self.raw, 'request', wraps=self.raw.request
            ) as sent:
                isolation_cloud.read(
                    Compute(self.hosts, ssd=ssd), self.client, by_name=True
                )
            counts.append(sent.call_count)
            self.hosts[f'more{number}'] = self.server.create_provider(
                f'more{number}', traits=['CUSTOM_SSD'], aggregates=[A]
            )
        self.assertEqual(counts[0], counts[1])
        self.assertGreater(counts[0], 0)

    def test_nova_is_asked_about_hypervisors_only_where_names_do_not_say(self):
        """The storage is no compute node, and h4 has no provider."""
        for services, by_name, asked, found in (
            (['h1', 'h2', 'h3'], True, False, ['h1', 'h2', 'h3']),
            (['h1', 'h2', 'h3'], False, True, ['h1', 'h2', 'h3']),
            # One without a provider, and a provider that may be its.
            (['h1', 'h2', 'h3', 'h4'], True, True, ['h1', 'h2', 'h3']),
            # Each provider has its host.
            (['h1', 'h2', 'h3', 'h4', 'storage'], True, False,
             ['h1', 'h2', 'h3', 'storage']),
            # A service that is gone has no compute node in nova's list.
            (['h1'], True, False, ['h1']),
        ):  # fmt: skip
            compute = Compute(self.hosts, services)
            cloud = isolation_cloud.read(compute, self.client, by_name=by_name)
            self.assertEqual(asked, compute.asked)
            self.assertEqual(found, sorted(node.host for node in cloud.nodes))
            for node in cloud.nodes:
                self.assertEqual(self.providers[node.host], node.uuid)
