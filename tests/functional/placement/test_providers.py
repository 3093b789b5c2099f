# SPDX-License-Identifier: Apache-2.0

"""Providers of hosts without a nova-compute, in a real placement."""

import uuid

import ddt
from nova.tests.functional.api import client

from nova_ext_sched import exception
from nova_ext_sched.cmd.simulate import providers
from nova_ext_sched.cmd.simulate import scenario
from tests.functional.placement import base

SMALL = {
    'VCPU': {'total': 4, 'max_unit': 2, 'allocation_ratio': 2.0},
    'CUSTOM_GPU': {'total': 2},
}
LARGE = {'VCPU': {'total': 64, 'reserved': 4}}
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


@ddt.ddt
class ProvidersTest(base.PlacementTestCase):
    def setUp(self):
        super().setUp()
        self.placement = Placement(self.raw)
        self.providers = providers.Providers(self.placement)
        self.uuids = {host: str(uuid.uuid4()) for host in ('one', 'two')}

    def add(self, **inventories):
        """Make providers, by host."""
        for host, given in inventories.items():
            self.providers.add(host, self.uuids[host], given)

    def read(self, host, part):
        return self.raw.get(
            f'/resource_providers/{self.uuids[host]}/{part}',
            microversion='1.36',
        ).json()

    def inventories(self, host):
        return self.read(host, 'inventories')['inventories']

    def assertUsed(self, host, **used):
        self.assertEqual(used, self.read(host, 'usages')['usages'])

    def assertInvalid(self, path, expected, **inventories):
        invalid = self.assertRaises(
            exception.ScenarioInvalid, self.add, **inventories
        )
        [finding] = invalid.findings
        self.assertEqual((path, expected), (finding.path, finding.expected))
        return finding

    def test_names(self):
        self.add(one=SMALL, two=LARGE)
        found = self.raw.get('/resource_providers').json()
        self.assertEqual(
            self.uuids,
            {one['name']: one['uuid'] for one in found['resource_providers']},
        )
        # A nova-compute makes its own.
        others = providers.Providers(self.placement)
        for host, provider in self.uuids.items():
            self.assertEqual(provider, self.providers.uuid(host))
            self.assertEqual(provider, others.uuid(host))

    def test_name_taken(self):
        self.add(one=SMALL)
        self.uuids['one'] = str(uuid.uuid4())
        finding = self.assertInvalid(
            ('hosts', 'one'), 'what placement takes', one=SMALL
        )
        self.assertIn('one', finding.got)

    def test_traits_and_aggregates(self):
        aggregate = str(uuid.uuid4())
        self.add(one=SMALL, two=LARGE)
        self.providers.set_aggregates('one', [aggregate])
        self.providers.add_traits('one', [TRAIT])
        # Whatever was written in between.
        self.allocate(one={'VCPU': 1})
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
        self.add(one=SMALL)
        self.providers.add_traits('one', [TRAIT])
        self.placement.asked.clear()
        self.providers.add_traits('one', [TRAIT])
        self.assertEqual([('get', 'resource_providers')], self.placement.asked)

    def test_inventories(self):
        self.add(one=SMALL, two=LARGE)
        for host, given in (('one', SMALL), ('two', LARGE)):
            found = self.inventories(host)
            self.assertEqual(given.keys(), found.keys())
            for name, fields in given.items():
                self.assertLessEqual(fields.items(), found[name].items())

    @ddt.data((4, True), (5, False))
    @ddt.unpack
    def test_reserved(self, reserved, taken):
        inventories = {'VCPU': {'total': 4, 'reserved': reserved}}
        if taken:
            self.add(one=inventories)
            return
        finding = self.assertInvalid(
            ('hosts', 'one', 'inventories', 'VCPU', 'reserved'),
            'at most the total, 4',
            one=inventories,
        )
        self.assertEqual('5', finding.got)

    def test_unknown_resource_class(self):
        finding = self.assertInvalid(
            ('hosts', 'one'),
            'what placement takes',
            one={'NOBODY_MADE_IT': {'total': 1}},
        )
        self.assertIn('NOBODY_MADE_IT', finding.got)

    def allocate(self, **amounts):
        """Let a consumer of each host use amounts; return the consumers."""
        consumers = {host: str(uuid.uuid4()) for host in amounts}
        self.placement.asked.clear()
        self.providers.allocate(
            {consumers[host]: (host, amounts[host]) for host in amounts}
        )
        return consumers

    def test_allocate(self):
        self.add(one=SMALL, two=LARGE)
        consumers = self.allocate(
            one={'VCPU': 2, 'CUSTOM_GPU': 0}, two={'VCPU': 60}
        )
        self.assertEqual([('post', 'allocations')], self.placement.asked)
        self.assertUsed('one', VCPU=2, CUSTOM_GPU=0)
        self.assertUsed('two', VCPU=60)
        found = self.raw.get(
            f'/allocations/{consumers["one"]}', microversion='1.36'
        ).json()
        self.assertEqual(scenario.DEFAULT_PROJECT, found['project_id'])
        self.providers.release(consumers['one'])
        self.assertUsed('one', VCPU=0, CUSTOM_GPU=0)
        self.assertUsed('two', VCPU=60)

    def test_used_of_what_the_host_does_not_have(self):
        self.add(one=SMALL)
        invalid = self.assertRaises(
            exception.ScenarioInvalid, self.allocate, one={'MEMORY_MB': 1}
        )
        self.assertEqual(
            [
                'hosts.one.inventories: expected MEMORY_MB, which is used '
                'there, got no such class'
            ],
            [str(finding) for finding in invalid.findings],
        )
        self.assertEqual([], self.placement.asked)

    def test_nothing_to_allocate(self):
        self.add(one=SMALL)
        self.allocate(one={'VCPU': 0})
        self.assertEqual([], self.placement.asked)

    @ddt.data(
        # More than one server may have, and more than the host has.
        {'VCPU': 3},
        {'VCPU': 9},
        {'CUSTOM_GPU': 3, 'VCPU': 1},
    )
    def test_beyond_the_inventories(self, amounts):
        self.add(one=SMALL, two=LARGE)
        before = self.inventories('one'), self.inventories('two')
        self.allocate(one=amounts, two={'VCPU': 1})
        self.assertUsed('one', **{'VCPU': 0, 'CUSTOM_GPU': 0, **amounts})
        self.assertUsed('two', VCPU=1)
        self.assertEqual(
            before, (self.inventories('one'), self.inventories('two'))
        )
