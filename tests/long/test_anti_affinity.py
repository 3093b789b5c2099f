# SPDX-License-Identifier: Apache-2.0

"""Rules of server groups that nova's API never wrote."""

from nova import context as nova_context
from nova import utils
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from oslo_serialization import jsonutils

from tests.functional import server_groups


class OldRowTest(server_groups.AntiAffinityTestCase):
    """Rules that stand in the database in a form that the API refuses."""

    def test_a_limit_that_is_no_number(self):
        group = self.create_group(2)
        server = self.boot(group)
        # nova's versioned notifications raise on such a limit before any
        # filter is asked; unversioned is its default.
        self.flags(notification_format='unversioned', group='notifications')
        self.store_rules(group, jsonutils.dumps({'max_server_per_host': 'x'}))
        self.assertCannotMigrate(server)
        warning = (
            f'ServerGroupAntiAffinityFilter rejects every host for server '
            f'group {group}'
        )
        self.assertEqual(1, self.stdlog.logger.output.count(warning))

    def store_rules(self, group, text):
        """Write the rules into the row that nova's API checked once."""
        self._store_rules(nova_context.get_admin_context(), group, text)

    @staticmethod
    @api_db.context_manager.writer
    def _store_rules(context, uuid, text):
        row = (
            context.session.query(api_models.InstanceGroup)
            .filter_by(uuid=uuid)
            .one()
        )
        context.session.query(api_models.InstanceGroupPolicy).filter_by(
            group_id=row.id
        ).update({'rules': text})


class MoveTest(server_groups.AntiAffinityTestCase):
    """host1 and host2 hold their limit; the scheduler prefers host2 to host3.

    A move off host1 must end on host3, and must fail while there is none.
    """

    def test_moves(self):
        group = self.create_group()
        server, other = (self.boot(group) for _ in range(2))
        self.assertEqual(['host1', 'host2'], self.hosts(server, other))
        self.assertCannotMigrate(server)
        # A rebuild stays on a host that holds the limit.
        # From 2.100 on the answer has the hint of the group, which nova 31
        # takes for invalid.
        with utils.temporary_mutation(self.api, microversion='2.99'):
            self._rebuild_server(
                server, '155d900f-4e14-4e4c-a73d-069cbf4541e6'
            )
        self.flags(allow_resize_to_same_host=True)
        self._resize_server(
            server, self._create_flavor(vcpu=2, memory_mb=512, disk=1)
        )
        self._confirm_resize(server)
        self.assertEqual(['host1'], self.hosts(server))
        self.start_service('compute', host='host3')
        self._migrate_server(server)
        self._confirm_resize(server)
        self.assertEqual(['host3'], self.hosts(server))
        self._live_migrate(server)
        self.assertEqual(['host1'], self.hosts(server))
        self._shelve_server(server)
        # Its place on host1 is taken meanwhile.
        taking = self.boot(group)
        self.assertEqual(['host1'], self.hosts(taking))
        self._unshelve_server(server)
        self.assertEqual(['host3'], self.hosts(server))
        self._delete_server(server)
        self.lose('host1')
        self._evacuate_server(taking, expected_host='host3')
