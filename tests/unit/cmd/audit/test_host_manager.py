# SPDX-License-Identifier: Apache-2.0

"""What moves change, and what they leave alone."""

import types
from unittest import mock

import ddt
from nova import objects
from nova.scheduler import host_manager as nova_host_manager
import testtools

from nova_ext_sched.cmd import claims
from nova_ext_sched.cmd.audit import host_manager
from tests.unit.cmd import test_claims
from tests.unit.request_filters import base


def make_state(uuid, cell='cell1'):
    state = nova_host_manager.HostState(f'host{uuid}', f'node{uuid}', cell)
    state.uuid = uuid
    state.free_ram_mb = 1000
    return state


@ddt.ddt
class HostManagerTestCase(testtools.TestCase):
    """Hosts a and b of an enabled cell, c of a disabled one."""

    def setUp(self):
        super().setUp()
        self.manager = object.__new__(host_manager.HostManager)
        self.manager.states = {
            'a': make_state('a'),
            'b': make_state('b'),
            'c': make_state('c', 'cell2'),
        }
        self.manager.claims = claims.Claims(
            {uuid: test_claims.summary(VCPU=(4, 2)) for uuid in 'abc'}
        )
        self.manager.moved, self.manager.left = {}, set()
        self.manager.enabled_cells = [types.SimpleNamespace(uuid='cell1')]
        self.manager.states['a'].instances = {'server': None}
        self.manager.states['a'].num_instances = 1

    def move(self):
        spec = base.request_spec()
        spec.numa_topology = spec.pci_requests = spec.instance_group = None
        spec.requested_resources = []
        target = self.manager.states['b']
        target.allocation_candidates = [test_claims.request(b={'VCPU': 2})]
        self.manager.move(
            spec,
            types.SimpleNamespace(
                uuid='server', host='hosta', node='nodea', numa_topology=None
            ),
            test_claims.request(a={'VCPU': 2}),
            target,
        )

    def describe(self):
        return {
            uuid: (
                sorted(state.instances),
                state.num_instances,
                state.free_ram_mb,
                self.manager.claims.get_free(uuid, 'VCPU'),
            )
            for uuid, state in self.manager.states.items()
        }

    def test_move(self):
        before = self.manager.states['b']
        self.move()
        self.assertEqual(
            {
                'a': ([], 0, 1064, 4),
                'b': (['server'], 1, 936, 0),
                'c': ([], 0, 1000, 2),
            },
            self.describe(),
        )
        self.assertEqual({'server': 'hostb'}, self.manager.moved)
        self.assertEqual({'a'}, self.manager.left)
        self.assertEqual({}, before.instances)

    def test_undone_and_done_again(self):
        before = self.describe()
        saved = self.manager.save()
        for _ in range(2):
            self.move()
            after = self.describe()
            self.assertNotEqual(before, after)
            self.manager.restore(saved)
            self.assertEqual(before, self.describe())
            self.assertEqual(
                ({}, set()),
                (
                    self.manager.moved,
                    self.manager.left,
                ),
            )

    @ddt.data((None, 'ab'), ('cell2', 'c'), ('cell1', 'ab'))
    @ddt.unpack
    def test_cells_that_nova_asks(self, cell, expected):
        spec = objects.RequestSpec(
            requested_destination=cell
            and objects.Destination(cell=objects.CellMapping(uuid=cell))
        )
        renew = mock.Mock()
        self.manager._heartbeats = types.SimpleNamespace(renew=renew)
        found = self.manager.get_host_states_by_uuids(None, 'abcx', spec)
        self.assertEqual(list(expected), [state.uuid for state in found])
        renew.assert_called_once_with(found)
