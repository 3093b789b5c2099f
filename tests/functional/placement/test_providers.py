# SPDX-License-Identifier: Apache-2.0

"""Providers of the simulator's hosts, in a real placement."""

import uuid

from nova.tests.functional.api import client

from nova_ext_sched.simulator import providers
from tests.functional.placement import base

TRAIT = 'HW_CPU_X86_AVX2'


class Placement:
    """As nova's own fixture has it, with what it was asked."""

    def __init__(self, adapter):
        self._adapter = adapter
        self.asked = []

    def __getattr__(self, method):
        def ask(url, body=None, *, version='1.0'):
            self.asked.append((method, url.split('/')[1]))
            return client.APIResponse(
                getattr(self._adapter, method)(
                    url, microversion=version, **{'json': body} if body else {}
                )
            )

        return ask


class ProvidersTest(base.PlacementTestCase):
    def setUp(self):
        super().setUp()
        self.placement = Placement(self.raw)
        self.providers = providers.Providers(self.placement)
        self.uuids = {host: str(uuid.uuid4()) for host in ('one', 'two')}
        # As a nova-compute makes its own.
        for host, provider in self.uuids.items():
            self.placement.post(
                '/resource_providers', {'name': host, 'uuid': provider}
            )

    def read(self, host, part):
        return self.raw.get(
            f'/resource_providers/{self.uuids[host]}/{part}',
            microversion='1.36',
        ).json()

    def test_names(self):
        for host, provider in self.uuids.items():
            self.assertEqual(provider, self.providers.uuid(host))

    def test_traits_and_aggregates(self):
        aggregate = str(uuid.uuid4())
        self.providers.set_aggregates('one', [aggregate])
        # After whatever was written in between.
        self.providers.add_traits('one', [TRAIT])
        self.providers.add_traits('one', ['CUSTOM_GOLD', 'CUSTOM_no', TRAIT])
        self.providers.set_aggregates('two', [aggregate])
        self.providers.add_traits('two', [])
        self.assertEqual(
            {TRAIT, 'CUSTOM_GOLD'}, {*self.read('one', 'traits')['traits']}
        )
        self.assertEqual([], self.read('two', 'traits')['traits'])
        for host in self.uuids:
            self.assertEqual(
                [aggregate], self.read(host, 'aggregates')['aggregates']
            )

    def test_traits_that_are_there(self):
        self.providers.add_traits('one', [TRAIT])
        self.placement.asked.clear()
        self.providers.add_traits('one', [TRAIT])
        self.assertEqual([('get', 'resource_providers')], self.placement.asked)

    def test_refused(self):
        raised = self.assertRaises(
            RuntimeError, self.providers.set_aggregates, 'one', ['no UUID']
        )
        self.assertIn("'no UUID' is not a 'uuid'", str(raised))
