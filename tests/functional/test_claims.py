# SPDX-License-Identifier: Apache-2.0

"""Members of a group that are under way, on real nova and placement.

The scheduler prefers host1, and no host state knows the member that another
scheduler has just placed there.
"""

import datetime
from unittest import mock

from nova.db.api import api as api_db
from nova.db.api import models
from oslo_utils import timeutils

from nova_ext_sched import claims
from nova_ext_sched.policy import slots
from tests.functional import server_groups


class ClaimsTest(server_groups.UnderWayTestCase):
    def make_old(self, member):
        @api_db.context_manager.writer
        def update(context):
            context.session.query(models.InstanceMapping).filter_by(
                instance_uuid=member
            ).update(
                {
                    'created_at': timeutils.utcnow()
                    - datetime.timedelta(seconds=claims.RECENT_SECONDS + 60)
                }
            )

        update(self.ctxt)

    def test_a_host_that_a_member_is_on_its_way_to_is_full(self):
        group = self.create_group()
        self.start_member(group, 'host1')
        self.assertEqual(['host2'], self.hosts(self.boot(group)))

    def test_members_under_way_count_beside_those_that_landed(self):
        group = self.create_group({'max_server_per_host': 2})
        self.boot(group)
        self.start_member(group, 'host1')
        self.assertEqual(['host2'], self.hosts(self.boot(group)))

    def test_a_member_that_landed_is_not_counted_twice(self):
        group = self.create_group({'max_server_per_host': 3})
        servers = [self.boot(group) for _ in range(4)]
        self.assertEqual(['host1'] * 3 + ['host2'], self.hosts(*servers))

    def test_no_host_is_left(self):
        group = self.create_group()
        self.start_member(group, 'host1')
        self.start_member(group, 'host2')
        self.boot(group, expected='ERROR')

    def test_an_old_member_is_not_looked_up(self):
        group = self.create_group()
        self.make_old(self.start_member(group, 'host1'))
        self.assertEqual(['host1'], self.hosts(self.boot(group)))

    def test_one_that_waits_too_leaves_this_one_its_hosts(self):
        group = self.create_group()
        other = self.start_member(group)
        (host,) = self.hosts(server := self.boot(group))
        free = {
            self._get_provider_uuid_by_host(name): 1
            for name in ('host1', 'host2')
        }
        mine = slots.share(free, [other], server['id'])
        self.assertEqual({self._get_provider_uuid_by_host(host)}, mine)

    def test_several_servers_of_one_request(self):
        group = self.create_group({'max_server_per_host': 2})
        self.start_member(group, 'host1')
        self.post(group, min_count=3, max_count=3)
        servers = [
            self._wait_for_state_change(server, 'ACTIVE')
            for server in self.api.get_servers()
        ]
        self.assertEqual(
            ['host1', 'host2', 'host2'], sorted(self.hosts(*servers))
        )

    def test_placement_fails(self):
        group = self.create_group()
        self.start_member(group, 'host1')
        with mock.patch.object(
            claims, '_read_allocations', side_effect=ValueError('forged\nline')
        ):
            server = self.boot(group)
        # As without the look-up; nova-compute judges again.
        self.assertEqual(['host1'], self.hosts(server))
        self.assertIn('ValueError: forged', self.log)

    def test_nothing_is_asked_without_such_a_group(self):
        with mock.patch.object(claims, 'find') as find:
            self.boot(self.create_group(policy='affinity'))
            self.boot(self.create_group())
            find.assert_not_called()
