# SPDX-License-Identifier: Apache-2.0

"""Providers of a file make trees, or none of them is taken."""

import uuid

import ddt
from placement.db.sqlalchemy import models
import sqlalchemy as sa
import testtools

from nova_ext_sched.saved import trees

A, B, C = (str(uuid.UUID(int=number)) for number in (1, 2, 3))
INVENTORY = {
    'total': 4,
    'reserved': 0,
    'min_unit': 1,
    'max_unit': 4,
    'step_size': 1,
    'allocation_ratio': 1.0,
}


def make(uuid=A, parent=None, root=A, **more):
    return {
        'uuid': uuid,
        'name': uuid,
        'generation': 1,
        'parent': parent,
        'root': root,
        'inventories': {},
        'traits': [],
        'aggregates': [],
        'allocations': {},
    } | more


@ddt.ddt
class TreesTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.engine = sa.create_engine(
            'sqlite://', poolclass=sa.pool.StaticPool
        )
        self.addCleanup(self.engine.dispose)
        models.BASE.metadata.create_all(self.engine)
        self.trees = trees.Trees(self.engine)

    def select(self, query):
        with self.engine.connect() as connection:
            return connection.exec_driver_sql(query).all()

    def test_all_that_a_provider_has(self):
        self.trees.add_classes(['VCPU'])
        self.trees.add(make(generation=0))
        self.trees.add(
            make(
                B,
                A,
                inventories={'VCPU': INVENTORY},
                traits=['CUSTOM_A'],
                aggregates=[C],
                allocations={C: {'VCPU': 2}, B: {'VCPU': 1}},
            )
        )
        # It was read again.
        self.trees.add(make(generation=7))
        self.trees.add(make(C, root=C))
        self.trees.remove(C)
        self.trees.add_consumer(
            {'uuid': B, 'project': 'p2', 'user': None, 'type': 'LEFT'}
        )
        self.trees.finish({C: ('p1', 'u1')})
        self.assertEqual(
            {(A, 7, None, A), (B, 1, A, A)},
            {
                *self.select(
                    'SELECT p.uuid, p.generation, a.uuid, r.uuid FROM '
                    'resource_providers p LEFT JOIN resource_providers a ON '
                    'a.id = p.parent_provider_id JOIN resource_providers r '
                    'ON r.id = p.root_provider_id'
                )
            },
        )
        self.assertEqual(
            [('CUSTOM_A', C, 'VCPU', 4)],
            self.select(
                'SELECT t.name, a.uuid, c.name, i.total FROM traits t, '
                'resource_provider_traits pt, placement_aggregates a, '
                'resource_provider_aggregates pa, resource_classes c, '
                'inventories i WHERE t.id = pt.trait_id AND a.id = '
                'pa.aggregate_id AND c.id = i.resource_class_id'
            ),
        )
        self.assertEqual(
            [(B, 'p2', 'unknown', 'LEFT', 1), (C, 'p1', 'u1', None, 2)],
            self.select(
                'SELECT c.uuid, p.external_id, u.external_id, t.name, a.used '
                'FROM consumers c JOIN projects p ON p.id = c.project_id '
                'JOIN users u ON u.id = c.user_id LEFT JOIN consumer_types t '
                'ON t.id = c.consumer_type_id JOIN allocations a ON '
                'a.consumer_id = c.uuid ORDER BY c.uuid'
            ),
        )

    @ddt.data(
        [make(parent=A)],
        [make(parent=B, root=B), make(B, parent=A, root=B)],
        [make(parent=C)],
        [make(root=B), make(B, root=B)],
        [make(B, A, root=B), make()],
        [
            make(str(uuid.UUID(int=n)), n > 1 and str(uuid.UUID(int=n - 1)))
            for n in range(1, 100)
        ],
    )
    def test_no_trees(self, providers):
        for one in providers:
            self.trees.add(one)
        self.assertRaises(ValueError, self.trees.finish, {})
        self.assertEqual([], self.select('SELECT * FROM resource_providers'))

    @ddt.data(
        make('../x'),
        make(name=7),
        make(generation='1'),
        make(traits=['no such']),
        make(aggregates=['x']),
        make(inventories={'VCPU': INVENTORY | {'total': 'x'}}),
        make(inventories={'VCPU': INVENTORY | {'total': -1}}),
        make(inventories={"a'b": INVENTORY}),
        make(allocations={'x': {'VCPU': 1}}),
        make(allocations={A: {'VCPU': 2**64}}),
    )
    def test_no_provider(self, provider):
        self.assertRaises(ValueError, self.trees.add, provider)
