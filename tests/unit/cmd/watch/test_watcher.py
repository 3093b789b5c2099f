# SPDX-License-Identifier: Apache-2.0

import datetime
import json
import pathlib
import signal
import types

import fixtures
from oslo_utils import fixture as utils_fixture
from oslo_utils import timeutils
import testtools

from nova_ext_sched.cmd.watch import explainer
from nova_ext_sched.cmd.watch import interrupt
from nova_ext_sched.cmd.watch import metrics
from nova_ext_sched.cmd.watch import position
from nova_ext_sched.cmd.watch import refusals
from nova_ext_sched.cmd.watch import watcher

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
NO_VALID_HOST = 'No valid host was found.'
EXPLAINED = explainer.Answer(
    {
        'request': {
            'flavor': {'id': '3', 'name': 'm1.huge', 'vcpus': 64},
            'image': {'id': 'an-image', 'name': None},
        },
        'answer': {'end': {'name': 'server group'}, 'hosts': 0},
    }
)


class Cells:
    """Rows by cell and kind, in the place of databases."""

    def __init__(self):
        self.rows = {}
        self.silent = set()
        #: Cells that do not say what an action was, or what the last IDs are.
        self.without_actions = set()
        self.without_ids = set()
        #: What is called when rows are read.
        self.on_read = lambda: None
        self.actions_read = 0

    def add(self, cell, row_id, age=0, kind='fault', **fields):
        self.rows[cell][kind].append(
            refusals.Row(
                row_id,
                timeutils.utcnow() - datetime.timedelta(seconds=age),
                f'{cell}-{kind}-{row_id}',
                NO_VALID_HOST,
                **fields,
            )
        )

    def ask(self, select, concerns):
        found = {}
        for cell in self.rows:
            if cell in self.silent:
                continue
            if concerns(cell):
                context = types.SimpleNamespace(cell_uuid=cell, cells=self)
                try:
                    found[cell] = select(context)
                except ConnectionError:
                    continue
        return found


def last_ids(context):
    if context.cell_uuid in context.cells.without_ids:
        raise ConnectionError()
    return {
        kind: max((row.id for row in rows), default=0)
        for kind, rows in context.cells.rows[context.cell_uuid].items()
    }


def read(context, after, before):
    context.cells.on_read()
    pages = {}
    for kind, rows in context.cells.rows[context.cell_uuid].items():
        rows = [row for row in rows if row.id > after[kind]]
        old = [row.id for row in rows if row.time < before]
        pages[kind] = refusals.Page(rows, max(old, default=None))
    return pages


def read_action(context, row):
    context.cells.actions_read += 1
    if context.cell_uuid in context.cells.without_actions:
        raise ConnectionError()
    return refusals.Action('create', f'req-{row.server}', 'p', 'u')


class Explainer:
    """Answers, and what it is told to do instead, by server."""

    def __init__(self):
        self.instead = {}
        self.turns = 0

    def begin_turn(self):
        self.turns += 1

    def explain(self, refusal):
        instead = self.instead.get(refusal.server, lambda: EXPLAINED)
        return instead()


class Records:
    def __init__(self):
        self.written = []
        self.on_write = lambda: None

    def known_ids(self):
        return {record['id'] for record in self.written}

    def write(self, record):
        self.on_write()
        self.written.append(record)


class WatcherTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = self.useFixture(utils_fixture.TimeFixture(NOW))
        for function in (last_ids, read, read_action):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_ext_sched.cmd.watch.refusals.{function.__name__}',
                    function,
                )
            )
        self.log = self.useFixture(fixtures.FakeLogger())
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.state = folder / 'state'
        self.cells = Cells()
        self.cells.rows['a'] = {'fault': [], 'event': []}
        self.explainer = Explainer()
        self.records = Records()
        self.watcher = self.watch()
        self.assertEqual(0, self.watcher.turn())

    def watch(self):
        self.metrics = metrics.Metrics()
        self.signals = interrupt.Interrupt()
        return watcher.Watcher(
            self.cells,
            self.explainer,
            self.records,
            position.File(self.state),
            self.metrics,
            self.signals,
        )

    def turn(self):
        """Take a turn; return the servers of the records that it wrote."""
        before = len(self.servers())
        count = self.watcher.turn()
        found = self.servers()[before:]
        self.assertEqual(count, len(found))
        return found

    def servers(self):
        return [record['server'] for record in self.records.written]

    def noted(self, cell='a', kind='fault'):
        """Return what the state says of a kind of row."""
        return json.loads(self.state.read_text())['cells'][cell][kind]

    def figure(self, name, **labels):
        return self.metrics.registry.get_sample_value(
            f'nova_ext_sched_{name}', labels
        )

    def away(self):
        raise explainer.Unavailable('placement\nis away')

    def test_the_order_of_their_times(self):
        """Of all cells and kinds; of one second, that of their IDs."""
        self.cells.rows['b'] = {'fault': [], 'event': []}
        self.turn()
        self.cells.add('a', 9, 10)
        self.cells.add('a', 7, 30)
        self.cells.add('a', 6, 10)
        self.cells.add('b', 2, 40)
        self.cells.add('b', 3, 20)
        self.cells.add('a', 1, 25, 'event')
        self.assertEqual(
            [
                'b-fault-2',
                'a-fault-7',
                'a-event-1',
                'b-fault-3',
                'a-fault-6',
                'a-fault-9',
            ],
            self.turn(),
        )

    def test_those_behind_one_that_waits_wait(self):
        for row_id in (1, 2, 3):
            self.cells.add('a', row_id, 9 - row_id)
        self.explainer.instead['a-fault-2'] = self.away
        self.assertEqual(['a-fault-1'], self.turn())
        self.assertEqual(2, self.figure('refusals_waiting'))
        self.assertEqual([], self.turn())
        self.explainer.instead.clear()
        self.assertEqual(['a-fault-2', 'a-fault-3'], self.turn())
        self.assertEqual(0, self.figure('refusals_waiting'))
        self.assertEqual([], self.turn())

    def test_for_five_minutes(self):
        self.cells.add('a', 1)
        self.explainer.instead['a-fault-1'] = self.away
        self.clock.advance_time_seconds(299)
        self.assertEqual([], self.turn())
        self.clock.advance_time_seconds(1)
        self.assertEqual(['a-fault-1'], self.turn())
        [record] = self.records.written
        self.assertEqual(
            ('unavailable', 'placement\nis away', '2026-01-02T03:09:05Z'),
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
                [r"Refusals wait to be explained: 'placement\nis away'"]
                * row_id,
                self.log.output.splitlines(),
            )

    def test_a_signal_ends_it_between_two_records(self):
        for row_id in (1, 2):
            self.cells.add('a', row_id)

        def stop():
            self.signals.pending = signal.SIGTERM
            return EXPLAINED

        self.explainer.instead['a-fault-1'] = stop
        self.assertRaises(interrupt.Stop, self.watcher.turn)
        self.assertEqual(['a-fault-1'], self.servers())
        self.watcher = self.watch()
        self.assertEqual(['a-fault-2'], self.turn())

    def test_a_signal_ends_reading(self):
        """Rows; and what they are the refusals of."""
        self.signals.pending = signal.SIGTERM
        self.assertRaises(interrupt.Stop, self.watcher.turn)
        self.signals.pending = None
        self.cells.add('a', 1)

        def stop():
            self.signals.pending = signal.SIGTERM

        self.cells.on_read = stop
        self.assertRaises(interrupt.Stop, self.watcher.turn)
        self.assertEqual(0, self.cells.actions_read)

    def test_what_is_written_is_noted_when_the_disk_is_full(self):
        for row_id in (1, 2):
            self.cells.add('a', row_id)

        def fail():
            if self.servers():
                raise OSError('No space left on device')

        self.records.on_write = fail
        self.assertRaises(OSError, self.watcher.turn)
        self.assertEqual({'passed': 0, 'handled': [1]}, self.noted())

    def test_a_crash_repeats_a_hundred_at_most(self):
        for row_id in range(1, 251):
            self.cells.add('a', row_id)
        ahead = []
        self.records.on_write = lambda: ahead.append(
            len(self.servers()) + 1 - len(self.noted()['handled'])
        )
        self.turn()
        self.assertEqual(250, len(ahead))
        self.assertEqual(100, max(ahead))
        self.assertEqual(250, len(self.noted()['handled']))

    def test_a_crash_and_then_a_cell_away(self):
        """What the state does not have is not repeated later either."""
        state = self.state.read_text()
        self.cells.add('a', 1)
        self.turn()
        self.state.write_text(state)
        self.watcher = self.watch()
        self.cells.silent.add('a')
        self.assertEqual([], self.turn())
        self.cells.silent.clear()
        self.assertEqual([], self.turn())
        self.assertEqual([1], self.noted()['handled'])

    def test_a_cell_that_is_new_begins_at_its_present(self):
        self.cells.add('a', 5)
        self.cells.rows['b'] = {'fault': [], 'event': []}
        self.cells.add('b', 8)
        self.cells.without_ids.add('b')
        self.assertEqual(['a-fault-5'], self.turn())
        self.cells.without_ids.clear()
        self.assertEqual([], self.turn())
        self.assertEqual(8, self.noted('b')['passed'])
        self.cells.add('b', 9)
        self.assertEqual(['b-fault-9'], self.turn())

    def test_a_cell_that_is_unread(self):
        self.cells.rows['b'] = {'fault': [], 'event': []}
        self.turn()
        self.cells.add('a', 1)
        self.cells.add('b', 2)
        self.cells.silent.add('a')
        self.assertEqual(['b-fault-2'], self.turn())
        self.assertEqual(1, self.figure('cells_unread'))
        self.cells.silent.clear()
        self.assertEqual(['a-fault-1'], self.turn())
        self.assertEqual(0, self.figure('cells_unread'))

    def test_a_cell_that_goes_away_before_its_actions_are_read(self):
        self.cells.rows['b'] = {'fault': [], 'event': []}
        self.turn()
        self.cells.add('a', 1, 20)
        self.cells.add('b', 1, 10)
        self.cells.add('a', 2)
        self.cells.without_actions.add('a')
        self.assertEqual(['b-fault-1'], self.turn())
        self.cells.without_actions.clear()
        self.assertEqual(['a-fault-1', 'a-fault-2'], self.turn())

    def test_a_row_is_passed_when_it_is_older_than_a_minute(self):
        self.cells.add('a', 1)
        self.turn()
        self.clock.advance_time_seconds(60)
        self.turn()
        self.assertEqual({'passed': 0, 'handled': [1]}, self.noted())
        # Another row appears behind it.
        self.cells.add('a', 0.5, 60)
        self.assertEqual(['a-fault-0.5'], self.turn())
        self.clock.advance_time_seconds(1)
        self.turn()
        self.assertEqual({'passed': 1, 'handled': []}, self.noted())

    def test_one_that_nova_works_on(self):
        self.cells.add('a', 1, kind='event', is_open=True)
        self.assertEqual([], self.turn())
        self.clock.advance_time_seconds(3600)
        self.turn()
        self.cells.rows['a']['event'].clear()
        self.cells.add('a', 1, kind='event')
        self.assertEqual(['a-event-1'], self.turn())

    def test_a_second_one_writes_the_same_ids(self):
        other, kept = self.watcher, self.records
        self.records, self.state = Records(), self.state.with_name('second')
        self.watcher = self.watch()
        self.turn()
        self.cells.add('a', 1)
        self.assertEqual(['a-fault-1'], self.turn())
        self.assertEqual(1, other.turn())
        self.assertEqual(kept.known_ids(), self.records.known_ids())

    def test_a_database_that_was_restored(self):
        """Without state and records, IDs of before are new ones."""
        self.cells.add('a', 5)
        self.turn()
        self.cells.rows['a']['fault'].clear()
        self.state.unlink()
        self.records.written.clear()
        self.watcher = self.watch()
        self.turn()
        self.cells.add('a', 5)
        self.assertEqual(['a-fault-5'], self.turn())

    def test_counted(self):
        for row_id in (1, 2, 3):
            self.cells.add('a', row_id)
        self.explainer.instead['a-fault-2'] = lambda: explainer.Answer(
            reason='gone'
        )
        self.turn()
        for number, constraint in ((2, 'server group'), (1, 'gone')):
            self.assertEqual(
                number,
                self.figure(
                    'refusals_total', operation='boot', constraint=constraint
                ),
            )
        self.assertEqual(
            1, self.figure('refusals_unexplained_total', reason='gone')
        )
        self.assertIsNone(self.figure('refusals_unexplained_total', reason=''))

    def test_a_turn_begins_a_turn_of_explanations(self):
        before = self.explainer.turns
        self.turn()
        self.assertEqual(before + 1, self.explainer.turns)
