# SPDX-License-Identifier: Apache-2.0

import types

import ddt
import testtools

from nova_ext_sched import exception
from nova_ext_sched import named

GPU = types.SimpleNamespace(id=1, uuid='uuid1', name='gpu')
ONE = types.SimpleNamespace(id=2, uuid='uuid2', name='1')


@ddt.ddt
class FindAggregateTestCase(testtools.TestCase):
    def find(self, name):
        return named.find_aggregate([GPU, ONE], name)

    @ddt.data('gpu', 'uuid1')
    def test_name_and_uuid(self, name):
        self.assertIs(GPU, self.find(name))

    def test_id(self):
        self.assertIs(ONE, self.find('2'))

    @ddt.data(('gpus', 'gpu, 1'), ('11', '1, gpu'), ('', '1, gpu'))
    @ddt.unpack
    def test_none(self, name, known):
        error = self.assertRaises(exception.InvalidValue, self.find, name)
        self.assertEqual(
            f'aggregate: expected the name, UUID or ID of an aggregate: '
            f"{known}, got '{name}'",
            str(error),
        )

    def test_name_that_is_the_id_of_another(self):
        error = self.assertRaises(exception.InvalidValue, self.find, '1')
        self.assertEqual(
            'aggregate: expected the UUID of one aggregate, such as uuid1, '
            "because 2 aggregates have this name, got '1'",
            str(error),
        )
