# SPDX-License-Identifier: Apache-2.0

"""Which hosts a request gets, and what of them is kept."""

import datetime
import types
from unittest import mock

import ddt
from nova import objects
from nova.scheduler import host_manager
from nova.servicegroup.drivers import db
from oslo_utils import fixture as utils_fixture
from oslo_utils import timeutils
import testtools

from nova_ext_sched.cmd import kept_hosts

DOWN_SECONDS = 60


def make_state(uuid, cell='cell1', age=5, key='last_seen_up'):
    """Return a nova HostState, and how old its last heartbeat is."""
    state = host_manager.HostState(f'host{uuid}', f'node{uuid}', cell)
    state.uuid = uuid
    state.free_ram_mb = 1000
    heartbeat = timeutils.utcnow(with_timezone=True) - datetime.timedelta(
        seconds=age
    )
    state.service = {'last_seen_up': None, 'created_at': None, key: heartbeat}
    return state


def make_manager(*states):
    """Return a HostManager of these hosts; the cell ``cell1`` is enabled."""
    manager = object.__new__(kept_hosts.HostManager)
    manager.cells = {'cell1': 'first', 'cell2': 'second'}
    manager.enabled_cells = [types.SimpleNamespace(uuid='cell1')]
    manager._get_computes_for_cells = mock.Mock(return_value=((), ()))
    manager._get_host_states = mock.Mock(return_value=states)
    return manager


@ddt.ddt
class HostManagerTestCase(testtools.TestCase):
    """Hosts a and b of an enabled cell, c of a disabled one."""

    def setUp(self):
        super().setUp()
        context = mock.patch.object(kept_hosts.nova_scheduler, 'context')
        self.ctxt = context.start().return_value
        self.addCleanup(context.stop)
        self.manager = make_manager(
            make_state('a'), make_state('b'), make_state('c', 'cell2')
        )

    def get(self, uuids, spec=None):
        return self.manager.get_host_states_by_uuids(None, uuids, spec)

    @ddt.data((None, 'ab'), ('bx', 'b'), ('', ''))
    @ddt.unpack
    def test_hosts_that_are_wanted(self, uuids, expected):
        found = self.get(uuids)
        self.assertEqual(list(expected), [state.uuid for state in found])

    @ddt.data((None, 'ab'), ('cell2', 'c'), ('cell1', 'ab'))
    @ddt.unpack
    def test_cells_that_nova_asks(self, cell, expected):
        spec = objects.RequestSpec(
            requested_destination=cell
            and objects.Destination(cell=objects.CellMapping(uuid=cell))
        )
        for _ in range(2):
            found = self.get('abcx', spec)
            self.assertEqual(list(expected), [state.uuid for state in found])
        # All are read once.
        self.manager._get_computes_for_cells.assert_called_once_with(
            self.ctxt, ['first', 'second'], compute_uuids=None
        )

    def test_each_request_has_states_of_its_own(self):
        [first] = self.get('a')
        first.free_ram_mb -= 100
        first.instances['server'] = None
        [second] = self.get('a')
        self.assertEqual((1000, {}), (second.free_ram_mb, second.instances))


@ddt.ddt
class HeartbeatsTestCase(testtools.TestCase):
    """What nova's own driver says of services, as time goes by."""

    def setUp(self):
        super().setUp()
        self.clock = self.useFixture(utils_fixture.TimeFixture())
        self.driver = db.DbDriver.__new__(db.DbDriver)
        self.driver.service_down_time = DOWN_SECONDS

    def is_up(self, manager):
        [state] = manager.get_host_states_by_uuids(None, 'a', None)
        return self.driver.is_up(state.service)

    @ddt.data(
        (5, True),
        (DOWN_SECONDS, True),
        (DOWN_SECONDS + 1, False),
        # A clock that is ahead.
        (-DOWN_SECONDS, True),
        (-DOWN_SECONDS - 1, False),
    )
    @ddt.unpack
    def test_as_when_they_were_read(self, age, is_up):
        for key in ('last_seen_up', 'created_at'):
            manager = make_manager(make_state('a', age=age, key=key))
            for seconds in (0, DOWN_SECONDS, 3600):
                self.assertEqual(is_up, self.is_up(manager))
                self.clock.advance_time_seconds(seconds)

    def test_what_is_shared_stays(self):
        state = make_state('a')
        before = dict(state.service)
        manager = make_manager(state)
        self.assertTrue(self.is_up(manager))
        self.clock.advance_time_seconds(3600)
        self.assertTrue(self.is_up(manager))
        self.assertEqual(before, state.service)
        self.assertFalse(self.driver.is_up(state.service))
