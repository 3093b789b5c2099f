# SPDX-License-Identifier: Apache-2.0

import contextlib
import dataclasses
import datetime
import itertools
import json
import logging
import pathlib
import types
from unittest import mock

import fixtures
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from oslo_utils import fixture as utils_fixture
from oslo_utils import timeutils
import testtools

from nova_ext_sched.watch import explainer
from nova_ext_sched.watch import feed
from nova_ext_sched.watch import interrupt
from nova_ext_sched.watch import metrics
from nova_ext_sched.watch import recorder
from nova_ext_sched.watch import refusals
from nova_ext_sched.watch import sink

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
EVENTS = (
    *('refuse', 'refuse late', 'commit', 'cell away', 'move', 'minute'),
    *('turn', 'kill write before', 'kill write after', 'kill note before'),
    'kill note after',
)
CAUSE = {'cause': 'server group'}
ANSWER = {'end': CAUSE, 'label': 'its label'} | CAUSE
EXPLAINED = explainer.Explained(
    {'time': '2026-01-02T03:04:05Z', 'answer': ANSWER}
)


class Cells:
    """Rows by cell and kind, in the place of databases."""

    def __init__(self):
        self.rows = {}
        self.add_cell('a')
        self.silent = set()
        #: Cells that do not say what an action was, or what the last IDs are.
        self.without_actions = set()
        self.without_ids = set()
        #: What is called when rows are read.
        self.on_read = lambda: None
        self.actions_read = 0
        self.operation = 'boot'

    def add_cell(self, cell):
        self.rows[cell] = {'fault': [], 'event': []}

    def add(self, cell, row_id, age=0, kind='fault'):
        time = timeutils.utcnow() - datetime.timedelta(seconds=age)
        server = f'{cell}-{kind}-{row_id}'
        words = 'No valid host was found.'
        row = refusals.Row(cell, kind, row_id, time, server, words)
        self.rows[cell][kind].append(row)

    @property
    def names(self):
        return {cell: f'name of {cell}' for cell in self.rows}

    def ask(self, select, only=None):
        found = {}
        for cell in self.rows:
            if cell not in self.silent and only in (None, cell):
                context = types.SimpleNamespace(cell_uuid=cell, cells=self)
                with contextlib.suppress(ConnectionError):
                    found[cell] = select(context)
        return found


def read(context, after):
    cells, cell = context.cells, context.cell_uuid
    cells.on_read()
    if after is None and cell in cells.without_ids:
        raise ConnectionError()
    new, newest = {}, {}
    for kind, rows in cells.rows[cell].items():
        new[kind] = [row for row in rows if after and row.id > after[kind]]
        newest[kind] = max((row.id for row in rows), default=0)
    return new, newest


def complete(context, row):
    context.cells.actions_read += 1
    if context.cell_uuid in context.cells.without_actions:
        raise ConnectionError()
    return refusals.Refusal(
        **dataclasses.asdict(row), operation=context.cells.operation
    )


class Explainer:
    """Answers, and what it is told to do instead, by server."""

    def __init__(self):
        self.instead = {}
        self.turns = 0
        self.tried = []

    def begin_turn(self):
        self.turns += 1

    def explain(self, refusal):
        self.tried.append(refusal.server)
        instead = self.instead.get(refusal.server, lambda: EXPLAINED)
        return instead()


class RecorderTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = self.useFixture(utils_fixture.TimeFixture(NOW))
        self.now = self.begin = NOW.replace(tzinfo=datetime.UTC).timestamp()
        for name in ('oslo_utils.timeutils.now', 'time.time'):
            self.useFixture(fixtures.MonkeyPatch(name, lambda: self.now))
        for function in (read, complete):
            path = f'nova_ext_sched.watch.refusals.{function.__name__}'
            self.useFixture(fixtures.MonkeyPatch(path, function))
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path, self.state = self.folder / 'records', self.folder / 'state'
        self.cells = Cells()
        self.explainer = Explainer()
        self.sink = None
        self.recorder = self.start()
        self.assertEqual([], self.turn())

    def start(self):
        """Return what the next process has."""
        self.end()
        self.sink = sink.Sink(self.path, self.state)
        self.metrics = metrics.Metrics()
        self.signals = interrupt.Interrupt()
        rows = feed.Feed(self.cells, self.sink.read())
        rest = self.explainer, self.sink, self.metrics, self.signals
        return recorder.Recorder(rows, *rest)

    def end(self):
        """The process ends, and with it its locks."""
        if self.sink is not None:
            self.sink._lock.close()
            self.sink._records._file.close()

    def failing(self, name, *, at=1, after=False, error=None):
        """Let the sink fail once.

        :param name: of its method
        :param at: which call fails
        :param after: whether it does its work before
        """
        method = getattr(self.sink, name)
        calls = itertools.count(1)

        def call(*args):
            is_time = next(calls) == at
            if after or not is_time:
                method(*args)
            if is_time:
                raise error or OSError('No space left on device')

        return mock.patch.object(self.sink, name, call)

    def turn(self):
        """Take a turn; return the servers of the records that it wrote."""
        before = len(self.servers())
        self.recorder.turn()
        return self.servers()[before:]

    def written(self):
        """Return the records, those that logrotate moved first."""
        paths = sorted(self.folder.glob('records.*')) + [self.path]
        return [
            json.loads(line)
            for path in paths
            if path.exists()
            for line in path.read_text().splitlines()
        ]

    def servers(self):
        return [record['server'] for record in self.written()]

    def noted(self, cell='a', kind='fault'):
        """Return passed and handled IDs of a kind of row, of the state."""
        found = json.loads(self.state.read_text())['positions']
        [noted] = [one[2:] for one in found if one[:2] == [cell, kind]]
        return dict(zip(('passed', 'handled'), noted, strict=True))

    def advance(self, seconds):
        self.clock.advance_time_seconds(seconds)
        self.now += seconds

    def figure(self, name, **labels):
        return self.metrics.registry.get_sample_value(
            f'nova_ext_sched_{name}', labels
        )

    def count_refusals(self, constraint, operation='boot'):
        labels = {'operation': operation, 'constraint': constraint}
        return self.figure('refusals_total', **labels)

    def away(self):
        raise explainer.Unavailable('placement is away')

    def test_the_order_of_their_times(self):
        """Of all cells and kinds; of one second, that of their IDs."""
        self.cells.add_cell('b')
        self.turn()
        for cell, row_id, age, kind in (
            ('a', 9, 10, 'fault'),
            ('b', 2, 40, 'fault'),
            ('b', 3, 20, 'fault'),
            ('a', 6, 10, 'fault'),
            ('a', 1, 25, 'event'),
        ):
            self.cells.add(cell, row_id, age, kind)
        self.assertEqual(
            ['b-fault-2', 'a-event-1', 'b-fault-3', 'a-fault-6', 'a-fault-9'],
            self.turn(),
        )

    def test_the_time_from_a_refusal_to_its_record(self):
        """A clock that is ahead of this one makes it no less than 0."""
        for row_id, age in ((1, 40), (2, 2), (3, -5)):
            self.cells.add('a', row_id, age)
        self.turn()
        name = 'record_delay_seconds'
        self.assertEqual(42, self.figure(f'{name}_sum'))
        for seconds, expected in (('1.0', 1), ('3.0', 2), ('60.0', 3)):
            found = self.figure(f'{name}_bucket', le=seconds)
            self.assertEqual(expected, found)

    def test_a_refusal_that_must_wait_is_tried_after_the_others(self):
        """It is tried again behind all others."""
        for row_id in (1, 2, 3):
            self.cells.add('a', row_id, 9 - row_id)
        self.explainer.instead['a-fault-2'] = self.away
        self.assertEqual(['a-fault-1', 'a-fault-3'], self.turn())
        self.assertEqual(1, self.figure('refusals_waiting'))
        self.cells.add('a', 4)
        self.explainer.tried.clear()
        self.assertEqual(['a-fault-4'], self.turn())
        self.assertEqual(['a-fault-4', 'a-fault-2'], self.explainer.tried)
        self.explainer.instead.clear()
        self.assertEqual(['a-fault-2'], self.turn())
        self.assertEqual(0, self.figure('refusals_waiting'))
        self.assertEqual([], self.turn())

    def test_what_is_away_is_not_asked_for_each(self):
        """Three in a row tell; the next turn begins with the others."""
        for row_id in range(1, 8):
            self.cells.add('a', row_id, 9 - row_id)
            self.explainer.instead[f'a-fault-{row_id}'] = self.away
        del self.explainer.instead['a-fault-3']
        self.assertEqual(['a-fault-3'], self.turn())
        tried = [f'a-fault-{row_id}' for row_id in range(1, 7)]
        self.assertEqual(tried, self.explainer.tried)
        self.assertEqual(6, self.figure('refusals_waiting'))
        self.advance(300)
        self.cells.add('a', 8)
        self.assertEqual(7, len(self.turn()))
        for one in self.written()[2:]:
            self.assertEqual('unavailable', one['unexplained'])

    def test_for_five_minutes(self):
        """Since it was tried first, whatever conductor's clock says."""
        self.cells.add('a', 1, age=3600)
        self.explainer.instead['a-fault-1'] = self.away
        self.assertEqual([], self.turn())
        self.advance(299)
        self.assertEqual([], self.turn())
        self.advance(1)
        self.assertEqual(['a-fault-1'], self.turn())
        [record] = self.written()
        self.assertEqual(
            ('unavailable', 'placement is away', '2026-01-02T03:09:05Z'),
            (record['unexplained'], record['detail'], record['recorded']),
        )

    def test_each_outage_is_one_line_of_the_log(self):
        for row_id in (1, 2):
            self.cells.add('a', row_id)
            self.explainer.instead[f'a-fault-{row_id}'] = self.away
            self.turn()
            self.turn()
            self.explainer.instead.clear()
            self.turn()
            self.assertEqual(
                ['Refusals cannot be explained yet: placement is away']
                * row_id,
                self.log.output.splitlines(),
            )

    def test_a_signal_ends_it_between_two_records(self):
        for row_id in (1, 2):
            self.cells.add('a', row_id)

        def stop():
            self.signals.arrived = True
            return EXPLAINED

        self.explainer.instead['a-fault-1'] = stop
        self.assertRaises(interrupt.Stop, self.recorder.turn)
        self.assertEqual(['a-fault-1'], self.servers())
        self.recorder = self.start()
        self.assertEqual(['a-fault-2'], self.turn())

    def test_a_signal_ends_reading(self):
        """Rows; and what they are the refusals of."""
        self.signals.arrived = True
        self.assertRaises(interrupt.Stop, self.recorder.turn)
        self.signals.arrived = False
        self.cells.add('a', 1)

        def stop():
            self.signals.arrived = True

        self.cells.on_read = stop
        self.assertRaises(interrupt.Stop, self.recorder.turn)
        self.assertEqual(0, self.cells.actions_read)

    def test_a_position_that_cannot_be_noted(self):
        """One record is ahead of it at most, and a kill repeats none."""
        for row_id in (1, 2, 3):
            self.cells.add('a', row_id)
        # The first one of a turn is that of before.
        with self.failing('note', at=2):
            self.assertRaises(OSError, self.recorder.turn)
        for _ in range(2):
            with self.failing('note'):
                self.assertRaises(OSError, self.recorder.turn)
        self.assertEqual(['a-fault-1'], self.servers())
        self.assertEqual({'passed': 0, 'handled': []}, self.noted())
        self.recorder = self.start()
        self.assertEqual(['a-fault-2', 'a-fault-3'], self.turn())

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.sampled_from(EVENTS), max_size=40))
    def test_each_once_through_any_number_of_kills(self, events):
        """Whatever is away or moved, and in whatever order rows appear."""
        for path in self.folder.iterdir():
            path.unlink()
        self.cells.silent.clear()
        for cell in 'ab':
            self.cells.add_cell(cell)
        self.recorder = self.start()
        self.turn()
        ids = itertools.count(1)
        late, moved = [], itertools.count(10)
        for event in events:
            if event == 'refuse':
                self.cells.add('a', next(ids))
                self.cells.add('b', next(ids))
            elif event == 'refuse late':
                late.append(next(ids))
            elif event == 'commit':
                while late:
                    self.cells.add('a', late.pop())
            elif event == 'cell away':
                self.cells.silent ^= {'a'}
            elif event == 'move' and self.path.exists():
                self.path.rename(self.folder / f'records.{next(moved)}')
            elif event == 'minute':
                if not late:
                    self.advance(61)
            elif event == 'turn':
                self.turn()
            elif event.startswith('kill'):
                _, name, when = event.split()
                killed = self.failing(
                    name, at=2, after=when == 'after', error=KeyboardInterrupt
                )
                with killed, contextlib.suppress(KeyboardInterrupt):
                    self.recorder.turn()
                self.recorder = self.start()
        self.cells.silent.clear()
        while late:
            self.cells.add('a', late.pop())
        self.turn()
        expected = [
            row.server
            for kinds in self.cells.rows.values()
            for row in kinds['fault']
        ]
        self.assertEqual(sorted(expected), sorted(self.servers()))

    def test_a_cell_that_is_new_begins_at_its_present(self):
        self.cells.add('a', 5)
        self.cells.add_cell('b')
        self.cells.add('b', 8)
        self.cells.without_ids.add('b')
        self.assertEqual(['a-fault-5'], self.turn())
        self.cells.without_ids.clear()
        self.assertEqual([], self.turn())
        self.assertEqual(8, self.noted('b')['passed'])
        self.cells.add('b', 9)
        self.assertEqual(['b-fault-9'], self.turn())

    def test_a_cell_that_goes_away(self):
        """Before its rows are read, or what they are the refusals of."""
        self.cells.add_cell('b')
        self.turn()
        for number, away, unread in (
            (1, self.cells.silent, 1),
            (2, self.cells.without_actions, 0),
        ):
            self.cells.add('a', number, 20)
            self.cells.add('b', number, 10)
            away.add('a')
            self.assertEqual([f'b-fault-{number}'], self.turn())
            self.assertEqual(unread, self.figure('cells_unread'))
            away.clear()
            self.assertEqual([f'a-fault-{number}'], self.turn())
            self.assertEqual(0, self.figure('cells_unread'))

    def test_a_row_is_passed_a_minute_after_it_was_seen(self):
        """Conductor's clock may be an hour behind."""
        self.cells.add('a', 1, age=3600)
        self.turn()
        self.advance(59)
        self.turn()
        self.assertEqual({'passed': 0, 'handled': [1]}, self.noted())
        # Another row appears behind it.
        self.cells.add('a', 0.5, 3600)
        self.assertEqual(['a-fault-0.5'], self.turn())
        self.advance(1)
        self.turn()
        self.assertEqual({'passed': 1, 'handled': []}, self.noted())

    def test_when_cells_were_read(self):
        self.cells.add_cell('b')
        self.turn()
        self.advance(10)
        self.cells.silent.add('b')
        self.turn()
        self.assertEqual(self.now, self.figure('look_timestamp_seconds'))
        name = 'cell_look_timestamp_seconds'
        for cell, expected in (('a', self.now), ('b', self.begin)):
            found = self.figure(name, cell=f'name of {cell}')
            self.assertEqual(expected, found)

    def test_a_turn_that_fails_is_no_look(self):
        self.advance(10)
        self.cells.add('a', 1)
        with self.failing('write'):
            self.assertRaises(OSError, self.recorder.turn)
        self.assertEqual(self.begin, self.figure('look_timestamp_seconds'))

    def test_counted(self):
        for row_id in (1, 2, 3):
            self.cells.add('a', row_id)
        gone = explainer.Explained(reason='gone')
        self.explainer.instead['a-fault-2'] = lambda: gone
        self.turn()
        self.assertEqual(2, self.count_refusals('its label'))
        self.assertEqual(1, self.count_refusals('gone'))
        name = 'refusals_unexplained_total'
        self.assertEqual(1, self.figure(name, reason='gone'))
        self.assertIsNone(self.figure(name, reason=''))

    def test_one_that_nova_has_no_action_of(self):
        self.cells.add('a', 1)
        self.cells.operation = ''
        self.turn()
        self.assertEqual('', self.written()[0]['operation'])
        self.assertEqual(1, self.count_refusals('its label', 'other'))

    def test_a_turn_begins_a_turn_of_explanations(self):
        before = self.explainer.turns
        self.turn()
        self.assertEqual(before + 1, self.explainer.turns)

    def run_turns(self, *results, step=1):
        """Take turns that raise or return a result, then it is told to end.

        :param step: seconds from one turn to the next
        :returns: how often a turn was taken
        """
        left, turns = list(results), []

        def turn():
            self.advance(step)
            turns.append(len(left))
            if not left:
                self.signals.arrived = True
                return
            if isinstance(result := left.pop(0), BaseException):
                raise result

        with mock.patch.object(self.recorder, 'turn', turn):
            self.recorder.run(0.001)
        return len(turns)

    def test_until_it_is_told_to_end(self):
        """Between two turns, or within one."""
        self.assertEqual(4, self.run_turns(None, None, None))
        self.signals.arrived = False
        self.assertEqual(2, self.run_turns(None, interrupt.Stop(), None))
        self.assertEqual('', self.log.output)

    def test_an_outage_is_one_line(self):
        full = OSError('No space left on device')
        turns = [full] * 3 + [None] * 2
        self.assertEqual(6, self.run_turns(*turns, step=16))
        self.assertEqual(
            'Refusals cannot be recorded yet: OSError: No space left on '
            'device\n',
            self.log.output,
        )

    def test_what_nobody_expected_has_a_traceback(self):
        self.run_turns(LookupError('x'), LookupError('x'))
        self.assertEqual(1, self.log.output.count('Traceback'))
