# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import fixtures
from nova import context
from nova import exception as nova_exception
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_utils.fixture import uuidsentinel as uuids
from sqlalchemy import orm
import testtools

from nova_ext_sched.queries import cells
from nova_ext_sched.queries import licences
from tests import databases

objects.register_all()


class SelectsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        database = self.useFixture(databases.Database('sqlite'))
        self.ctxt = context.get_admin_context()
        engine = database.replace(main_db.context_manager)
        models.Instance.__table__.create(engine)
        api_engine = database.replace(api_db.context_manager)
        for model in (api_models.Flavors, api_models.FlavorExtraSpecs):
            model.__table__.create(api_engine)
        with orm.Session(engine) as session, session.begin():
            session.add_all(
                models.Instance(uuid=str(number), deleted=deleted, **fields)
                for number, (deleted, fields) in enumerate(
                    (
                        (0, {'host': 'h1', 'os_type': 'windows'}),
                        (0, {'host': 'h1', 'os_type': 'windows'}),
                        (0, {'host': 'h2', 'instance_type_id': 7}),
                        (0, {'host': 'h3', 'instance_type_id': 8}),
                        (5, {'host': 'h4', 'os_type': 'windows'}),
                        (0, {'host': None, 'os_type': 'windows'}),
                        (0, {'host': 'h5', 'os_type': 'linux'}),
                    )
                )
            )
        with orm.Session(api_engine) as session, session.begin():
            for flavor, key, value in (
                (7, 'trait:CUSTOM_A', 'required'),
                (7, 'trait:CUSTOM_B', 'required'),
                (8, 'trait:CUSTOM_A', 'forbidden'),
                (9, 'trait:CUSTOM_C', 'required'),
            ):
                session.add(
                    api_models.FlavorExtraSpecs(
                        flavor_id=flavor, key=key, value=value
                    )
                )

    def test_flavors(self):
        found = licences.select_flavors(self.ctxt, ['CUSTOM_B', 'CUSTOM_A'])
        self.assertEqual({7: {'CUSTOM_A', 'CUSTOM_B'}}, found)

    def test_hosts(self):
        found = licences.select_hosts(self.ctxt, ['windows'], [7])
        self.assertEqual(
            {('h1', 'windows', None), ('h2', None, 7)},
            {tuple(row) for row in found},
        )
        self.assertEqual([], licences.select_hosts(self.ctxt, [], []))

    def test_of_cells(self):
        """One select a cell that is enabled, once a minute."""
        mappings = [
            objects.CellMapping(uuid=uuid, disabled=disabled)
            for uuid, disabled in (
                (uuids.one, False),
                (uuids.two, False),
                (uuids.away, True),
                (objects.CellMapping.CELL0_UUID, False),
            )
        ]
        self.useFixture(
            fixtures.MockPatch(
                'nova.objects.CellMappingList.get_all', return_value=mappings
            )
        )
        asked = []

        def ask(ctxt, select, wanted):
            asked.append(sorted(wanted))
            found = {}
            for of_cell in wanted.values():
                found |= select(self.ctxt, of_cell)
            return cells.Answers(found, {})

        self.useFixture(
            fixtures.MockPatchObject(cells.current, 'ask', side_effect=ask)
        )
        now = self.useFixture(
            fixtures.MockPatch('oslo_utils.timeutils.now', return_value=5.0)
        ).mock
        source = licences.Licences()
        expected = {
            'os_type=windows': {'h1'},
            'CUSTOM_A': {'h2'},
            'CUSTOM_B': {'h2'},
        }
        for _ in range(2):
            found = source.get_hosts(
                self.ctxt, ['windows'], ['CUSTOM_A', 'CUSTOM_B']
            )
            self.assertEqual(expected, found)
        self.assertEqual([sorted([uuids.one, uuids.two])], asked)
        now.return_value += 61
        source.get_hosts(self.ctxt, ['windows'], ['CUSTOM_A', 'CUSTOM_B'])
        self.assertEqual(2, len(asked))

    def test_a_silent_cell(self):
        """Hosts of other cells are not known either, for a minute."""
        self.useFixture(
            fixtures.MockPatch(
                'nova.objects.CellMappingList.get_all', return_value=[]
            )
        )
        fault = nova_exception.CellTimeout()
        answers = cells.Answers({uuids.one: []}, {uuids.two: fault})
        source = licences.Licences()
        with mock.patch.object(
            cells.current, 'ask', return_value=answers
        ) as ask:
            for _ in range(2):
                self.assertRaises(
                    nova_exception.CellTimeout,
                    source.get_hosts,
                    self.ctxt,
                    ['windows'],
                    [],
                )
            ask.assert_called_once()
