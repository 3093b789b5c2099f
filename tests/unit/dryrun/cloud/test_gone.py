# SPDX-License-Identifier: Apache-2.0

"""Which rows are of servers that are gone; nova deletes in functional."""

import datetime
import types

from nova.compute import task_states
from nova.compute import vm_states
from oslo_utils import timeutils
import testtools

from nova_ext_sched.dryrun.cloud import gone


def make_row(vm_state=vm_states.ACTIVE, task_state=None, deleted=0, seconds=0):
    """Return a row that was written some seconds ago."""
    written = timeutils.utcnow() - datetime.timedelta(seconds=seconds)
    return types.SimpleNamespace(
        uuid='a',
        vm_state=vm_state,
        task_state=task_state,
        deleted=deleted,
        host='host1',
        updated_at=None,
        created_at=written,
    )


HOUR = gone.LONG + 60
THERE, DELETED = make_row(), make_row(deleted=7)
SOFT = make_row(vm_states.SOFT_DELETED)


class IsGoneTestCase(testtools.TestCase):
    def test_truth_table(self):
        for row, softly, for_good in (
            # If one counts that was deleted softly, and if not.
            (DELETED, True, True),
            (make_row(vm_states.DELETED), True, True),
            # It has its host until its deletion has ended.
            (make_row(task_state=task_states.DELETING), True, False),
            (make_row(vm_states.SOFT_DELETED, task_states.DELETING), True,
             False),
            (SOFT, True, False),
            (make_row(task_state=task_states.SOFT_DELETING), True, False),
            # It is stuck.
            (make_row(task_state=task_states.DELETING, seconds=HOUR), False,
             False),
            (make_row(task_state=task_states.SOFT_DELETING, seconds=HOUR),
             False, False),
            (make_row(vm_states.SOFT_DELETED, seconds=HOUR), True, False),
            # It is not softly deleted any more.
            (make_row(vm_states.SOFT_DELETED, None, deleted=7), True, True),
            (THERE, False, False),
            (make_row(vm_states.ERROR), False, False),
            (make_row(vm_states.BUILDING, task_states.SPAWNING), False, False),
            (make_row(task_state=task_states.POWERING_OFF), False, False),
        ):  # fmt: skip
            self.assertIs(softly, gone.is_gone(row))
            self.assertIs(for_good, gone.is_gone(row, softly=False))


class FindTestCase(testtools.TestCase):
    def find(self, *answers, home=None, **kwargs):
        """Return whether a server is gone.

        :param answers: of each cell: its rows, or None if it is silent
        :param home: the number of the cell where it was read
        """

        def ask_cells(select, *uuids, mappings=None):
            asked = [*cells] if mappings is None else mappings
            if uuids:
                self.assertEqual([['a']], [*uuids])
            self.asked += asked
            return {n: cells[n] for n in asked if cells[n] is not None}

        cells = dict(enumerate(answers))
        self.asked = []
        silent = {n: 'away' for n, rows in cells.items() if rows is None}
        cloud = types.SimpleNamespace(
            ask_cells=ask_cells,
            silent_cells=silent,
            cells={n: n for n in cells},
            cell_of_server={'a': home} if home is not None else {},
        )
        self.seen = gone.look(cloud, {'a'}, **kwargs)
        return self.seen.gone == {'a'}

    def test_cells(self):
        for expected, *answers in (
            (True, [DELETED], []),
            (False, [THERE], []),
            # Archived meanwhile; or in the cell that is silent.
            (True, [], []),
            (False, [], None),
            (True, [DELETED], None),
            # It moved to another cell.
            (False, [THERE], [DELETED]),
            (False, [DELETED], [THERE]),
            (True, [SOFT]),
        ):
            self.assertIs(expected, self.find(*answers))
        self.assertFalse(self.find([SOFT], softly=False))

    def test_its_cell_is_asked_first(self):
        for asked, expected, *answers in (
            ([1], False, [], [THERE]),
            ([1], False, None, [THERE]),
            ([1, 0, 1], True, [], [DELETED]),
            ([1, 0, 1], False, [THERE], [DELETED]),
            ([1, 0, 1], False, None, []),
        ):
            self.assertIs(expected, self.find(*answers, home=1))
            self.assertEqual(asked, self.asked)

    def test_what_is_there(self):
        """Its host, and for how long it is being deleted."""
        for task, seconds, deleting in (
            (None, HOUR, {}),
            (task_states.DELETING, 0, {'a': False}),
            (task_states.SOFT_DELETING, HOUR, {'a': True}),
        ):
            row = make_row(task_state=task, seconds=seconds)
            self.assertFalse(self.find([row], softly=False))
            self.assertEqual(deleting, self.seen.deleting)
            self.assertEqual({'a': 'host1'}, self.seen.hosts)

    def test_nothing_is_asked_about_none(self):
        self.assertEqual(set(), gone.find(None, []))
