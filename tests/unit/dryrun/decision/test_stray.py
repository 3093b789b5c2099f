# SPDX-License-Identifier: Apache-2.0

"""tests/long/test_explain_stray.py shows what nova has, and does."""

import datetime
from unittest import mock

from oslo_utils import timeutils
import testtools

from nova_ext_sched.dryrun.decision import stray
from tests.unit.dryrun.cloud import clouds


class StrayTestCase(testtools.TestCase):
    def find(
        self, on, host, node, holds, state='active', migrations=(), task=None
    ):
        """Return what would end the allocation of one server on a host.

        :param on: the UUID of the host
        :param migrations: from host2 to host1, status and age of each
        :param task: its task_state
        """
        cloud = clouds.Cloud('')
        for uuid, name in (('a', 'host1'), ('b', 'host2')):
            cloud.add_node(uuid, name)
        # Of one nova-compute, as ironic's are.
        for uuid in 'cd':
            cloud.add_node(uuid, 'metal')
        cloud.server.add('child', on)
        cloud.server.hold('server', **dict.fromkeys(holds, {'VCPU': 1}))
        mine = {'uuid': 'server', 'consumer': 'server', 'task_state': task}
        mine |= {'host': host, 'node': node, 'vm_state': state}
        moves = []
        for status, age in migrations:
            written = timeutils.utcnow() - datetime.timedelta(minutes=age)
            known = {'uuid': 'migration', 'server': 'server', 'status': status}
            known |= {'kind': 'live-migration', 'hosts': ('host2', 'host1')}
            moves.append(mock.Mock(written=written, **known))
        of_cell = {
            '_select_settled': [mock.Mock(**mine)],
            '_select_migrations': moves,
        }
        cloud.ask_cells = lambda select, _: {'cell': of_cell[select.__name__]}
        self.found = [*stray.find(cloud, {on: {'server': {}}})]
        return [one.remedy for one in self.found]

    def test_children_are_taken_along(self):
        """What hosts share is held for where it stands, too."""
        holds = ['a', 'b', 'child', 'shared']
        [remedy] = self.find('a', 'host2', 'nodeb', holds)
        self.assertIn('unset --provider a --provider child server', remedy)

    def test_where_it_stands(self):
        for on, host, node, number in (
            ('c', 'metal', 'nodec', 0),
            ('c', 'metal', 'noded', 1),
            # Another nova-compute has the node now.
            ('c', 'metal2', 'nodec', 0),
            ('a', 'metal', 'noded', 1),
            # nova-compute gave its node another name.
            ('a', 'host1', 'host1.example', 0),
            # The host has another name, or has no compute node.
            ('a', 'host9', 'host9', 0),
            ('c', 'metal', 'node9', 0),
        ):
            found = self.find(on, host, node, ['b', 'd'])
            self.assertEqual(number, len(found), (on, host, node))

    def test_a_migration(self):
        for state, status, age, number in (
            ('active', 'accepted', 11, 1),
            ('active', 'accepted', 9, 0),
            ('active', 'error', 9, 1),
            # Its own allocation is on the destination, where it stands.
            ('resized', 'finished', 11, 0),
        ):
            migrations = [(status, age)]
            found = self.find('a', 'host2', 'nodeb', 'ab', state, migrations)
            self.assertEqual(number, len(found), (state, status))
            for one in self.found:
                says_more = 'nova does nothing more' in one.sentence
                self.assertEqual(status == 'accepted', says_more)

    def test_one_that_is_migrating(self):
        """Lost where no nova-compute has it yet, after an hour."""
        for status, age, number in (
            ('accepted', 61, 1),
            ('accepted', 59, 0),
            ('running', 61, 0),
        ):
            given = 'active', [(status, age)], 'migrating'
            found = self.find('a', 'host2', 'nodeb', 'ab', *given)
            self.assertEqual(number, len(found), (status, age))

    def test_none_where_it_stands(self):
        found = self.find('a', 'host2', 'nodeb', ['a'])
        delete = 'openstack resource provider allocation delete server'
        heal = 'nova-manage placement heal_allocations --instance server'
        self.assertEqual([f'{delete}; {heal}'], found)
