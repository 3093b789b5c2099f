# SPDX-License-Identifier: Apache-2.0

import unittest

import ddt
import yaml

from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import references

GOOD = """
projects: [red]
hosts: ['a{1..3}', {name: b, traits: [CUSTOM_X, HW_CPU_X86_AVX]}]
prefer: ['a{2..3}']
aggregates:
  one: {hosts: 'a{1..2}', availability_zone: az1}
  two: {hosts: [a3, b], metadata: {availability_zone: az2}}
flavors: {small: {}}
images: {linux: {}}
server_groups:
  apart: {policy: anti-affinity}
  reds: {policy: affinity, project: red}
steps:
- {boot: x, flavor: small, image: linux, count: 2, group: apart}
- {boot: y, flavor: small, project: red, group: reds, host: a1}
- {boot: z, flavor: small, availability_zone: 'az2:b', expect: b}
- {boot: v, flavor: small, availability_zone: nova, image: linux, volume: true}
- {migrate: ['x-{1..2}', y], expect: {hosts: ['a{1..3}'], per_host: {b: 0}}}
- {aggregate: one, add_hosts: b, remove_hosts: ['a{1..2}']}
- {delete: x-1}
- {rebuild: x-2, image: linux, expect: no valid host}
- {rebuild: x-2, image: linux, expect: refused by nova}
"""

BOOT = {'boot': 'new', 'flavor': 'small'}


def faults(data):
    doc = document.Document('s', data, {})
    return [str(fault) for fault in references.faults(doc)]


