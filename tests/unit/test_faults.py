# SPDX-License-Identifier: Apache-2.0

import logging

import fixtures
import testtools

from nova_ext_sched import faults


class FaultLogTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.output = self.useFixture(
            fixtures.FakeLogger(name=__name__, level=logging.WARNING)
        )
        self.faults = faults.FaultLog(__name__, capacity=2)

    def warn(self, *given):
        """Return what is logged of these faults."""
        before = self.output.output
        for fault in given:
            self.faults.warn(fault)
        return self.output.output.removeprefix(before)

    def test_each_fault_once(self):
        self.assertEqual('one\ntwo\n', self.warn('one', 'one', 'two'))

    def test_key_makes_the_fault_distinct(self):
        for text, key in (('text', 1), ('text', 2), ('another text', 1)):
            self.faults.warn(text, key=key)
        self.assertEqual('text\ntext\n', self.output.output)

    def test_text_is_not_a_format(self):
        text = '100%s of %(hosts)d'
        self.assertEqual(f'{text}\n', self.warn(text))

    def test_memory_is_bounded_and_forgets_the_oldest(self):
        self.warn('one', 'two', 'three')
        self.assertEqual('one\n', self.warn('two', 'one', 'two'))
