# SPDX-License-Identifier: Apache-2.0

import types
from unittest import mock

import ddt
import testtools

from nova_ext_sched.cmd.capacity import host_manager
from tests.unit.cmd.audit import test_host_manager


@ddt.ddt
class HostManagerTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.manager = object.__new__(host_manager.HostManager)
        self.manager.states = {
            uuid: test_host_manager.make_state(uuid) for uuid in 'ab'
        }
        self.renew = mock.Mock()
        self.manager._heartbeats = types.SimpleNamespace(renew=self.renew)

    def get(self, uuids):
        return self.manager.get_host_states_by_uuids(None, uuids, None)

    @ddt.data((None, 'ab'), ('bx', 'b'), ('', ''))
    @ddt.unpack
    def test_hosts_that_are_wanted(self, uuids, expected):
        found = self.get(uuids)
        self.assertEqual(list(expected), [state.uuid for state in found])
        self.renew.assert_called_once_with(found)

    def test_each_request_has_states_of_its_own(self):
        [first] = self.get('a')
        first.free_ram_mb -= 100
        first.instances['server'] = None
        [second] = self.get('a')
        self.assertEqual((1000, {}), (second.free_ram_mb, second.instances))
