# SPDX-License-Identifier: Apache-2.0

import logging
import unittest

from nova_ext_sched.simulator import reasons


class ReasonsTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.handler = reasons.Reasons()

    def log(self, name, level, *message):
        self.handler.handle(
            logging.LogRecord(
                name, level, '', 0, message[0], message[1:], None
            )
        )

    def test_ours(self):
        self.log('nova_ext_sched.x', logging.DEBUG, '%d of %d', 1, 2)
        self.log('nova_ext_sched.y', logging.ERROR, 'first\nsecond')
        self.assertEqual(('1 of 2', 'first'), self.handler.take())

    def test_each_once_and_only_once_taken(self):
        for _ in range(3):
            self.log('nova_ext_sched.x', logging.INFO, 'again')
        self.assertEqual(('again',), self.handler.take())
        self.assertEqual((), self.handler.take())

    def test_nova(self):
        self.log('nova.filters', logging.INFO, 'Filter X returned 0 hosts')
        self.log('nova.filters', logging.INFO, 'Filtering removed all hosts')
        self.log(
            'nova.scheduler.manager',
            logging.INFO,
            'Got no allocation candidates from it. This could be much.',
        )
        self.log('nova.compute.manager', logging.ERROR, 'Nothing of ours')
        self.assertEqual(
            (
                'Filter X returned 0 hosts',
                'Got no allocation candidates from it',
            ),
            self.handler.take(),
        )

    def test_levels_for_every_logger(self):
        self.assertEqual(
            {'nova_ext_sched', *reasons._NOVA}, reasons.LEVELS.keys()
        )
