# SPDX-License-Identifier: Apache-2.0

import logging

import fixtures
import testtools

from nova_ext_sched import log_once


class LogOnceTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.output = self.useFixture(
            fixtures.FakeLogger(name=__name__, level=logging.WARNING)
        )
        self.log = log_once.LogOnce(__name__, capacity=2)

    def warn(self, *messages):
        """Return what is logged of these messages."""
        before = self.output.output
        for message in messages:
            self.log.warning(message)
        return self.output.output.removeprefix(before)

    def test_each_message_once(self):
        self.assertEqual('one\ntwo\n', self.warn('one', 'one', 'two'))

    def test_key_makes_the_message_distinct(self):
        for text, key in (('text', 1), ('text', 2), ('another text', 1)):
            self.log.warning(text, key=key)
        self.assertEqual('text\ntext\n', self.output.output)

    def test_text_is_not_a_format(self):
        text = '100%s of %(hosts)d'
        self.assertEqual(f'{text}\n', self.warn(text))

    def test_memory_is_bounded_and_forgets_the_oldest(self):
        self.warn('one', 'two', 'three')
        self.assertEqual('one\n', self.warn('two', 'one', 'two'))
