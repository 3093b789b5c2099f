# SPDX-License-Identifier: Apache-2.0

import contextlib
import datetime
import pathlib
import sqlite3

import ddt
import fixtures
from hypothesis import given
from hypothesis import strategies as st
from oslo_utils import fixture as utils_fixture
import testtools

from nova_ext_sched import exception
from nova_ext_sched.cmd.watch import position
from nova_ext_sched.cmd.watch import refusals

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)


def row(number, is_open=False, age=0):
    time = NOW - datetime.timedelta(seconds=age)
    return refusals.Row(
        'cell', 'fault', number, time, 'server', 'no host', is_open
    )


@ddt.ddt
class MarkTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(utils_fixture.TimeFixture(NOW))

    @ddt.data(
        (row(4), False),
        (row(5), False),
        (row(6), True),
        (row(7), False),
        (row(6, is_open=True), False),
    )
    @ddt.unpack
    def test_is_new(self, one, expected):
        mark = position.Mark(5, {7})
        self.assertIs(expected, mark.is_new(one))

    @ddt.data(
        # Nothing is settled.
        ([row(6)], {6}, 0, 5, {6}),
        # All that is handled and settled is passed, gaps too.
        ([row(6), row(9)], {6, 9}, 12, 12, set()),
        ([row(6), row(9)], {6, 9}, 8, 8, {9}),
        # A row that was not handled yet holds what follows.
        ([row(6), row(8), row(9)], {6, 9}, 12, 7, {9}),
        ([row(6), row(8), row(9)], {6, 9}, 7, 7, {9}),
        # Rows come in any order.
        ([row(9), row(6), row(8), row(7)], {6, 9}, 12, 6, {9}),
        # What is not settled does not pass what lies between.
        ([row(6), row(20)], {6}, 8, 8, set()),
        # So does one that nova works on, for two hours.
        ([row(6, True), row(8)], {8}, 12, 5, {8}),
        ([row(6, True, 7199), row(8)], {8}, 12, 5, {8}),
        ([row(6, True, 7200), row(8)], {8}, 12, 12, set()),
    )
    @ddt.unpack
    def test_advance(self, rows, handled, seen, passed, left):
        mark = position.Mark(5, set(handled))
        mark.see(seen, 100)
        mark.advance(rows, 159.9)
        self.assertEqual(position.Mark(5, set(handled)), mark)
        mark.advance(rows, 160)
        self.assertEqual(position.Mark(passed, left), mark)

    def test_what_was_held_is_passed_later(self):
        mark = position.Mark(5)
        mark.see(9, 100)
        mark.advance([row(7)], 160)
        self.assertEqual(6, mark.passed)
        mark.handled.add(7)
        mark.advance([row(7)], 161)
        self.assertEqual(9, mark.passed)

    def test_each_id_by_when_it_was_first_seen(self):
        mark = position.Mark(5)
        for moment, newest in ((100, 6), (110, 6), (120, 8), (130, 9)):
            mark.see(newest, moment)
        for moment, passed in (
            (159, 5), (160, 6), (179, 6), (180, 8), (189, 8), (500, 9)
        ):  # fmt: skip
            mark.advance([], moment)
            self.assertEqual(passed, mark.passed, moment)

    @given(
        st.lists(st.integers(1, 30), unique=True).flatmap(
            lambda ids: st.tuples(
                st.just(ids), st.lists(st.integers(0, 5), min_size=len(ids))
            )
        )
    )
    def test_each_row_is_handled_once_in_whatever_order_rows_appear(
        self, case
    ):
        """A row becomes visible up to five turns after its ID was given."""
        ids, delays = case
        visible = {one: at + delays[at] for at, one in enumerate(sorted(ids))}
        mark, handled = position.Mark(0), []
        for turn in range(len(ids) + 18):
            rows = [
                row(one)
                for one, at in sorted(visible.items())
                if at <= turn and one > mark.passed
            ]
            for one in rows:
                if mark.is_new(one):
                    handled.append(one.id)
                    mark.handled.add(one.id)
            # A turn takes a sixth of the time in which rows settle.
            moment = turn * position.SETTLED / 6
            seen = [one for one, at in visible.items() if at <= turn]
            mark.see(max(seen, default=0), moment)
            mark.advance(rows, moment)
        self.assertEqual(sorted(ids), sorted(handled))
        self.assertEqual(position.Mark(max(ids, default=0)), mark)


@ddt.ddt
class FileTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = self.folder / 'watch.state'

    def open(self):
        """Return the file as the next process has it."""
        if hasattr(self, 'file'):
            self.file._database.close()
        self.file = position.File(self.path)
        self.addCleanup(self.file._database.close)
        return self.file

    def test_what_is_written_is_read(self):
        marks = {
            ('cell', 'fault'): position.Mark(7, {9, 8}, 1.5),
            ('other', 'event'): position.Mark(2),
        }
        self.open().write(marks)
        self.assertEqual(marks, self.open().read())
        marks['cell', 'fault'] = position.Mark(10)
        self.file.write(marks)
        self.assertEqual(marks, self.open().read())
        self.assertEqual([self.path], list(self.folder.iterdir()))

    def test_no_file_yet(self):
        self.assertEqual({}, self.open().read())

    def test_nothing_is_kept(self):
        marks = {('cell', 'fault'): position.Mark(7)}
        position.File(None).write(marks)
        self.assertEqual({}, position.File(None).read())

    def assertRefused(self, got):
        error = self.assertRaises(
            exception.InvalidValue, position.File, self.path
        )
        self.assertIn(str(self.path), str(error))
        self.assertIn('remove the file', str(error))
        self.assertIn(got, str(error))

    @ddt.data(b'x', b'{"version": 1, "cells": {}}', b'\xff\xfe\x00' * 700)
    def test_something_else(self, content):
        self.path.write_bytes(content)
        self.assertRefused('a file of another kind')
        self.assertEqual(content, self.path.read_bytes())

    @ddt.data('CREATE TABLE other (x)', 'PRAGMA application_id = 2')
    def test_another_database(self, statement):
        if 'PRAGMA' in statement:
            self.open().write({})
            self.file._database.close()
        with contextlib.closing(sqlite3.connect(self.path)) as database:
            database.execute(statement)
        self.assertRefused('another database')

    def test_another_one_uses_it(self):
        self.open()
        self.assertRefused('database is locked')
        self.file._database.close()
        self.open()

    def test_a_disk_that_is_full_leaves_what_was_there(self):
        first = {('cell', 'fault'): position.Mark(7)}
        self.open().write(first)
        [pages] = self.file._database.execute('PRAGMA page_count').fetchone()
        self.file._database.execute(f'PRAGMA max_page_count = {pages}')
        error = self.assertRaises(
            OSError,
            self.file.write,
            {('cell', 'fault'): position.Mark(8, set(range(9, 9999)))},
        )
        self.assertIn(f'{self.path}: database or disk is full', str(error))
        self.assertEqual(first, self.open().read())
