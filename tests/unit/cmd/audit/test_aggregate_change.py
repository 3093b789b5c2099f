# SPDX-License-Identifier: Apache-2.0

import ddt
from nova.objects import aggregate as nova_aggregate
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched import exception
from nova_ext_sched.cmd.audit import aggregate_change


def make(number, name, metadata):
    return nova_aggregate.Aggregate(
        id=number, uuid=getattr(uuids, name), name=name, metadata=metadata
    )


@ddt.ddt
class AggregateChangeTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.aggregates = [
            make(1, 'gpu', {'a': '1'}),
            make(2, 'bare', None),
            make(3, '1', {}),
        ]

    def set(self, name, item):
        aggregate_change.change(self.aggregates, [(name, item)], [])
        return [aggregate.metadata for aggregate in self.aggregates]

    def remove(self, name, key):
        aggregate_change.change(self.aggregates, [], [(name, key)])
        return [aggregate.metadata for aggregate in self.aggregates]

    @ddt.named_data(['name', 'gpu'], ['uuid', uuids.gpu])
    def test_set(self, name):
        self.assertEqual(
            [{'a': '1', 'b': '2'}, None, {}], self.set(name, 'b=2')
        )

    def test_change(self):
        self.assertEqual([{'a': '2'}, None, {}], self.set('gpu', 'a=2'))

    def test_set_where_there_is_none(self):
        self.assertEqual([{'a': '1'}, {'a': '1'}, {}], self.set('2', 'a=1'))

    def test_remove(self):
        self.assertEqual([{}, None, {}], self.remove('gpu', 'a'))

    def test_remove_what_is_not_there(self):
        for name, known in (('gpu', 'a'), ('bare', 'it has none')):
            error = self.assertRaises(
                exception.InvalidValue, self.remove, name, 'b'
            )
            self.assertIn(known, str(error))
            self.assertIn(f'aggregate {name}', str(error))

    @ddt.data(
        ('a=', 'a', ''), ('b=c', 'b', 'c'), ('trait:A=b=c', 'trait:A', 'b=c')
    )
    @ddt.unpack
    def test_forms(self, item, key, value):
        self.assertEqual(value, self.set('gpu', item)[0][key])

    @ddt.data('a', '=b', '')
    def test_malformed(self, item):
        self.assertRaises(exception.InvalidValue, self.set, 'gpu', item)
