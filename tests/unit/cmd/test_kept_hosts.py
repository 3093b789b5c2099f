# SPDX-License-Identifier: Apache-2.0

"""What nova's own driver says of services, as time goes by."""

import datetime
import types

import ddt
from nova.servicegroup.drivers import db
from oslo_utils import fixture as utils_fixture
from oslo_utils import timeutils
import testtools

from nova_ext_sched.cmd import kept_hosts

DOWN_SECONDS = 60


@ddt.ddt
class HeartbeatsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = self.useFixture(utils_fixture.TimeFixture())
        self.driver = db.DbDriver.__new__(db.DbDriver)
        self.driver.service_down_time = DOWN_SECONDS

    def state(self, age, key='last_seen_up'):
        heartbeat = timeutils.utcnow(with_timezone=True) - datetime.timedelta(
            seconds=age
        )
        service = {'last_seen_up': None, 'created_at': None, key: heartbeat}
        return types.SimpleNamespace(uuid=f'{age} {key}', service=service)

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
            state = self.state(age, key)
            found = kept_hosts.Heartbeats([state])
            for seconds in (0, DOWN_SECONDS, 3600):
                self.clock.advance_time_seconds(seconds)
                found.renew([state])
                self.assertEqual(is_up, self.driver.is_up(state.service))

    def test_what_is_shared_stays(self):
        state = self.state(5)
        before = dict(state.service)
        shared = state.service
        found = kept_hosts.Heartbeats([state])
        self.clock.advance_time_seconds(3600)
        found.renew([state])
        self.assertEqual(before, shared)
        self.assertFalse(self.driver.is_up(shared))
