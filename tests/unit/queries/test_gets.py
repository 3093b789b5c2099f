# SPDX-License-Identifier: Apache-2.0

import threading
import time
from unittest import mock

import ddt
import eventlet
import fixtures
import greenlet
import testtools

from nova_ext_sched.queries import gets


class Placement:
    """Answers each GET when the test lets it.

    :ivar sent: the URLs of the GETs, in their order
    """

    def __init__(self):
        self.sent = []
        self._answers = {}
        self._is_over = False
        self._change = threading.Condition()

    def send(self, ctxt, url):
        with self._change:
            self.sent.append(url)
            self._change.notify_all()
            assert self._change.wait_for(
                lambda: self._answers.get(url) or self._is_over, 60
            )
            answer = 'the end'
            if not self._is_over:
                answer = self._answers[url].pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def answer(self, url, *answers):
        """Let GETs of a URL end with these, in turn."""
        with self._change:
            self._answers.setdefault(url, []).extend(answers)
            self._change.notify_all()

    def end(self):
        """Let all GETs end, with the test."""
        with self._change:
            self._is_over = True
            self._change.notify_all()

    def wait_for(self, count):
        """Wait until so many GETs were sent."""
        with self._change:
            assert self._change.wait_for(lambda: len(self.sent) >= count, 60)
            assert len(self.sent) == count, self.sent


class Request(threading.Thread):
    """A request that needs the answers of some GETs."""

    def __init__(self, asked, urls, ctxt=None):
        super().__init__(daemon=True)
        self.found = self.fault = None
        self._ask = asked.ask
        self._wanted = ctxt, urls
        self.start()

    def run(self):
        try:
            self.found = self._ask(*self._wanted)
        except Exception as exc:
            self.fault = exc

    def end(self):
        self.join(60)
        assert not self.is_alive()
        return self


