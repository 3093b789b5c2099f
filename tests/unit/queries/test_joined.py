# SPDX-License-Identifier: Apache-2.0

import threading
import time
from unittest import mock

import ddt
import eventlet
import fixtures
import greenlet
import testtools

from nova_ext_sched.queries import joined


class Silent(Exception):
    pass


class Database(joined.Database):
    """Answers when the test lets it.

    :ivar asked: the context of each question, and what it was about
    :ivar threads: those that asked
    """

    def __init__(self, **options):
        super().__init__(5, **options)
        self.asked, self.threads = [], []
        self.answers = threading.Event()

    def call(self, ctxt, select, wanted):
        self.threads.append(threading.current_thread())
        self.asked.append((ctxt, sorted(wanted)))
        assert self.answers.wait(60)
        return select(wanted)

    def fault(self, what):
        return Silent(f'it {what}')


def upper(wanted):
    return {one: one.upper() for one in wanted}


def double(wanted):
    return {one: one * 2 for one in wanted}


@ddt.ddt
class SourceTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        #: How much later it is than the machine says.
        self.later = 0.0

        def now():
            return time.monotonic() + self.later

        self.useFixture(fixtures.MonkeyPatch('oslo_utils.timeutils.now', now))
        self.source = Database()
        # Threads that wait end with the test.
        self.addCleanup(self.source.answers.set)

    def join(self, *wanted, select=upper, ctxt=None):
        return self.source.join(ctxt, select, wanted)

    def ask(self, *wanted, select=upper):
        question = self.join(*wanted, select=select)
        self.source.wait(question)
        return question

    def let_it_answer(self):
        self.source.answers.set()
        for thread in self.source.threads:
            thread.join()

    def assertSilent(self, times, question):
        """Assert what is said, and how often the database was asked."""
        self.source.wait(question)
        fault = question.fault
        self.assertIsInstance(fault, Silent)
        self.assertEqual('it has not answered in 30 seconds', str(fault))
        self.assertEqual(times, len(self.source.asked))

    def fall_silent(self, times):
        """Ask, and wait for as long as an answer may take."""
        question = self.join('a')
        self.later += joined.SECONDS
        self.assertSilent(times, question)

    def test_each_asks_where_nobody_does(self):
        self.source.answers.set()
        for one in 'ab':
            self.assertEqual({one: one.upper()}, self.ask(one).found)
        self.assertEqual([(None, ['a']), (None, ['b'])], self.source.asked)
        # A scheduler that stops does not wait for one that hangs.
        self.assertTrue(self.source.threads[0].daemon)

    def test_who_comes_meanwhile_joins_the_next(self):
        first, *others = [
            self.join(one, 'x', ctxt=f'of {one}') for one in 'abc'
        ]
        self.assertEqual(1, len({*others}))
        # It is under way: what it finds may be older than the others.
        self.assertIsNot(first, others[0])
        self.source.answers.set()
        for question in (first, *others):
            self.source.wait(question)
        self.assertEqual({'a': 'A', 'x': 'X'}, first.found)
        self.assertEqual({'b': 'B', 'c': 'C', 'x': 'X'}, others[0].found)
        self.assertEqual(
            [('of a', ['a', 'x']), ('of b', ['b', 'c', 'x'])],
            self.source.asked,
        )
        # One thread asked both.
        self.assertEqual(1, len({*self.source.threads}))

    def test_who_does_not_join(self):
        """Another select, and what would be too much for one question."""
        self.join('first')
        upper_1 = self.join(*'abc')
        double_1 = self.join(*'abc', select=double)
        # It would be six.
        upper_2 = self.join(*'def')
        # It has room for two more.
        double_2 = self.join(*'cde', select=double)
        upper_3 = self.join(*'ab')
        self.assertIs(double_1, double_2)
        self.assertIs(upper_1, upper_3)
        self.source.answers.set()
        for question, found in (
            (upper_1, upper('abc')),
            (double_1, double('abcde')),
            (upper_2, upper('def')),
        ):
            self.source.wait(question)
            self.assertEqual(found, question.found)
        self.assertEqual(
            [['first'], [*'abc'], [*'abcde'], [*'def']],
            [wanted for _, wanted in self.source.asked],
        )

    @ddt.data(
        ZeroDivisionError('broken'),
        # It must not be taken for one of waiting.
        TimeoutError('of a socket'),
    )
    def test_a_question_that_fails(self, exc):
        """The next one is asked."""
        self.source.answers.set()
        for times in (1, 2):
            select = mock.Mock(side_effect=exc)
            self.assertIs(exc, self.ask('a', select=select).fault)
            self.assertEqual(times, len(self.source.asked))

    @ddt.data(greenlet.GreenletExit(), eventlet.Timeout(None), SystemExit(7))
    def test_a_thread_that_is_ended(self, exc):
        first = self.join('a', select=mock.Mock(side_effect=exc))
        second = self.join('b')
        self.source.answers.set()
        self.source.wait(first)
        self.assertIsInstance(first.fault, Silent)
        said = f'gave no answer: {type(exc).__name__}'
        self.assertIn(said, str(first.fault))
        self.source.wait(second)
        self.assertEqual({'b': 'B'}, second.found)

    def test_who_waits_finds_the_answer(self):
        """It is there before anybody is told."""
        question = self.join('a')
        found = []
        tell = question.ended.set
        question.ended.set = lambda: (found.append(question.found), tell())
        self.let_it_answer()
        self.assertEqual([{'a': 'A'}], found)

    def test_who_waits_looks_again_when_the_first_is_late(self):
        """Not a whole limit after it came itself."""
        self.join('a')
        self.later = joined.SECONDS - 5
        question = self.join('b')
        with mock.patch.object(question.ended, 'wait') as wait:
            wait.side_effect = lambda seconds: question.ended.set()
            self.source.wait(question)
        (seconds,) = wait.call_args.args
        self.assertTrue(0 < seconds <= 5, seconds)

    def test_the_limit_counts_from_when_a_question_is_sent(self):
        first, second = self.join('a'), self.join('b')
        self.later += joined.SECONDS - 1
        self.let_it_answer()
        self.assertIsNone(first.fault)
        # Nobody looked meanwhile, and the answer is there.
        self.later += joined.SECONDS
        self.source.wait(second)
        self.assertIsNone(second.fault)

    def test_who_waits_for_the_next_has_the_limit_of_the_first(self):
        """The requests that sent it may be gone."""
        self.patch(joined, 'SECONDS', 0.2)
        self.join('a')
        second = self.join('b')
        self.source.wait(second)
        self.assertIn('has not answered', str(second.fault))
        self.assertEqual(1, len(self.source.asked))

    def test_one_that_comes_when_it_is_late(self):
        """Nobody waits any more for what is under way."""
        self.join('a')
        self.later += joined.SECONDS
        self.assertSilent(1, self.join('b'))

    def test_who_waited_for_a_silent_one_is_forgotten(self):
        """The next question is about what is asked then."""
        for one in 'ab':
            self.join(one)
        self.later += joined.SECONDS
        self.assertSilent(1, self.join('c'))
        self.later += joined.AGAIN
        self.source.answers.set()
        self.assertEqual({'d': 'D'}, self.ask('d').found)

    def test_a_silent_one_is_left_alone_for_a_minute(self):
        self.fall_silent(1)
        self.later += joined.AGAIN - 1
        self.assertSilent(1, self.join('a'))
        self.later += 1
        self.fall_silent(2)

    def test_one_that_does_not_pause(self):
        """An answer that takes 20 or 40 s, and a silence until just now."""
        self.source = Database(seconds=60, pauses=False)
        self.addCleanup(self.source.answers.set)
        late = self.join('a')
        self.later += 59
        self.assertIsNone(late.fault)
        self.later += 1
        self.source.wait(late)
        self.assertIsInstance(late.fault, Silent)
        for hanging in range(2, 11):
            question = self.join('b')
            self.assertEqual(hanging, len(self.source.asked))
            self.later += 60
            self.source.wait(question)
        # Ten wait: one more a minute, and nobody is refused meanwhile.
        question = self.join('c')
        self.assertEqual(10, len(self.source.asked))
        self.assertEqual(1, self.source._give_up_if_late())
        self.assertFalse(question.ended.is_set())
        self.later += joined.AGAIN
        other = self.join('d', select=double)
        self.assertEqual(11, len(self.source.asked))
        self.source.answers.set()
        for one, found in ((question, ['C']), (other, ['dd'])):
            self.source.wait(one)
            self.assertEqual(found, [*one.found.values()])

    def test_one_that_does_not_pause_and_answers_again(self):
        """Who waits is served as soon as the threads that hang end."""
        self.source = Database(seconds=60, pauses=False)
        self.addCleanup(self.source.answers.set)
        for _ in range(10):
            question = self.join('a')
            self.later += 60
            self.source.wait(question)
        question = self.join('b')
        self.let_it_answer()
        self.source.wait(question)
        self.assertEqual({'b': 'B'}, question.found)

    def test_who_waits_for_one_that_does_not_pause(self):
        """It is asked about, though it came a second before the silence."""
        self.source = Database(seconds=60, pauses=False)
        self.addCleanup(self.source.answers.set)
        late = self.join('a')
        self.later += 59
        waiting, other = self.join('b'), self.join('b', select=double)
        self.later += 1
        self.source.wait(late)
        self.assertIsInstance(late.fault, Silent)
        with mock.patch.object(
            threading.Thread, 'start', side_effect=RuntimeError('no thread')
        ):
            # Of this one nobody asks: no thread is left.
            self.later += 60
            self.assertRaises(RuntimeError, self.source.wait, waiting)
        self.source.wait(other)
        self.assertIsInstance(other.fault, Silent)
        waiting, next_one = self.join('c'), self.join('d')
        self.source.answers.set()
        for question, found in ((waiting, 'C'), (next_one, 'D')):
            self.source.wait(question)
            self.assertEqual([found], [*question.found.values()])

    def test_of_those_that_wait_one_asked(self):
        questions = [self.join('a') for _ in range(5)]
        self.later += joined.SECONDS
        for question in questions:
            self.assertSilent(1, question)

    def test_threads_that_hang(self):
        """Three in three minutes, then one in five minutes, ten at most."""
        for times in (1, 2, 3):
            self.fall_silent(times)
            self.later += joined.AGAIN
        for times in range(4, 11):
            self.assertSilent(times - 1, self.join('a'))
            self.later += joined.LATER - joined.AGAIN
            self.fall_silent(times)
            self.later += joined.AGAIN
        self.later += 10 * joined.LATER
        self.assertSilent(10, self.join('a'))
        # As many as before, when it has answered and is silent again.
        self.let_it_answer()
        self.assertIsNone(self.ask('a').fault)
        self.source.answers.clear()
        for times in (12, 13, 14):
            self.fall_silent(times)
            self.later += joined.AGAIN
        self.assertSilent(14, self.join('a'))

    def test_an_answer_that_comes_late(self):
        """It is nobody's, and does not end the minute."""
        self.fall_silent(1)
        self.let_it_answer()
        self.assertSilent(1, self.join('a'))

    def test_a_thread_that_comes_back_while_another_asks(self):
        late = self.join('a')
        self.later += joined.SECONDS
        self.assertSilent(1, late)
        self.later += joined.AGAIN
        old, self.source.answers = self.source.answers, threading.Event()
        self.addCleanup(self.source.answers.set)
        question = self.join('b')
        next_one = self.join('c')
        old.set()
        self.source.threads[0].join()
        # It neither answers the new question nor sends the next one.
        self.assertEqual({}, late.found)
        self.assertFalse(question.ended.is_set())
        self.assertEqual(2, len(self.source.asked))
        self.source.answers.set()
        for one in (question, next_one):
            self.source.wait(one)
            self.assertIsNone(one.fault)

    @ddt.data(RuntimeError('no thread'), greenlet.GreenletExit())
    def test_no_thread_can_be_started(self, exc):
        self.source.answers.set()
        with mock.patch.object(threading.Thread, 'start', side_effect=exc):
            self.assertRaises(type(exc), self.join, 'a')
        self.assertEqual({'b': 'B'}, self.ask('b').found)
