# SPDX-License-Identifier: Apache-2.0

"""Tests share out among workers by how long they take."""

import datetime
import io
import json
import os

import ddt
import fixtures
from stestr import scheduler
from stestr.repository import util
import subunit
import testtools

from tools import times

SLOW = 'tests.functional.placement.test_http.SlowTest.test_a'


def stream(*tests):
    """Return a run as subunit.

    :param tests: worker, ID of the test, second of its start and of its end
    """
    written = io.BytesIO()
    result = subunit.StreamResultToBytes(written)
    for worker, test_id, *seconds in tests:
        for status, second in zip(
            ('inprogress', 'success'), seconds, strict=True
        ):
            result.status(
                test_id,
                status,
                test_tags={f'worker-{worker}'},
                timestamp=times.START + datetime.timedelta(seconds=second),
            )
    written.seek(0)
    return written


@ddt.ddt
class TableTestCase(testtools.TestCase):
    @ddt.named_data(
        ['plain', 'tests.unit.policy.test_slots.SlotsTest.test_a'],
        ['elsewhere', 'tests.unit.cmd.a.test_slots.SlotsTest.test_b_1___1_'],
        ['scenario', 'tests.unit.test_slots.SlotsTest.test_a(a.b.C.d)'],
    )
    def test_name_of_a_class(self, test_id):
        self.assertEqual('unit.test_slots.SlotsTest', times.class_of(test_id))

    def test_time_of_a_test_includes_set_up_of_its_class(self):
        run = stream(
            (0, 'tests.unit.test_a.ATest.test_1', 10, 12),
            (1, 'tests.unit.test_b.BTest.test_1', 11, 15),
            (0, 'setUpClass (tests.unit.test_c.CTest)', 13, 14),
            (0, 'tests.unit.test_c.CTest.test_1', 20, 21),
        )
        self.assertEqual(
            {
                'tests.unit.test_a.ATest.test_1': 2,
                'tests.unit.test_b.BTest.test_1': 4,
                'tests.unit.test_c.CTest.test_1': 9,
            },
            dict(times.of_run(run)),
        )

    def test_a_class_has_a_line_if_its_folder_is_wrong_for_it(self):
        tests = [
            *((f'tests.unit.test_a.ATest.test_{n}', 0.5) for n in range(8)),
            ('tests.unit.test_b.BTest.test', 1.0),
            ('tests.unit.test_c.CTest.test', 5.0),
            ('tests.functional.test_a.ATest.test', 3.0),
        ]
        self.assertEqual(
            {
                'functional': 3.0,
                'unit': 1.0,
                'unit.test_a.ATest': 0.5,
                'unit.test_c.CTest': 5.0,
            },
            times.table(tests),
        )

    @ddt.named_data(
        ['class', SLOW, 9],
        ['folder', 'tests.functional.test_new.NewTest.test', 2],
        ['nothing', 'tests.new.test_new.NewTest.test', times.UNKNOWN],
    )
    def test_expected(self, test_id, seconds):
        known = {'functional.test_http.SlowTest': 9, 'functional': 2}
        self.assertEqual(seconds, times.expected(known, test_id))


class TeachTestCase(testtools.TestCase):
    """stestr's own repository and scheduler go by the table."""

    def setUp(self):
        super().setUp()
        root = self.useFixture(fixtures.TempDir()).path
        self.repository = util.get_repo_initialise(repo_url=root)
        table = os.path.join(root, 'times.json')
        with open(table, 'w') as file:
            json.dump({'functional.test_http.SlowTest': 9, 'unit': 1}, file)
        self.useFixture(
            fixtures.MockPatchObject(times, 'TABLE', times.pathlib.Path(table))
        )
        self.fast = [f'tests.unit.test_a.ATest.test_{n}' for n in range(9)]

    def partitions(self):
        times.teach(self.repository, [*self.fast, SLOW])
        return scheduler.partition_tests(
            {*self.fast, SLOW}, 2, self.repository, None
        )

    def test_slow_test_weighs_as_much_as_all_fast_ones(self):
        self.assertCountEqual(
            [[SLOW], self.fast], map(sorted, self.partitions())
        )

    def test_times_measured_here_win(self):
        inserter = self.repository.get_inserter()
        inserter.startTestRun()
        for status, second in (('inprogress', 0), ('success', 1)):
            inserter.status(
                SLOW,
                status,
                timestamp=times.START + datetime.timedelta(seconds=second),
            )
        inserter.stopTestRun()
        self.assertEqual([5, 5], sorted(map(len, self.partitions())))

    def test_leaves_no_run(self):
        self.partitions()
        self.assertEqual([], self.repository.get_run_ids())


class StoredTestCase(testtools.TestCase):
    def test_the_table_has_a_time_for_each_folder(self):
        known = json.loads(times.TABLE.read_text())
        self.assertTrue({'unit', 'functional'} <= known.keys())
        self.assertTrue(all(seconds >= 0 for seconds in known.values()))
