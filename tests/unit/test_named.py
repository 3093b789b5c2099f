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

    @ddt.data(('gpu', GPU), ('uuid1', GPU), ('2', ONE))
    @ddt.unpack
    def test_found(self, name, expected):
        self.assertIs(expected, self.find(name))

    @ddt.data(
        ('gpus', 'There is no aggregate gpus. Did you mean gpu?'),
        ('11', 'There is no aggregate 11. Did you mean 1?'),
        ('', 'There is no aggregate .'),
        ('1', '2 aggregates are named 1: uuid1, uuid2. Give the ID of one.'),
    )
    @ddt.unpack
    def test_none(self, name, expected):
        error = self.assertRaises(exception.UnknownName, self.find, name)
        self.assertEqual(expected, str(error))


@ddt.ddt
class FindTestCase(testtools.TestCase):
    names = types.MappingProxyType({'id1': 'web', 'id2': 'db', 'id3': 'db'})

    # The last is an ID, whatever else is named so.
    @ddt.data(('id1', 'id1'), ('web', 'id1'), ('id2', 'id2'))
    @ddt.unpack
    def test_found(self, wanted, expected):
        names = {**self.names, 'id4': 'id2'}
        self.assertEqual(expected, named.find('server', wanted, names))

    @ddt.data(
        ('db', '2 servers are named db: id2, id3. Give the ID of one.'),
        ('webs', 'There is no server webs. Did you mean web?'),
        ('nothing', 'There is no server nothing.'),
        ('a\nb', "There is no server 'a\\nb'."),
    )
    @ddt.unpack
    def test_not_found(self, wanted, expected):
        args = named.find, 'server', wanted, self.names
        error = self.assertRaises(exception.UnknownName, *args)
        self.assertEqual(expected, str(error))


@ddt.ddt
class FindHostTestCase(testtools.TestCase):
    hosts = ('cmp-1.az1.x', 'cmp-11.az1.x', 'cmp-2.az1.x', 'cmp-2.az2.x', 'a')

    @ddt.data(
        ('cmp-1.az1.x', 'cmp-1.az1.x'),
        ('cmp-1', 'cmp-1.az1.x'),
        ('cmp-1.az1', 'cmp-1.az1.x'),
        ('a', 'a'),
        ('cmp-2.az2', 'cmp-2.az2.x'),
    )
    @ddt.unpack
    def test_found(self, wanted, expected):
        self.assertEqual(expected, named.find_host(wanted, self.hosts))

    @ddt.data(
        ('cmp-2', 'cmp-2. Did you mean cmp-2.az1.x or cmp-2.az2.x?'),
        ('cmp-1.', 'cmp-1.. Did you mean cmp-1.az1.x'),
        ('', '. '),
        ('zzz', 'zzz.'),
    )
    @ddt.unpack
    def test_not_found(self, wanted, expected):
        args = named.find_host, wanted, self.hosts
        error = self.assertRaises(exception.UnknownName, *args)
        self.assertIn(f'There is no host {expected}'.rstrip(), str(error))
