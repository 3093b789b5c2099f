# SPDX-License-Identifier: Apache-2.0

import logging

import fixtures
from oslo_log import log
import testtools

from nova_ext_sched import faults


class FaultLogTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.output = self.useFixture(
            fixtures.FakeLogger(name=__name__, level=logging.WARNING)
        )
        self.faults = faults.FaultLog(log.getLogger(__name__), capacity=2)

    def test_each_fault_once(self):
        self.assertTrue(self.faults.warn('one'))
        self.assertFalse(self.faults.warn('one'))
        self.assertTrue(self.faults.warn('two'))
        self.assertEqual('one\ntwo\n', self.output.output)

    def test_key_makes_the_fault_distinct(self):
        self.assertTrue(self.faults.warn('text', key=1))
        self.assertTrue(self.faults.warn('text', key=2))
        self.assertFalse(self.faults.warn('another text', key=1))

    def test_text_is_not_a_format(self):
        self.faults.warn('100%s of %(hosts)d')
        self.assertEqual('100%s of %(hosts)d\n', self.output.output)

    def test_memory_is_bounded_and_forgets_the_oldest(self):
        for fault in ('one', 'two', 'three'):
            self.faults.warn(fault)
        self.assertFalse(self.faults.warn('two'))
        self.assertTrue(self.faults.warn('one'))
        self.assertFalse(self.faults.warn('two'))
