# SPDX-License-Identifier: Apache-2.0

import unittest

import ddt
import yaml

from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import form
from nova_ext_sched.simulator import schema

GOOD = """
hosts: [a, 'b{1..3}', {name: c, vcpus: 4, memory_mb: 1, disk_gb: 1}]
flavors: {small: {}}
steps: [{boot: x, flavor: small}]
"""


def faults(**changes):
    data = {**yaml.safe_load(GOOD), **changes}
    doc = document.Document(
        's', {key: val for key, val in data.items() if val is not None}, {}
    )
    return [str(fault) for fault in form.faults(doc)]


@ddt.ddt
class FormTest(unittest.TestCase):
    def test_good(self):
        self.assertEqual([], faults())

    @ddt.data(None, 'text', 3, [])
    def test_no_mapping(self, data):
        (fault,) = form.faults(document.Document('s', data, {}))
        self.assertEqual(
            's: (top): expected a mapping with the keys of a scenario, got '
            f'{data!r}',
            str(fault),
        )

    @ddt.unpack
    @ddt.data(
        (
            {'steps': None, 'hosts': None},
            '(top): expected the key hosts and steps, got flavors',
        ),
        ({'host': []}, 'host: expected one of the keys description, '),
        ({'hosts': []}, 'hosts: expected a list of hosts, got []'),
        ({'hosts': 'a'}, "hosts: expected a list of hosts, got 'a'"),
        ({'hosts': [3]}, 'hosts[0]: expected a host, a pattern such as'),
        ({'hosts': ['a b']}, 'hosts[0]: expected a host, a pattern such'),
        (
            {'hosts': [{'vcpus': 1}]},
            'hosts[0]: expected the key name, got vcpus',
        ),
        (
            {'hosts': [{'name': 'a', 'vcpus': 0}]},
            'hosts[0].vcpus: expected an integer, 1 or more, got 0',
        ),
        (
            {'hosts': [{'name': 'a', 'vcpus': True}]},
            'hosts[0].vcpus: expected an integer, 1 or more, got True',
        ),
        (
            {'hosts': [{'name': 'a', 'vcpus': 4.0}]},
            'hosts[0].vcpus: expected an integer, 1 or more, got 4.0',
        ),
        (
            {'hosts': [{'name': 'a', 'ram': 1}]},
            'hosts[0].ram: expected one of the keys name, vcpus, memory_mb, '
            'disk_gb, traits, got ram',
        ),
        (
            {'flavors': ['small']},
            "flavors: expected a mapping of flavors by name, got ['small']",
        ),
        ({'flavors': {' x': {}}}, "flavors: expected a name, got ' x'"),
        ({'flavors': {'s': None}}, 'flavors.s: expected a mapping with the '),
        (
            {'flavors': {'s': {'extra_specs': {'k': 1.5}}}},
            'flavors.s.extra_specs.k: expected a string or an integer (quote '
            'anything else), got 1.5',
        ),
        (
            {'flavors': {'s': {'extra_specs': {'k': 1.0}}}},
            'flavors.s.extra_specs.k: expected a string or an integer (quote '
            'anything else), got 1.0',
        ),
        (
            {'flavors': {'s': {'extra_specs': {'k': True}}}},
            'flavors.s.extra_specs.k: expected a string or an integer',
        ),
        (
            {'aggregates': {'x': {'host': 'a'}}},
            'aggregates.x.host: expected one of the keys hosts, metadata, '
            'availability_zone, got host',
        ),
        (
            {'aggregates': {'x': {'hosts': 3}}},
            'aggregates.x.hosts: expected a host, a pattern such as',
        ),
        (
            {'aggregates': {'x': {'hosts': ['a', 3]}}},
            'aggregates.x.hosts[1]: expected a host, or a pattern of hosts',
        ),
        (
            {'images': {'x': {'trait:X': 'required'}}},
            'images.x.trait:X: expected one of the keys properties, got',
        ),
        (
            {'server_groups': {'g': {}}},
            'server_groups.g: expected the key policy, got no key',
        ),
        (
            {
                'server_groups': {
                    'g': {'policy': 'p', 'rules': {'max_server_per_host': 1.0}}
                }
            },
            'server_groups.g.rules.max_server_per_host: expected a string or '
            'an integer (quote anything else), got 1.0',
        ),
        (
            {'nova_conf': {'scheduler': 'x'}},
            "nova_conf.scheduler: expected options and their values, got 'x'",
        ),
        (
            {'nova_conf': {'scheduler': {'x': {}}}},
            "nova_conf.scheduler.x: expected an option's value, got {}",
        ),
        (
            {'plain': {'steps': []}},
            'plain.steps: expected one of the keys nova_conf, host_filters',
        ),
        (
            {'imply_traits': 'yes'},
            "imply_traits: expected true or false, got 'yes'",
        ),
        (
            {'steps': ['boot']},
            'steps[0]: expected a mapping with one of the keys boot, rebuild',
        ),
        ({'steps': [{}]}, 'steps[0]: expected one of the keys boot, rebuild'),
        (
            {'steps': [{'boot': 'a', 'delete': 'b'}]},
            'steps[0]: expected one of the keys boot, rebuild',
        ),
        (
            {'steps': [{'boot': 'a'}]},
            'steps[0]: expected the key flavor, got boot',
        ),
        (
            {'steps': [{'boot': ['a'], 'flavor': 's'}]},
            "steps[0].boot: expected a name, got ['a']",
        ),
        (
            {'steps': [{'boot': 'a', 'flavor': 's', 'count': 0}]},
            'steps[0].count: expected an integer, 1 to 1000, got 0',
        ),
        (
            {'steps': [{'boot': 'a', 'flavor': 's', 'count': 10**9}]},
            'steps[0].count: expected an integer, 1 to 1000, got 1000000000',
        ),
        (
            {'steps': [{'boot': 'a', 'flavor': 's', 'count': 2.0}]},
            'steps[0].count: expected an integer, 1 to 1000, got 2.0',
        ),
        (
            {'steps': [{'boot': 'a', 'flavor': 's', 'confirm': True}]},
            'steps[0].confirm: expected one of the keys boot, flavor, image',
        ),
        (
            {'steps': [{'boot': 'a', 'flavor': 's', 'expect': 3}]},
            "steps[0].expect: expected a host, a list of hosts, 'no valid",
        ),
        (
            {'steps': [{'boot': 'a', 'flavor': 's', 'expect': 'any host'}]},
            "steps[0].expect: expected a host, a list of hosts, 'no valid",
        ),
        (
            {'steps': [{'boot': 'a', 'flavor': 's', 'expect': {}}]},
            'steps[0].expect: expected an expectation, got {}',
        ),
        (
            {'steps': [{'boot': 'a', 'flavor': 's', 'expect': {'host': 'a'}}]},
            'steps[0].expect.host: expected one of the keys hosts, per_host',
        ),
        (
            {'steps': [{'boot': 'a', 'flavor': 's', 'expect': {'hosts': []}}]},
            'steps[0].expect.hosts: expected one or more hosts, got []',
        ),
        (
            {'steps': [{'delete': 'a', 'expect': 'b'}]},
            "steps[0].expect: expected 'refused by nova', got 'b'",
        ),
    )
    def test_fault(self, changes, beginning):
        (fault,) = set(faults(**changes))
        self.assertEqual('s: ' + beginning, fault[: len(beginning) + 3])

    def test_options_may_have_a_fraction(self):
        self.assertEqual(
            [],
            faults(nova_conf={'DEFAULT': {'cpu_allocation_ratio': 16.0}}),
        )

    def test_all_faults(self):
        found = faults(
            hosts=[3],
            imply_traits=3,
            steps=[{'boot': 'x'}, {'delete': 3}, {'boot': 'y'}],
        )
        self.assertEqual(5, len(found), found)

    def test_every_schema_says_what_it_accepts(self):
        def walk(part, path):
            self.assertTrue(
                {'description', 'enum'} & part.keys(), f'{path}: {part}'
            )
            for key, value in part.get('properties', {}).items():
                walk(value, [*path, key])
            for key in ('items', 'additionalProperties'):
                if isinstance(part.get(key), dict):
                    walk(part[key], [*path, key])

        for name, part in [('', schema.SCENARIO), *schema.STEPS.items()]:
            walk(part, [name])
