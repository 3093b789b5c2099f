# SPDX-License-Identifier: Apache-2.0

import unittest

import ddt

from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import expectation
from nova_ext_sched.simulator import scenario
from tests.unit.simulator import tables

LEAST = """
hosts: [a]
flavors: {small: {}}
steps: [{boot: x, flavor: small}]
"""

MOST = """
description: all of it
nova_conf: {scheduler: {max_attempts: 2}}
host_filters: [One]
plain: {nova_conf: {scheduler: {max_attempts: 3}}, host_filters: []}
projects: [red]
hosts: ['a{1..2}', {name: 'b{1..2}', vcpus: 2, traits: [CUSTOM_X]}]
prefer: ['b{1..2}', a1]
imply_traits: false
placement: {max_request_line: 4094}
aggregates:
  e{1..2}: {hosts: a1}
  g: {hosts: ['a{1..2}', b1], metadata: {k: 1}, availability_zone: z}
flavors: {f: {vcpus: 2, memory_mb: 3, disk_gb: 4, extra_specs: {k: 5}}}
images: {i: {properties: {k: 6}}}
server_groups: {s: {policy: anti-affinity, rules: {r: 7}, project: red}}
steps:
- {boot: x, flavor: f, count: 2, hints: {k: 8, l: [9]}, expect: a1,
   expect_plain: a2}
- {aggregate: g, set: {k: 010}}
"""


#: A step, its servers and its words.
STEPS = """
{boot: x, flavor: f}
  servers: x
  boot x (flavor f)
{boot: x, flavor: f, count: 1}
  servers: x
  boot x ×1 (flavor f)
{boot: x, flavor: f, count: 2}
  servers: x-1 x-2
  boot x ×2 (flavor f)
{boot: x, flavor: f, hints: {a: [b, c], d: 1}}
  servers: x
  boot x (flavor f, hints a=b c d=1)
{delete: ['x-{1..2}', y]}
  servers: x-1 x-2 y
  delete x-{1..2}, y
{migrate: x, live: true}
  servers: x
  migrate x (live yes)
{resize: x, flavor: f, confirm: false}
  servers: x
  resize x (flavor f, confirm no)
{aggregate: g, set: {k: v}, unset: [l, m]}
  servers:
  aggregate g (set k=v, unset l m)
"""


@ddt.ddt
class ParseTest(unittest.TestCase):
    def test_least(self):
        declared = scenario.parse(document.parse(LEAST))
        self.assertEqual([scenario.Host('a')], declared.hosts)
        self.assertEqual([scenario.Flavor('small')], declared.flavors)
        self.assertEqual('', declared.description)
        self.assertEqual({}, declared.nova_conf)
        self.assertEqual({}, declared.plain)
        self.assertTrue(declared.imply_traits)
        (step,) = declared.steps
        self.assertEqual(expectation.Expectation(), step.expect)
        self.assertIsNone(step.expect_plain)

    def test_most(self):
        declared = scenario.parse(document.parse(MOST))
        self.assertEqual(['One'], declared.host_filters)
        self.assertEqual(
            {
                'nova_conf': {'scheduler': {'max_attempts': '3'}},
                'host_filters': [],
            },
            declared.plain,
        )
        self.assertEqual(
            ['a1', 'a2', 'b1', 'b2'], [host.name for host in declared.hosts]
        )
        self.assertEqual(
            scenario.Host('b2', vcpus=2, traits=['CUSTOM_X']),
            declared.hosts[3],
        )
        self.assertEqual(['b1', 'b2', 'a1'], declared.prefer)
        self.assertFalse(declared.imply_traits)
        self.assertEqual({'max_request_line': 4094}, declared.placement)
        self.assertEqual(
            [
                scenario.Aggregate('e1', ['a1']),
                scenario.Aggregate('e2', ['a1']),
                scenario.Aggregate('g', ['a1', 'a2', 'b1'], {'k': '1'}, 'z'),
            ],
            declared.aggregates,
        )
        self.assertEqual(
            [scenario.Flavor('f', 2, 3, 4, {'k': '5'})], declared.flavors
        )
        self.assertEqual({'i': {'k': '6'}}, declared.images)
        # Rules are numbers in the API's JSON.
        self.assertEqual(
            [scenario.ServerGroup('s', 'anti-affinity', {'r': '7'}, 'red')],
            declared.server_groups,
        )
        step, change = declared.steps
        self.assertEqual({'k': '8', 'l': ['9']}, step.arguments['hints'])
        self.assertEqual({'k': '010'}, change.arguments['set'])
        self.assertEqual(['a1'], step.expect.hosts)
        self.assertEqual(['a2'], step.expect_plain.hosts)

    @ddt.unpack
    @ddt.data(*tables.read(STEPS))
    def test_step(self, item, servers, words):
        data = {**document.parse(LEAST), 'steps': [item]}
        (step,) = scenario.parse(data).steps
        self.assertEqual(servers, ' '.join(['servers:', *step.servers]))
        self.assertEqual(words, str(step))

    def test_domain_keys(self):
        boot = {
            'boot': 'x',
            'flavor': 'small',
            'expect': {'max_per_domain': {'rack': 1}},
            'expect_plain': {'min_domains': {'row': 1}},
        }
        data = {**document.parse(LEAST), 'steps': [boot]}
        (step,) = scenario.parse(data).steps
        self.assertEqual({'rack', 'row'}, step.domain_keys)
