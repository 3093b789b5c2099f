# SPDX-License-Identifier: Apache-2.0

import datetime
import pathlib

import ddt
import fixtures
from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_ext_sched import exception
from nova_ext_sched.cmd.watch import position
from nova_ext_sched.cmd.watch import refusals

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)


def row(number, is_open=False, age=0):
    time = NOW - datetime.timedelta(seconds=age)
    return refusals.Row(number, time, 'server', 'no host', is_open)


@ddt.ddt
class MarkTestCase(testtools.TestCase):
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
        ([row(6)], {6}, None, 5, {6}),
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
    def test_advance(self, rows, handled, settled, passed, left):
        mark = position.Mark(5, set(handled))
        mark.advance(rows, settled, NOW)
        self.assertEqual(position.Mark(passed, left), mark)


@given(
    st.lists(st.integers(1, 30), unique=True).flatmap(
        lambda ids: st.tuples(
            st.just(ids), st.lists(st.integers(0, 5), min_size=len(ids))
        )
    )
)
def test_each_row_is_handled_once_in_whatever_order_rows_appear(case):
    """A row becomes visible up to five turns after its ID was given."""
    ids, delays = case
    visible = {one: at + delays[at] for at, one in enumerate(sorted(ids))}
    mark, handled = position.Mark(0), []
    for turn in range(len(ids) + 12):
        rows = [
            row(one)
            for one, at in sorted(visible.items())
            if at <= turn and one > mark.passed
        ]
        for one in rows:
            if mark.is_new(one):
                handled.append(one.id)
                mark.add(one.id)
        # Settled: given at least six turns ago.
        old = [one for at, one in enumerate(sorted(ids)) if at + 6 <= turn]
        mark.advance(rows, max(old, default=None), NOW)
    assert sorted(handled) == sorted(ids)
    assert mark == position.Mark(max(ids, default=0), set())


@ddt.ddt
class FileTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = self.folder / 'watch.json'
        self.file = position.File(self.path)

    def test_what_is_written_is_read(self):
        marks = {'cell': {'fault': position.Mark(7, {9, 8})}}
        self.file.write(marks)
        self.assertEqual(marks, self.file.read())
        self.assertEqual([self.path], list(self.folder.iterdir()))

    def test_no_file_yet(self):
        self.assertEqual({}, self.file.read())

    def test_nothing_is_kept(self):
        nowhere = position.File(None)
        nowhere.write({'cell': {'fault': position.Mark(7)}})
        self.assertEqual({}, nowhere.read())

    @ddt.data('', 'x', '[]', '{}', '{"version": 2, "cells": {}}', '{"ver')
    def test_another_document(self, text):
        self.path.write_text(text)
        error = self.assertRaises(exception.InvalidValue, self.file.read)
        self.assertIn(str(self.path), str(error))
        self.assertIn('remove the file', str(error))

    def test_a_disk_that_is_full_leaves_the_old_file(self):
        self.file.write({})
        self.useFixture(
            fixtures.MonkeyPatch('os.fsync', self._full),
        )
        self.assertRaises(
            OSError, self.file.write, {'cell': {'fault': position.Mark(7)}}
        )
        self.assertEqual({}, self.file.read())
        self.assertEqual([self.path], list(self.folder.iterdir()))

    @staticmethod
    def _full(descriptor):
        raise OSError('No space left on device')
