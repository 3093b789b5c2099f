# SPDX-License-Identifier: Apache-2.0

import logging
import threading

import fixtures
import testtools

from nova_ext_sched import log_once


class LogOnceTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.output = self.useFixture(
            fixtures.FakeLogger(name=__name__, level=logging.WARNING)
        )
        self.now = 1000.0
        self.useFixture(
            fixtures.MonkeyPatch('oslo_utils.timeutils.now', lambda: self.now)
        )
        self.log = log_once.LogOnce(__name__, capacity=2)

    def warn(self, *messages, after=0):
        """Return what is logged of these messages, some seconds later."""
        self.now += after
        before = self.output.output
        for message in messages:
            self.log.warning(message)
        return self.output.output.removeprefix(before)

    def test_each_message_once(self):
        self.assertEqual('one\ntwo\n', self.warn('one', 'one', 'two'))
        self.assertEqual('', self.warn('one', 'two', after=100_000))

    def test_key_makes_the_message_distinct(self):
        for text, key in (('text', 1), ('text', 2), ('another text', 1)):
            self.log.warning(text, key=key)
        self.assertEqual('text\ntext\n', self.output.output)

    def test_text_is_not_a_format(self):
        text = '100%s of %(hosts)d'
        self.assertEqual(f'{text}\n', self.warn(text))

    def test_what_has_no_room_is_counted(self):
        self.assertEqual('1\n2\n', self.warn(*'123412345'))
        self.assertEqual('', self.warn(*'12345', after=299))
        more = (
            '{} more of this kind in the last {} seconds, besides 2 that are '
            'in the log.\n'
        )
        self.assertEqual(more.format(3, 300), self.warn(*'12345', after=1))
        self.assertEqual('', self.warn(*'12346', after=299))
        # Those of the line before count again where they are met again.
        self.assertEqual(more.format(4, 300), self.warn(*'12', after=1))
        self.assertEqual('', self.warn(*'12', after=1000))

    def test_the_count_says_where_the_rest_is_listed(self):
        self.log = log_once.LogOnce(__name__, 2, log_once.CHECKED)
        self.warn(*'123')
        self.assertIn(
            'that are in the log. nova-ext-sched-status upgrade check lists '
            'what is wrong in aggregates and flavors.\n',
            self.warn('1', after=300),
        )

    def test_level(self):
        form = '%(levelname)s %(message)s'
        logger = fixtures.FakeLogger(__name__, logging.INFO, form)
        output = self.useFixture(logger)
        self.log.warning('1')
        for text in '1223':
            self.log.info(text)
        self.now += 300
        self.log.info('1')
        self.assertEqual(
            'WARNING 1\nINFO 2\nINFO 1 more of this kind in the last 300 '
            'seconds, besides 2 that are in the log.\n',
            output.output,
        )

    def test_a_fault_that_was_forgotten_is_logged_again(self):
        self.warn('one', 'two')
        self.warn('three', after=3600)
        self.assertIn('one\n', self.warn('one', after=3600))

    def test_a_fault_that_nobody_meets_makes_room(self):
        self.warn('one')
        self.warn('two', after=3000)
        self.assertEqual('', self.warn('three', after=599))
        # An hour after the first was met, and not the second.
        self.assertIn('three\n', self.warn('three', 'four', after=1))
        self.assertNotIn('four', self.output.output)
        self.assertEqual('', self.warn('two', 'three', 'one'))

    def test_more_faults_than_there_is_room_for_are_few_lines(self):
        """600 aggregates with two faults each, in each of 50 requests."""
        self.log = log_once.LogOnce(__name__)
        faults = [f'fault {number}' for number in range(1200)]
        lines = [self.warn(*faults, after=60).count('\n') for _ in range(50)]
        # The 100, and a line every five minutes.
        self.assertEqual(100 + 9, sum(lines))
        self.assertIn('1100 more of this kind in the last', self.output.output)

    def test_memory_is_bounded(self):
        for number in range(log_once._MOST + 10):
            self.log.warning('x' * 100, key=number)
        self.assertEqual(2, len(self.log._seen))
        self.assertEqual(log_once._MOST, len(self.log._more))
        self.assertIn('10000+ more of this kind', self.warn('x', after=300))

    def test_threads(self):
        """Each message is logged once, whoever is first."""
        log = log_once.LogOnce(__name__)

        def warn():
            for number in range(100):
                log.warning(f'fault {number}')

        threads = [threading.Thread(target=warn) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expected = sorted(f'fault {number}' for number in range(100))
        self.assertEqual(expected, sorted(self.output.output.splitlines()))
