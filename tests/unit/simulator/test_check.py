# SPDX-License-Identifier: Apache-2.0

import pathlib
import tempfile
import textwrap
import unittest

import ddt

from nova_ext_sched import exception
from nova_ext_sched.simulator import check

SCENARIO = """
    hosts: [a]
    flavors:
      small: {}
    steps:
      - {boot: x, flavor: small}
"""


EVERY_VALUE = """
    hosts: [a]
    nova_conf: {DEFAULT: {default_availability_zone: VALUE}}
    aggregates: {x: {metadata: {k: VALUE}}}
    flavors: {small: {extra_specs: {k: VALUE}}}
    images: {x: {properties: {k: VALUE}}}
    server_groups: {x: {policy: affinity, rules: {k: VALUE}}}
    steps:
      - {boot: x, flavor: small, hints: {k: VALUE, l: [VALUE]}}
      - {aggregate: x, set: {k: VALUE}}
"""


@ddt.ddt
class LoadTest(unittest.TestCase):
    def load(self, text):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / 's.yaml'
            file.write_text(textwrap.dedent(text))
            return check.load(str(file))

    def test_scenario(self):
        doc, declared = self.load(SCENARIO)
        self.assertEqual(['a'], doc.data['hosts'])
        self.assertEqual('a', declared.hosts[0].name)

    @ddt.unpack
    @ddt.data(
        ('"010"', '010'),
        ("'yes'", 'yes'),
        ('7', '7'),
        ('-1', '-1'),
        ('08', '08'),
        ('1.10.0', '1.10.0'),
        ('"2026-01-01"', '2026-01-01'),
        ('"~"', '~'),
    )
    def test_values_are_as_they_were_written(self, written, expected):
        _, declared = self.load(EVERY_VALUE.replace('VALUE', written))
        boot, aggregate = declared.steps
        found = [
            declared.nova_conf['DEFAULT']['default_availability_zone'],
            declared.aggregates[0].metadata['k'],
            declared.flavors[0].extra_specs['k'],
            declared.images['x']['k'],
            declared.server_groups[0].rules['k'],
            boot.arguments['hints']['k'],
            *boot.arguments['hints']['l'],
            aggregate.arguments['set']['k'],
        ]
        self.assertEqual([expected] * 8, list(map(str, found)))

    @ddt.data(
        *('010', '0x10', '1_000', '12:30', '1.10', '1.0e+3', '.inf'),
        *('yes', 'on', 'no', 'true'),
        *('2026-01-01', '~', '!!binary aGk='),
    )
    def test_values_that_would_be_others(self, written):
        with self.assertRaises(exception.ScenarioInvalid) as raised:
            self.load(EVERY_VALUE.replace('VALUE', written))
        faults = raised.exception.faults
        self.assertEqual(
            [3, 4, 5, 6, 7, 9, 9, 10],
            [fault.line for fault in faults],
            '\n'.join(map(str, faults)),
        )

    def test_faults_of_every_kind_by_line(self):
        with self.assertRaises(exception.ScenarioInvalid) as raised:
            self.load(
                SCENARIO
                + """
    plain:
      nova_conf:
        DEFAULT: {host: x, periodic_enable: 17}
    nova_conf:
      scheduler: {max_attempts: many, nothing: 1}
      scheduling: {}
      compute_driver: {}
    prefer: [b]
    host_filter: []
"""
            )
        faults = raised.exception.faults
        self.assertEqual(
            sorted(fault.line for fault in faults),
            [fault.line for fault in faults],
        )
        text = '\n'.join(map(str, faults))
        for expected in (
            'prefer: expected a declared host',
            'host_filter: expected one of the keys',
            'plain.nova_conf.DEFAULT.host: expected an option that the '
            'simulator does not set itself',
            'plain.nova_conf.DEFAULT.periodic_enable: expected the option',
            'nova_conf.scheduler.max_attempts: expected the option',
            'nova_conf.scheduler.nothing: expected an option of [scheduler]',
            'nova_conf.scheduling: expected an option group of nova.conf',
            'nova_conf.compute_driver: expected an option group of nova.conf',
        ):
            self.assertIn(expected, text)
        self.assertEqual(8, len(faults), text)
