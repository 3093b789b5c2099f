# SPDX-License-Identifier: Apache-2.0

"""No name and no secret is in a file without names."""

import gzip
import json

from nova.db.api import models as api_models
from nova.db.main import models
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_ext_sched.saved import listed
from nova_ext_sched.saved import words
from tests.functional import base
from tests.functional import explain
from tests.functional import saved


class PlantedTestCase(base.CloudTestCase):
    """Some hundred names and secrets, each looked for in the bytes."""

    together = saved.TOGETHER
    hosts = ('alice-7.acme.example', 'BOB_NODE', '10.77.66.55')
    weights = dict.fromkeys(hosts, 1)
    options = explain.OPTIONS

    def setUp(self):
        super().setUp()
        self.planted = {*self.hosts}

    def make(self):
        """Return one more name; they have all kinds of forms."""
        number = len(self.planted)
        form = (
            'Mallory{}', 'eve-{}@acme.example', 'C:\\oscar {} peggy{}',
            'grace/{}/hop', 'trudy_{}x', 'zoë{}walter', '10.99.88.{}',
            'aa:bb:cc:dd:ee:{:02x}', '{:08x}-1234-5678-9abc-def012345678',
            '{:032x}', '0000:8{:x}:0a.3', 'fd12::{:x}', 'p{}==victor',
        )[number % 13]  # fmt: skip
        name = form.format(number % 200 + 1, number)
        self.planted.add(name)
        return name

    def plant_columns(self, engine, base, tables):
        with engine.begin() as connection:
            for name, columns in tables.items():
                table = base.metadata.tables[name]
                for id_ in connection.scalars(sa.select(table.c.id)).all():
                    values = {}
                    for column in (table.c[one] for one in columns.split()):
                        value = connection.scalar(
                            sa.select(column).where(table.c.id == id_)
                        )
                        if f'{name}.{column.name}' in listed.JSON:
                            if value:
                                made = self.plant_json(json.loads(value))
                                values[column.name] = json.dumps(made)
                        elif not isinstance(column.type, sa.String):
                            continue
                        elif uuidutils.is_uuid_like(value):
                            self.planted.add(value)
                        elif column.name not in (*words.KEPT, 'policy'):
                            values[column.name] = self.make()
                    where = table.c.id == id_
                    if values:
                        connection.execute(
                            sa.update(table).where(where).values(values)
                        )

    def plant_json(self, value, key=''):
        if isinstance(value, list):
            return [self.plant_json(one, key) for one in value]
        if isinstance(value, dict):
            made = {
                one: self.plant_json(value[one], one)
                if not one.startswith('nova_object.') or one.endswith('.data')
                else value[one]
                for one in value
            }
            if key in ('extra_specs', 'stats', 'scheduler_hints'):
                made[self.make()] = self.make()
            return made
        if uuidutils.is_uuid_like(value):
            self.planted.add(value)
        elif key in 'name project_id user_id display_name flavorid'.split():
            return self.make()
        return value

    def test_no_name_is_in_it(self):
        for _ in range(6):
            self.boot(hints={'group': self.create_group()})
        self.boot(expected_state='ERROR', az='zone:host9')
        self.aggregate('first', [*self.hosts], team='a', **{'trait:X': 'b'})
        self.isolate('second', [], 'CUSTOM_BIGCORP_PROJECT')
        self.planted.add('BIGCORP_PROJECT')
        for name in ('isolated_hosts', 'isolated_images'):
            values = [self.make(), self.make()]
            self.flags(group='filter_scheduler', **{name: values})
        traits = ['CUSTOM_BIGCORP_*', 'CUSTOM_PLAN_B']
        self.flags(group='nova_ext_sched', forbid_by_trait=traits)
        self.planted |= {'BIGCORP_', 'PLAN_B'}
        self.flags(default_availability_zone=self.make())
        self.plant_columns(self.cell_engine(), models.BASE, listed.CELL)
        self.plant_columns(self.cell_engine('cell0'), models.BASE, listed.CELL)
        self.plant_columns(self.api_engine(), api_models.BASE, listed.API)
        named, bare = (
            gzip.decompress(file.path.read_bytes()).decode().lower()
            for file in (
                self.useFixture(saved.Saved()),
                self.useFixture(saved.Saved('--anonymous')),
            )
        )
        found = [
            one
            for one in self.planted
            if json.dumps(one.lower())[1:-1] in named
        ]
        self.assertGreater(len(found), 300)
        self.assertEqual(
            [],
            [
                one
                for one in self.planted
                if one.lower() in bare or json.dumps(one.lower())[1:-1] in bare
            ],
        )
        # What decides is there still.
        for kept in ('custom_', 'anti-affinity', 'active', 'memory_mb'):
            self.assertIn(kept, bare)
