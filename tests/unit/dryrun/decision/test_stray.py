# SPDX-License-Identifier: Apache-2.0

"""tests/long/test_explain_stray.py shows what nova has, and does."""

import datetime
from unittest import mock

import ddt
from oslo_utils import timeutils
import testtools

from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import stray

HOSTS = {
    'a': snapshot.Node('host1', 'host1', 'cell'),
    'b': snapshot.Node('host2', 'host2', 'cell'),
    # Of one nova-compute, as ironic's are.
    'c': snapshot.Node('metal', 'node1', 'cell'),
    'd': snapshot.Node('metal', 'node2', 'cell'),
}


@ddt.ddt
class StrayTestCase(testtools.TestCase):
    def find(self, on, host, node, holds, state='active', migrations=()):
        """Return what would end the allocation of one server on a host.

        :param on: the UUID of the host
        :param migrations: kind, status, source, destination and age of each
        """
        cloud = mock.Mock(hosts=HOSTS)
        cloud.nodes_of = lambda host: [
            uuid for uuid, one in HOSTS.items() if one.host == host
        ]
        cloud.find_node = lambda host, node: next(
            (
                uuid
                for uuid, one in HOSTS.items()
                if (one.host, one.node) == (host, node)
            ),
            None,
        )
        of_cell = {
            '_select_settled': [
                mock.Mock(
                    consumer='server',
                    uuid='server',
                    host=host,
                    node=node,
                    vm_state=state,
                    task_state=None,
                )
            ],
            '_select_migrations': [
                mock.Mock(
                    uuid='migration',
                    server='server',
                    kind=kind,
                    status=status,
                    hosts=(source, dest),
                    written=timeutils.utcnow()
                    - datetime.timedelta(minutes=age),
                )
                for kind, status, source, dest, age in migrations
            ],
        }
        cloud.ask_cells = lambda select, _: {'cell': of_cell[select.__name__]}
        cloud.providers.get_tree.return_value = {on, 'child'}
        cloud.providers.get_consumer.return_value = {
            'allocations': dict.fromkeys(holds)
        }
        cloud.providers.get_allocations.return_value = {'other': {}}
        return [one.remedy for one in stray.find(cloud, {on: {'server': {}}})]

    def test_children_are_taken_along(self):
        """What hosts share is held for where it stands, too."""
        [remedy] = self.find(
            'a', 'host2', 'host2', ['a', 'b', 'child', 'shared']
        )
        self.assertIn('unset --provider a --provider child server', remedy)

    @ddt.data(
        ('c', 'metal', 'node1', 0),
        ('c', 'metal', 'node2', 1),
        # Another nova-compute has the node now.
        ('c', 'metal2', 'node1', 0),
        ('a', 'metal', 'node2', 1),
        # nova-compute gave its node another name.
        ('a', 'host1', 'host1.example', 0),
        # The host has another name, or has no compute node.
        ('a', 'host9', 'host9', 0),
        ('c', 'metal', 'node9', 0),
    )
    @ddt.unpack
    def test_where_it_stands(self, on, host, node, number):
        self.assertEqual(number, len(self.find(on, host, node, ['b', 'd'])))

    @ddt.data(
        ('active', 'accepted', 11, 1),
        ('active', 'accepted', 9, 0),
        ('active', 'error', 9, 1),
        # Its own allocation is on the destination, where it stands.
        ('resized', 'finished', 11, 0),
    )
    @ddt.unpack
    def test_a_migration(self, state, status, age, number):
        found = self.find(
            'a',
            'host2',
            'host2',
            ['a', 'b'],
            state,
            [('live-migration', status, 'host2', 'host1', age)],
        )
        self.assertEqual(number, len(found))

    def test_none_where_it_stands(self):
        [remedy] = self.find('a', 'host2', 'host2', ['a'])
        self.assertEqual(
            'openstack resource provider allocation delete server; '
            'nova-manage placement heal_allocations --instance server',
            remedy,
        )