@ddt.ddt
class GetsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        #: What time it is; a pause between two attempts takes no other.
        self.now = 1000.0
        self.pauses = []
        self.useFixture(
            fixtures.MonkeyPatch('oslo_utils.timeutils.now', lambda: self.now)
        )
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.queries.gets.time',
                mock.Mock(sleep=self.pause),
            )
        )
        self.output = self.useFixture(fixtures.FakeLogger())
        self.placement = Placement()
        self.gets = gets.Gets(self.placement.send)
        #: Lets an attempt follow another.
        self.again = threading.Semaphore(0)
        # Threads that wait end with the test.
        self.requests = []
        self.addCleanup(lambda: [one.end() for one in self.requests])
        self.addCleanup(self.placement.end)
        self.addCleanup(self.again.release, 1000)

    def pause(self, seconds):
        self.pauses.append(seconds)
        assert self.again.acquire(timeout=60)

    def request(self, *urls, ctxt=None, waiting=None):
        """Send a request, and wait until its GETs wait or are sent.

        :param waiting: how many GETs wait then
        """
        request = Request(self.gets, urls, ctxt)
        self.requests.append(request)
        if waiting is not None:
            self.wait_until(lambda: len(self.gets._waiting) == waiting)
        return request

    def wait_until(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def hang(self, count):
        """Let so many GETs wait for answers."""
        hung = [f'hung {number}' for number in range(count)]
        requests = [self.request(url) for url in hung]
        self.placement.wait_for(count)
        return hung, requests

    def test_each_has_its_own(self):
        self.placement.answer('a', 'A')
        self.placement.answer('b', 'B')
        found = self.gets.ask(None, ['a', 'b'])
        self.assertEqual({'a': 'A', 'b': 'B'}, found)
        # A thread that ended is not one of ten.
        for number in range(20):
            self.placement.answer(number, number)
            self.assertEqual({number: number}, self.gets.ask(None, [number]))

    def test_ten_at_once(self):
        """A request that needs an eleventh waits, and is not refused."""
        hung, requests = self.hang(gets.AT_ONCE)
        other = self.request('x', waiting=1)
        self.now += 100 * gets.SECONDS
        self.assertEqual(10, gets.AT_ONCE)
        self.placement.wait_for(10)
        self.assertTrue(other.is_alive())
        self.placement.answer('x', 'X')
        self.placement.answer(hung[3], 'at last')
        self.assertEqual({'x': 'X'}, other.end().found)
        self.assertEqual({hung[3]: 'at last'}, requests[3].end().found)
        # Of one that goes on, another request has the place.
        for url in ('x', *hung[:3], *hung[4:]):
            self.placement.answer(url, url)
        for request in requests:
            self.assertIsNone(request.end().fault)

    def test_one_of_a_hundred_hangs(self):
        """Only the requests that need it wait."""
        urls = [f'{number}' for number in range(100)]
        for url in urls:
            if url != '50':
                self.placement.answer(url, url, url)
        needs_it = self.request(*urls)
        self.wait_until(lambda: len(self.placement.sent) == 100)
        self.now += 100 * gets.SECONDS
        others = [url for url in urls if url != '50']
        found = self.gets.ask(None, others)
        self.assertEqual({url: url for url in others}, found)
        self.assertTrue(needs_it.is_alive())
        # It is asked for again: the first answer may be older.
        self.placement.answer('50', 'old')
        self.assertEqual('old', needs_it.end().found['50'])

    def test_requests_join_what_is_not_sent(self):
        hung, _ = self.hang(gets.AT_ONCE)
        requests = [
            self.request(*urls, ctxt=f'of {urls}', waiting=waiting)
            for urls, waiting in (('ab', 2), ('bc', 3), ('abc', 3))
        ]
        for url in 'abc':
            self.placement.answer(url, url.upper())
        self.placement.answer(hung[0], 'ends')
        self.assertEqual({'a': 'A', 'b': 'B'}, requests[0].end().found)
        self.assertEqual({'b': 'B', 'c': 'C'}, requests[1].end().found)
        self.assertEqual([*'ABC'], [*requests[2].end().found.values()])
        # Each once, in their order.
        self.assertEqual([*'abc'], self.placement.sent[10:])

    def test_what_is_under_way_is_not_joined(self):
        """Its answer may be older than the request."""
        first = self.request('a')
        self.placement.wait_for(1)
        second = self.request('a')
        self.placement.wait_for(2)
        self.placement.answer('a', 'older')
        self.wait_until(lambda: not (first.is_alive() and second.is_alive()))
        self.placement.answer('a', 'newer')
        answers = {first.end().found['a'], second.end().found['a']}
        self.assertEqual({'older', 'newer'}, answers)

    def test_the_answer_is_there_before_a_request_goes_on(self):
        seen = []
        request = mock.Mock(
            end=lambda url, fault: seen.append((url, get.answer, fault))
        )
        fault = ZeroDivisionError()
        self.gets._send = mock.Mock(side_effect=['A', fault])
        for _ in range(2):
            get = gets.Get(None, 'a')
            get.requests.append(request)
            self.gets._waiting['a'] = get
            self.gets._threads += 1
            self.gets._work()
        self.assertEqual([('a', 'A', None), ('a', None, fault)], seen)

    def test_a_fault_stays(self):
        """Whatever is answered before the request goes on."""
        request = gets._Request(['a', 'b'])
        fault = ZeroDivisionError()
        for of_a, of_b in ((fault, None), (fault, TimeoutError())):
            request.end('a', of_a)
            request.end('b', of_b)
        self.assertIs(fault, request.fault)

    def test_a_request_without_gets(self):
        self.assertEqual({}, self.gets.ask(None, []))

    @ddt.data(ZeroDivisionError('broken'), TimeoutError('of a socket'))
    def test_a_fault(self, exc):
        """It is that of the requests that need it, and at once."""
        self.placement.answer('a', 'A', 'A')
        self.placement.answer('b', exc, 'B')
        self.placement.answer('c', 'C')
        request = self.request('a', 'b')
        self.assertIs(exc, request.end().fault)
        self.assertEqual({'c': 'C'}, self.gets.ask(None, ['c']))
        # Nobody waits for a pause.
        found = self.gets.ask(None, ['a', 'b'])
        self.assertEqual({'a': 'A', 'b': 'B'}, found)
        self.assertEqual([], self.pauses)

    @ddt.data(greenlet.GreenletExit(), eventlet.Timeout(None), SystemExit(7))
    def test_a_thread_that_is_ended(self, exc):
        self.placement.answer('a', exc)
        fault = self.request('a').end().fault
        self.assertIsInstance(fault, gets.Away)
        self.assertIn(f'gave no answer: {type(exc).__name__}', str(fault))
        self.placement.answer('b', 'B')
        self.assertEqual({'b': 'B'}, self.gets.ask(None, ['b']))

    @ddt.data(RuntimeError('no thread'), greenlet.GreenletExit())
    def test_no_thread_can_be_started(self, exc):
        with mock.patch.object(threading.Thread, 'start', side_effect=exc):
            self.assertRaises(type(exc), self.gets.ask, None, ['a'])
        # Nobody needs it any more.
        self.placement.answer('b', 'B')
        self.assertEqual({'b': 'B'}, self.gets.ask(None, ['b']))
        self.assertEqual(['b'], self.placement.sent)

    def test_a_request_that_is_ended(self):
        """Not held up, though another thread would send its GET."""
        self.hang(1)
        killed = greenlet.GreenletExit()
        with mock.patch.object(threading.Thread, 'start', side_effect=killed):
            self.assertRaises(type(killed), self.gets.ask, None, ['a'])

    def test_no_second_thread_can_be_started(self):
        """The first sends everything."""
        self.placement.answer('a', 'A')
        self.placement.answer('b', 'B')
        start = threading.Thread.start
        starts = mock.Mock(side_effect=[None, RuntimeError('no thread')])

        def start_one(thread):
            starts()
            start(thread)

        with mock.patch.object(threading.Thread, 'start', start_one):
            found = self.gets.ask(None, ['a', 'b'])
        self.assertEqual({'a': 'A', 'b': 'B'}, found)

    def test_threads_start_without_the_lock(self):
        """A greenlet that goes on at once needs it."""
        held = []
        start = threading.Thread.start

        def start_one(thread):
            held.append(self.gets._lock.locked())
            start(thread)

        self.placement.answer('a', 'A')
        with mock.patch.object(threading.Thread, 'start', start_one):
            self.gets.ask(None, ['a'])
        self.assertEqual([False], held)

    def test_threads_that_were_missing(self):
        """A request that waits starts them later."""
        self.patch(gets, '_LONG', 0.01)
        self.placement.answer('a', 'A')
        # Another request reserves all of them, and can start none.
        self.gets._threads = gets.AT_ONCE
        request = self.request('a', waiting=1)
        self.gets._threads = 0
        self.assertEqual({'a': 'A'}, request.end().found)

    def test_nobody_waits_for_the_threads(self):
        """A scheduler that stops ends."""
        self.hang(1)
        [thread] = [
            one
            for one in threading.enumerate()
            if getattr(one, '_target', None) == self.gets._work
        ]
        self.assertTrue(thread.daemon)

    def test_away_for_a_while(self):
        """It is asked until it answers, and nobody is refused."""
        self.placement.answer('a', *[gets.Away('refused')] * 3, 'A')
        request = self.request('a')
        for step in (0, 44, 45.9):
            self.now += step
            self.wait_until(lambda: len(self.pauses) == 1)
            self.assertEqual([0.5], self.pauses)
            self.pauses.clear()
            self.again.release()
        self.now += 10 * gets.SECONDS
        self.assertEqual({'a': 'A'}, request.end().found)
        self.assertEqual(4, len(self.placement.sent))
        self.assertEqual(
            'refused. Requests that ask it about servers wait, at most 90 '
            'seconds.\n',
            self.output.output,
        )

    def away(self, url, number=1):
        """Let a GET meet once more that placement is away."""
        before = len(self.pauses)
        self.placement.answer(url, gets.Away('refused'))
        self.again.release()
        self.wait_until(lambda: len(self.pauses) == before + number)

    def test_away_for_too_long(self):
        """So are those that were never sent, each from its own beginning."""
        hung, _ = self.hang(gets.AT_ONCE - 1)
        first = self.request('a')
        self.placement.wait_for(10)
        old = self.request('old', waiting=1)
        self.now += 1000
        # Of what was before, nothing is known.
        self.away('a')
        self.now += 40
        young = self.request('old', 'young', waiting=2)
        self.now += 49.9
        self.away('a')
        for request in (first, old, young):
            self.assertTrue(request.is_alive())
        self.now += 0.1
        end = gets.Away('refused at the end')
        self.placement.answer('a', end)
        self.again.release()
        self.assertIs(end, first.end().fault)
        self.assertIs(end, old.end().fault)
        # It joined one that waited longer.
        self.assertIs(end, young.end().fault)
        self.assertEqual({}, self.gets._waiting)

    def test_who_comes_late_in_an_outage(self):
        """Each request has its 90 seconds."""
        first = self.request('a')
        self.away('a')
        self.now += gets.SECONDS - 1
        second = self.request('b')
        self.away('b')
        self.now += 1
        self.placement.answer('a', gets.Away('refused'))
        self.placement.answer('b', gets.Away('refused'))
        self.again.release(2)
        self.assertIsInstance(first.end().fault, gets.Away)
        self.wait_until(lambda: len(self.pauses) == 3)
        self.now += gets.SECONDS - 1.1
        self.away('b')
        self.assertTrue(second.is_alive())
        self.now += 0.1
        self.placement.answer('b', gets.Away('refused'))
        self.again.release()
        self.assertIsInstance(second.end().fault, gets.Away)

    @ddt.data('A', ZeroDivisionError('status 500'))
    def test_an_answer_ends_an_outage(self, answer):
        """Those that wait have their 90 seconds anew."""
        hung, _ = self.hang(gets.AT_ONCE - 1)
        self.request('a')
        self.placement.wait_for(10)
        other = self.request('x', waiting=1)
        self.away('a')
        self.now += gets.SECONDS - 1
        # The answer lets go on what waits, too.
        self.placement.answer('x', *[gets.Away('refused')] * 2, 'X')
        self.placement.answer(hung[0], answer)
        self.wait_until(lambda: len(self.pauses) == 2)
        self.now += gets.SECONDS - 1
        self.again.release()
        self.again.release()
        self.wait_until(lambda: len(self.pauses) == 3)
        self.again.release()
        self.assertEqual({'x': 'X'}, other.end().found)

    def test_one_that_always_fails(self):
        """Answers of others do not keep it for ever, nor it them."""
        request = self.request('a')
        self.away('a')
        self.now += gets.SECONDS
        self.placement.answer('b', 'B')
        self.assertEqual({'b': 'B'}, self.gets.ask(None, ['b']))
        self.placement.answer('a', gets.Away('refused'))
        self.again.release()
        self.assertIsInstance(request.end().fault, gets.Away)

    def test_without_patience(self):
        self.gets.seconds = 0
        self.placement.answer('a', gets.Away('refused'))
        self.assertIsInstance(self.request('a').end().fault, gets.Away)
        self.assertEqual([], self.pauses)
        self.assertEqual('', self.output.output)

    def test_what_nobody_needs_any_more(self):
        """A request that was refused needs no other answer."""
        hung, _ = self.hang(gets.AT_ONCE - 1)
        refused = self.request('bad', 'other', 'shared', waiting=2)
        joined = self.request('shared', waiting=2)
        self.placement.wait_for(10)
        self.placement.answer('shared', 'S')
        self.placement.answer('bad', ZeroDivisionError())
        self.assertIsInstance(refused.end().fault, ZeroDivisionError)
        self.placement.answer('other', 'O')
        self.assertEqual({'shared': 'S'}, joined.end().found)

    def test_a_request_that_waits_for_long(self):
        """An operator hears why a server is not built; once."""
        self.patch(gets, '_LONG', 0.01)
        request = self.request('/allocations/a')
        self.wait_until(lambda: self.output.output)
        self.placement.answer('/allocations/a', 'A')
        self.assertIsNone(request.end().fault)
        [line] = self.output.output.splitlines()
        self.assertIn('not answered GET /allocations/a for', line)