@ddt.ddt
class ReferencesTest(unittest.TestCase):
    def test_good(self):
        self.assertEqual([], faults(yaml.safe_load(GOOD)))

    @ddt.unpack
    @ddt.data(
        ({'hosts': ['c', 'c']}, "hosts[1]: expected each host once, got 'c'"),
        (
            {'hosts': ['c{3..1}']},
            'hosts[0]: expected a pattern of at most 1000 names such as '
            'compute{01..50}, got c{3..1}, a range that ends before',
        ),
        (
            {'hosts': [{'name': 'c', 'traits': ['AVX', 'CUSTOM_y']}]},
            'hosts[0].traits[0]: expected a standard trait',
            'hosts[0].traits[1]: expected a standard trait',
        ),
        (
            {'prefer': ['nowhere']},
            'prefer: expected a declared host (a1, a2, a3, b), got',
        ),
        (
            {'aggregates': {'x': {'hosts': ['nowhere']}}},
            'aggregates.x.hosts: expected a declared host',
        ),
        (
            {
                'aggregates': {
                    'x': {'hosts': 'b', 'availability_zone': 'az1'},
                    'y': {'hosts': 'b', 'availability_zone': 'az2'},
                }
            },
            'aggregates.y.hosts: expected hosts in one availability zone '
            'each, got b in az1 and az2',
        ),
        (
            {
                'server_groups': {
                    'g': {'policy': 'affinity', 'project': 'blue'}
                }
            },
            'server_groups.g.project: expected a declared project (default, '
            "red), got 'blue'",
        ),
    )
    def test_fault(self, changes, *beginnings):
        data = yaml.safe_load(GOOD)
        known = [] if 'hosts' not in changes else ['prefer', 'aggregates']
        for key in known:
            del data[key]
        if known or 'aggregates' in changes or 'server_groups' in changes:
            data['steps'] = []
        self.check({**data, **changes}, beginnings)

    @ddt.unpack
    @ddt.data(
        (
            {**BOOT, 'flavor': 'big'},
            "flavor: expected a declared flavor (small), got 'big'",
        ),
        (
            {**BOOT, 'image': 'bsd'},
            "image: expected a declared image (linux), got 'bsd'",
        ),
        ({**BOOT, 'project': 'blue'}, 'project: expected a declared project'),
        ({**BOOT, 'host': 'c'}, 'host: expected a declared host'),
        (
            {**BOOT, 'availability_zone': 'az3'},
            'availability_zone: expected a declared availability zone (az1, '
            "az2, nova), got 'az3'",
        ),
        (
            {**BOOT, 'availability_zone': 'az1:c'},
            'availability_zone: expected a declared host',
        ),
        (
            {**BOOT, 'availability_zone': 'az1::c'},
            'availability_zone: expected a declared host (a1, a2, a3, b), '
            "got 'c'",
        ),
        (
            {**BOOT, 'availability_zone': 'az3:c:d'},
            'availability_zone: expected a declared availability zone',
            'availability_zone: expected a declared host',
            'availability_zone: expected a declared host (a1, a2, a3, b), '
            "got 'd'",
        ),
        (
            {**BOOT, 'availability_zone': 'az1:a1:a1:a1'},
            'availability_zone: expected a declared host (a1, a2, a3, b), '
            "got 'a1:a1'",
        ),
        ({**BOOT, 'group': 'none'}, 'group: expected a declared server group'),
        (
            {**BOOT, 'group': 'reds'},
            'group: expected a server group of the project default, got reds, '
            'of red',
        ),
        (
            {**BOOT, 'volume': True},
            'volume: expected an image to make the volume of, got nothing',
        ),
        (
            {**BOOT, 'boot': 'y'},
            "boot: expected a name that no server had, got 'y'",
        ),
        (
            {**BOOT, 'boot': 'x', 'count': 2},
            'boot: expected a name that no server had',
            'boot: expected a name that no server had',
        ),
        ({**BOOT, 'expect': ['b', 'c']}, 'expect: expected a declared host'),
        (
            {**BOOT, 'expect_plain': {'hosts': 'c', 'per_host': {'d': 1}}},
            'expect_plain.hosts: expected a declared host',
            'expect_plain.per_host.d: expected a declared host',
        ),
        (
            {'migrate': 'q'},
            "migrate: expected a server that an earlier step boots, got 'q'",
        ),
        (
            {'migrate': 'x'},
            'migrate: expected a server that an earlier step boots',
        ),
        (
            {'migrate': 'x-1'},
            'migrate: expected a server that still exists, got x-1, which',
        ),
        (
            {'aggregate': 'three'},
            "aggregate: expected a declared aggregate (one, two), got 'three'",
        ),
        (
            {'aggregate': 'one', 'add_hosts': 'c'},
            'add_hosts: expected a declared host',
        ),
    )
    def test_step(self, step, *beginnings):
        data = yaml.safe_load(GOOD)
        data['steps'].append(step)
        self.check(data, [f'steps[9].{text}' for text in beginnings])

    def check(self, data, beginnings):
        found = faults(data)
        self.assertEqual(len(beginnings), len(found), found)
        for beginning, fault in zip(beginnings, found, strict=True):
            self.assertEqual('s: ' + beginning, fault[: len(beginning) + 3])

    @ddt.data(
        *('az2', 'az2:b', 'az2:b:b', 'az2::b', 'az2:b:', 'az2::'),
        *(':b', '::b', ':a1:b', ':'),
    )
    def test_zone(self, zone):
        data = yaml.safe_load(GOOD)
        data['steps'].append({**BOOT, 'availability_zone': zone})
        self.check(data, [])

    @ddt.unpack
    @ddt.data(
        ('east', {'default_availability_zone': 'east'}),
        ('5', {'default_availability_zone': 5}),
        ('nova', {'default_schedule_zone': 'az1'}),
    )
    def test_default_zone(self, zone, options):
        data = yaml.safe_load(GOOD)
        data['nova_conf'] = {'DEFAULT': options}
        data['steps'] = [{**BOOT, 'availability_zone': zone}]
        self.check(data, [])

    def test_default_zone_that_is_another(self):
        data = yaml.safe_load(GOOD)
        data['nova_conf'] = {'DEFAULT': {'default_availability_zone': 'east'}}
        data['steps'] = [{**BOOT, 'availability_zone': 'nova'}]
        self.check(
            data,
            [
                'steps[0].availability_zone: expected a declared availability '
                "zone (az1, az2, east), got 'nova'"
            ],
        )

    def test_zone_that_a_step_makes(self):
        data = yaml.safe_load(GOOD)
        change = {'aggregate': 'one', 'set': {'availability_zone': 'late'}}
        boot = {**BOOT, 'availability_zone': 'late'}
        data['steps'] = [boot, change, {**boot, 'boot': 'newer'}]
        self.check(
            data,
            [
                'steps[0].availability_zone: expected a declared availability '
                "zone (az1, az2, nova), got 'late'"
            ],
        )

    @ddt.data(
        None,
        3,
        [],
        {},
        {'hosts': 3, 'steps': 3},
        {'nova_conf': 3},
        {'nova_conf': {'DEFAULT': []}},
        {
            'hosts': [3, {}, {'name': 3, 'traits': 3}],
            'aggregates': [],
            'server_groups': {'g': 3},
            'projects': [3],
            'prefer': [3],
            'steps': [
                3,
                {},
                {'boot': 3, 'flavor': 3, 'count': 'x', 'group': []},
                {'boot': 'x', 'count': 2.0},
                {'delete': {}},
                {'aggregate': 3, 'set': []},
                {'boot': 'x', 'expect': 3, 'availability_zone': 3},
            ],
        },
    )
    def test_wrong_types_are_left_to_the_form(self, data):
        self.assertEqual([], faults(data))
