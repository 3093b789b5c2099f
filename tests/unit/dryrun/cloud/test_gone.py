# SPDX-License-Identifier: Apache-2.0

"""Which rows are of servers that are gone; nova deletes in functional."""

import types

from nova.compute import task_states
from nova.compute import vm_states
import testtools

from nova_ext_sched.dryrun.cloud import gone


def make_row(vm_state=vm_states.ACTIVE, task_state=None, deleted=0):
    return types.SimpleNamespace(
        uuid='a', vm_state=vm_state, task_state=task_state, deleted=deleted
    )


THERE, DELETED = make_row(), make_row(deleted=7)
SOFT = make_row(vm_states.SOFT_DELETED)


class IsGoneTestCase(testtools.TestCase):
    def test_truth_table(self):
        for row, softly, for_good in (
            # If one counts that was deleted softly, and if not.
            (DELETED, True, True),
            (make_row(vm_states.DELETED), True, True),
            (make_row(task_state=task_states.DELETING), True, True),
            # Of one that is deleted for good.
            (make_row(vm_states.SOFT_DELETED, task_states.DELETING), True,
             True),
            (SOFT, True, False),
            (make_row(task_state=task_states.SOFT_DELETING), True, False),
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
    def find(self, *answers, **kwargs):
        """Return whether a server is gone.

        :param answers: of each cell: its rows, or None if it is silent
        """

        def ask_cells(select, uuids):
            self.assertEqual({'a'}, {*uuids})
            return {n: rows for n, rows in cells if rows is not None}

        cells = [*enumerate(answers)]
        silent = {n: 'away' for n, rows in cells if rows is None}
        cloud = types.SimpleNamespace(ask_cells=ask_cells, silent_cells=silent)
        return gone.find(cloud, {'a'}, **kwargs) == {'a'}

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

    def test_nothing_is_asked_about_none(self):
        self.assertEqual(set(), gone.find(None, []))
