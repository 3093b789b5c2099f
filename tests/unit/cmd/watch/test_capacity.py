# SPDX-License-Identifier: Apache-2.0

import math
import types

import ddt
import fixtures
import testtools

from nova_ext_sched import exception
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.watch import capacity
from nova_ext_sched.cmd.watch import metrics

IMAGE = '8d5b8d9a-6d4f-4a7e-9f6f-7d9b6e1f1c11'


@ddt.ddt
class CapacityTestCase(testtools.TestCase):
    """What is counted when, and which figures there are then."""

    def setUp(self):
        super().setUp()
        self.now = 1000.0
        test = self

        class HostManager:
            def __init__(self):
                test.managers.append(self)
                if test.cloud_fault:
                    raise test.cloud_fault
                self.silent_cells = dict(test.silent)
                self.enabled_cells = [types.SimpleNamespace(uuid='cell1')]

            def cell_name(self, uuid):
                return f'name of {uuid}'

        class Survey:
            def __init__(self, wanted, scheduler):
                test.assertIs(test.managers[-1], scheduler)
                test.surveys.append(wanted)
                test.assertEqual([], wanted.hint)
                self.image = wanted.image

            def get_flavors(self, names):
                [name] = names
                test.asked.append((name, self.image))
                test.during()
                found = test.results[name]
                if isinstance(found, Exception):
                    raise found
                return [found]

            def count(self, found):
                servers, fault = found
                return {
                    'servers': servers,
                    'unlimited': servers is None,
                    'fault': fault,
                }

        for name, replacement in {
            'time.time': lambda: self.now,
            'nova_ext_sched.cmd.kept_hosts.HostManager': (HostManager),
            'nova_ext_sched.cmd.capacity.survey.Survey': Survey,
        }.items():
            self.useFixture(fixtures.MonkeyPatch(name, replacement))
        self.log = self.useFixture(fixtures.FakeLogger())
        self.metrics = metrics.Metrics()
        self.managers, self.surveys, self.asked = [], [], []
        self.during = lambda: None
        #: Number of servers, and the fault, of each flavor; or what is raised.
        self.results = {'small': (9, ''), 'large': (0, '')}
        #: What the databases raise, and the cells that are away.
        self.cloud_fault = None
        self.silent = {}

    def make(self, *wanted):
        self.capacity = capacity.Capacity(self.metrics, wanted)

    def turn_at(self, now):
        self.now = float(now)
        self.capacity.count()

    def figure(self, flavor, image='', name='servers'):
        return self.metrics.registry.get_sample_value(
            f'nova_ext_sched_capacity_{name}',
            {'flavor': flavor, 'image': image},
        )

    def figures(self):
        return {flavor: self.figure(flavor) for flavor in self.results}

    def test_the_figures(self):
        """Hosts are read once."""
        self.make(('small', ''), ('small', IMAGE), ('large', ''))
        self.turn_at(1000)
        self.assertEqual({'small': 9, 'large': 0}, self.figures())
        self.assertEqual(9, self.figure('small', IMAGE))
        self.assertEqual(
            [('small', None), ('small', IMAGE), ('large', None)], self.asked
        )
        self.assertEqual(1, len(self.managers))
        self.assertEqual('', self.log.output)

    def test_each_time_the_cloud_is_another_one(self):
        self.make(('small', ''))
        for now in (1000, 1060):
            self.turn_at(now)
        self.assertEqual(2, len(self.asked))
        self.assertEqual(1060, self.figure('small', name='timestamp_seconds'))
        self.assertEqual(2, len(self.managers))

    def test_written_twice(self):
        self.make(('small', ''), ('small', ''))
        self.turn_at(1000)
        self.assertEqual(1, len(self.asked))

    def test_no_end(self):
        self.results['small'] = (None, '')
        self.make(('small', ''))
        self.turn_at(1000)
        self.assertEqual(math.inf, self.figure('small'))

    @ddt.data(
        (exception.InvalidValue(where='--flavor', expected='x', got='small'),
         'InvalidValue: --flavor: expected x'),
        ((None, 'JsonFilter: expected an answer'), 'JsonFilter: expected'),
        (LookupError('no such'), 'LookupError: no such'),
    )  # fmt: skip
    @ddt.unpack
    def test_a_flavor_that_cannot_be_counted(self, problem, words):
        """It has no figure, others have, and the log says it once."""
        self.make(('small', ''), ('large', ''))
        self.turn_at(1000)
        good, self.results['small'] = self.results['small'], problem
        self.turn_at(1060)
        self.turn_at(1120)
        self.assertEqual({'small': None, 'large': 0}, self.figures())
        self.assertEqual(1000, self.figure('small', name='timestamp_seconds'))
        self.assertEqual(1120, self.figure('large', name='timestamp_seconds'))
        [line] = self.log.output.splitlines()
        self.assertIn('Nobody knows how many servers fit of small: ', line)
        self.assertIn(words, line)
        # It is back, and gone once more.
        self.results['small'] = good
        self.turn_at(1180)
        self.assertEqual({'small': 9, 'large': 0}, self.figures())
        self.results['small'] = problem
        self.turn_at(1240)
        self.assertEqual(2, len(self.log.output.splitlines()))

    def test_an_image_that_is_gone(self):
        """The line names it, for the flavor alone is known."""

        def fail():
            if self.surveys[-1].image:
                raise exception.InvalidValue(
                    where='--image', expected='an image', got=IMAGE
                )

        self.during = fail
        self.make(('small', ''), ('small', IMAGE))
        self.turn_at(1000)
        self.assertEqual(9, self.figure('small'))
        self.assertIsNone(self.figure('small', IMAGE))
        self.assertIn(f'fit of small,{IMAGE}: ', self.log.output)

    def test_placement_is_away(self):
        """For all; no other flavor waits for it."""
        self.make(('large', ''), ('small', ''), ('large', IMAGE))
        self.turn_at(1000)
        self.results['small'] = nova_scheduler.PlacementFailed(
            query='/x', cause='no route'
        )
        self.asked.clear()
        for now in (1060, 1120):
            self.turn_at(now)
        self.assertEqual({'large': 0, 'small': None}, self.figures())
        self.assertIsNone(self.figure('large', IMAGE))
        self.assertEqual(2 * [('large', None), ('small', None)], self.asked)
        [line] = self.log.output.splitlines()
        self.assertIn(f'fit of small, large,{IMAGE}: PlacementFailed: ', line)

    def test_a_database_is_away(self):
        self.make(('small', ''), ('large', ''))
        self.turn_at(1000)
        self.cloud_fault = nova_scheduler.CellFailed(cell='a', cause='b')
        self.turn_at(1060)
        self.assertEqual({'small': None, 'large': None}, self.figures())
        self.assertIn('fit of small, large: CellFailed: ', self.log.output)

    def test_a_cell_is_away(self):
        """Its hosts would count for nothing."""
        self.make(('small', ''), ('large', ''))
        self.turn_at(1000)
        self.silent = {'cell1': 'it hangs'}
        self.turn_at(1060)
        self.assertEqual({'small': None, 'large': None}, self.figures())
        self.assertIn('name of cell1', self.log.output)
        self.assertIn('it hangs', self.log.output)

    def test_a_disabled_cell_is_away(self):
        """nova uses none of its hosts."""
        self.silent = {'cell2': 'it hangs'}
        self.make(('small', ''))
        self.turn_at(1000)
        self.assertEqual(9, self.figure('small'))
