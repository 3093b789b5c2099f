# SPDX-License-Identifier: Apache-2.0

import threading
from unittest import mock

import fixtures
from nova import context
from nova import exception as nova_exception
from nova import objects
from oslo_db import exception as db_exception
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched.queries import cells
from nova_ext_sched.queries import joined

objects.register_all()


class CellsTestCase(testtools.TestCase):
    """Three cells; the database of one answers when the test lets it."""

    def setUp(self):
        super().setUp()
        self.patch(context, 'CELL_CACHE', {})
        path = 'nova.objects.CellMapping.get_by_uuid'
        patch = fixtures.MockPatch(path, side_effect=self.get_mapping)
        self.useFixture(patch)
        self.cells = cells.Cells()
        self.looked_up, self.asked = [], []
        self.answers = threading.Event()
        # Threads that wait end with the test.
        self.addCleanup(self.answers.set)

    def get_mapping(self, ctxt, uuid):
        if uuid == uuids.deleted:
            raise nova_exception.CellMappingNotFound(uuid=uuid)
        self.looked_up.append(uuid)
        name = 'far\naway' if uuid == uuids.silent else None
        urls = {'transport_url': 'none:', 'database_connection': 'sqlite://'}
        return objects.CellMapping(uuid=uuid, name=name, **urls)

    def select(self, ctxt, wanted):
        self.asked.append(ctxt.cell_uuid)
        if ctxt.cell_uuid == uuids.silent:
            self.answers.wait()
        if ctxt.cell_uuid == uuids.broken:
            raise ZeroDivisionError('broken')
        return {**dict.fromkeys(wanted, ctxt.cell_uuid), 'of another': 'x'}

    def ask(self, *asked, select=None):
        return self.cells.ask(
            context.get_admin_context(),
            select or self.select,
            {uuid: [f'server of {uuid}'] for uuid in asked},
        )

    def test_each_is_asked_about_its_own(self):
        """Of what others asked too, each gets its own."""
        asked = uuids.one, uuids.two
        for _ in range(2):
            found = {f'server of {uuid}': uuid for uuid in asked}
            self.assertEqual((found, {}), self.ask(*asked))
        self.assertEqual([uuids.one, uuids.two], self.looked_up)
        self.assertEqual(({}, {}), self.ask())

    def test_what_is_not_found(self):
        found = self.ask(uuids.one, select=lambda ctxt, wanted: {})
        self.assertEqual(({}, {}), found)

    def test_a_cell_that_fails_is_asked_again(self):
        for _ in range(2):
            found, faults = self.ask(uuids.broken, uuids.one)
            self.assertEqual([uuids.one], [*found.values()])
            self.assertEqual([uuids.broken], [*faults])
            self.assertEqual('broken', str(faults[uuids.broken]))
        self.assertEqual(2, self.asked.count(uuids.broken))

    def test_a_silent_cell(self):
        """The others are asked at the same time."""
        self.patch(joined, 'SECONDS', 0.2)
        found, faults = self.ask(uuids.silent, uuids.one)
        self.assertEqual([uuids.one], [*found.values()])
        [(uuid, fault)] = faults.items()
        self.assertEqual(uuids.silent, uuid)
        self.assertIsInstance(fault, nova_exception.CellTimeout)
        self.assertEqual(
            r"the database of cell 'far\naway' (nova-manage cell_v2 "
            'list_cells) has not answered in 0.2 seconds',
            str(fault),
        )
        # One without a name.
        fault = self.cells._cells[uuids.one].fault('x')
        self.assertIn(f'of cell {uuids.one} (', str(fault))

    def test_a_limit_of_its_own(self):
        self.cells = cells.Cells(0.1)
        [fault] = self.ask(uuids.silent).faults.values()
        self.assertIn('not answered in 0.1 seconds', str(fault))
        self.assertEqual(5, cells.disabled._seconds)

    def test_one_that_takes_no_connection(self):
        """It is asked again at once: nothing waits for it."""
        fault = db_exception.DBConnectionError('refused')
        select = mock.Mock(side_effect=fault)
        for times in (1, 2):
            [fault] = self.ask(uuids.one, select=select).faults.values()
            self.assertEqual(times, select.call_count)
            self.assertIsInstance(fault, nova_exception.CellTimeout)
            self.assertEqual(
                f'the database of cell {uuids.one} (nova-manage cell_v2 '
                'list_cells) takes no connection: DBConnectionError: refused',
                str(fault),
            )

    def test_one_that_takes_no_password(self):
        """Not one that is silent, for which nobody is called at night."""
        fault = db_exception.DBError('Access denied for user')
        select = mock.Mock(side_effect=fault)
        faults = self.ask(uuids.one, select=select).faults
        self.assertEqual({uuids.one: fault}, faults)

    def test_a_mapping_that_is_missing(self):
        """No cell is asked then, and each can be asked later."""
        for _ in range(2):
            missing = nova_exception.CellMappingNotFound
            self.assertRaises(missing, self.ask, uuids.one, uuids.deleted)
        self.assertEqual([], self.asked)
        self.assertEqual({}, self.ask(uuids.one).faults)
