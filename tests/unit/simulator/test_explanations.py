# SPDX-License-Identifier: Apache-2.0

import logging
import unittest
from unittest import mock

from nova_ext_sched.dryrun.decision import document
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.simulator import explanations

HOSTS = {'u1': 'a', 'u2': 'b', 'u3': 'c'}
ISOLATED = refusals.Refusal(
    'are isolated', 'isolation', 'windows', 'windows wants X'
)


def explain(refused=(), weights=()):
    """Return the document of a request that filters judged."""
    found = matrix.Matrix(HOSTS)
    for number, hosts in enumerate(refused):
        found.add('host filter', f'Filter{number}', refused=hosts)
    for uuid, weight, by_weigher in weights:
        found.prefer(uuid, weight).weights.update(by_weigher)
    return document.build(found, {})


class DescribeTest(unittest.TestCase):
    def test_answer_and_the_words_of_policies(self):
        other = ISOLATED._replace(name='sql', detail='sql wants Y')
        document_ = explain([{'u1': ISOLATED, 'u2': ISOLATED, 'u3': other}])
        self.assertEqual(
            [
                '0 of 3 hosts can take it. 3 are isolated (windows 2, sql 1)',
                'windows wants X',
                'sql wants Y',
            ],
            explanations.say_lines(document_),
        )

    def test_many_words(self):
        hosts = {f'u{number}': str(number) for number in range(7)}
        found = matrix.Matrix(hosts)
        found.add(
            'host filter',
            'F',
            refused={
                uuid: ISOLATED._replace(name=uuid, detail=f'{uuid} says')
                for uuid in hosts
            },
        )
        said = explanations.say_lines(document.build(found, {}))
        self.assertEqual(['u4 says', 'and 2 reasons more'], said[-2:])

    def test_no_word_twice(self):
        # The sentence has it already.
        refusal = refusals.Refusal('are refused by F', detail='no key')
        self.assertEqual(
            ['0 of 3 hosts can take it. 3 are refused by F (no key)'],
            explanations.say_lines(explain([dict.fromkeys(HOSTS, refusal)])),
        )


class DescribeUnusedTest(unittest.TestCase):
    def test_every_constraint_and_the_words_of_policies(self):
        down = refusals.Refusal('are down', 'service that is down')
        said = refusals.Refusal('are refused by Filter1', detail='no key')
        document_ = explain(
            [{'u1': ISOLATED, 'u2': down}, {'u1': said}, {'u1': ISOLATED}]
        )
        self.assertEqual(
            [
                'a not used: Filter0, Filter2: it is isolated (windows wants '
                'X); it is refused by Filter1 (no key)',
                'b not used: Filter0: it is down',
            ],
            explanations.say_unused(document_, ['a', 'b'], 'c'),
        )

    def test_a_constraint_that_was_not_asked(self):
        found = matrix.Matrix(HOSTS)
        found.add('host filter', 'Filter0', refused={'u1': ISOLATED})
        found.add('host filter', 'Filter1', judged={'u2'})
        self.assertEqual(
            ['a not used: Filter0: it is isolated (windows wants X)'],
            explanations.say_unused(document.build(found, {}), ['a']),
        )

    def test_hosts_of_one_reason_together(self):
        document_ = explain([{'u1': ISOLATED, 'u2': ISOLATED}])
        (said,) = explanations.say_unused(document_, ['a', 'b'], 'c')
        self.assertTrue(said.startswith('a, b not used: '), said)

    def test_ended(self):
        found = matrix.Matrix(HOSTS)
        found.stop('request filter', 'reserved', 'no such key')
        self.assertEqual(
            ['a not used: reserved ends the request: no such key'],
            explanations.say_unused(document.build(found, {}), ['a'], None),
        )

    def test_the_weigher_that_decided(self):
        document_ = explain(
            weights=[
                ('u1', 3.0, {'RAM': 1.0, 'Disk': 0.5, 'CPU': 1.5}),
                ('u2', 2.5, {'RAM': 0.0, 'Disk': 1.0, 'CPU': 1.5}),
                ('u3', 2.5, {'RAM': 1.0, 'Disk': 0.0, 'CPU': 1.5}),
            ]
        )
        for unused, landed, said in (
            ('b', 'a', 'and a weighs more: RAM gives it 1, and 0 here'),
            # nova chose among the best.
            ('a', 'b', 'and b does not weigh more'),
            ('b', 'c', 'and c does not weigh more'),
            ('a', None, 'and the server did not stay'),
        ):
            self.assertEqual(
                [f'{unused} not used: it passes every constraint, {said}'],
                explanations.say_unused(document_, [unused], landed),
            )


class WarningsTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.warnings = explanations.Warnings()
        self.log = logging.getLogger('nova_ext_sched.tests.warnings')
        self.log.addHandler(self.warnings)
        self.addCleanup(self.log.removeHandler, self.warnings)

    def test_each_once(self):
        self.log.info('nothing')
        for _ in range(2):
            self.log.warning('bad key %s', 'x')
        self.assertEqual(['bad key x'], self.warnings.take())
        self.assertEqual([], self.warnings.take())

    def test_those_at_start_are_of_no_step(self):
        self.log.warning('no weigher')
        self.assertEqual(['no weigher'], self.warnings.take(start=True))
        self.log.warning('no weigher')
        self.log.warning('bad key')
        self.assertEqual(['bad key'], self.warnings.take())

    def test_without_the_id_of_a_request(self):
        for digit in '12':
            request = f'req-{digit * 8}-0000-0000-0000-000000000000'
            self.log.warning('no host for request %s: full', request)
        self.assertEqual(['no host for request: full'], self.warnings.take())


class ExplanationsTest(unittest.TestCase):
    def test_lines_of_an_explanation_are_not_the_scheduler_s(self):
        log = logging.getLogger('tests.explanations')

        def explain(context, spec_obj):
            log.info('a line')
            # What is warned of once may come in an explanation.
            log.warning('a warning')

        found = explanations.Explanations()
        with (
            mock.patch.object(explanations, '_explain', explain),
            self.assertLogs(log, logging.INFO) as lines,
        ):
            found._keep(None, None, ['u1'])
            log.info('another')
        self.assertEqual(
            ['a warning', 'another'],
            [record.getMessage() for record in lines.records],
        )
        self.assertEqual(['u1'], [*found.take()])
