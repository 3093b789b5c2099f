# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import ddt
from nova import objects
import testtools

from nova_ext_sched.cmd.export import server_groups

objects.register_all()


def group(uuid, name='web', policy='anti-affinity', rules=None, members=()):
    return objects.InstanceGroup(
        uuid=uuid,
        name=name,
        policy=policy,
        rules=rules or {},
        members=[*members],
        project_id='p',
    )


@ddt.ddt
class ServerGroupsTest(testtools.TestCase):
    def groups(self, *found):
        with mock.patch.object(
            objects.InstanceGroupList,
            'get_all',
            return_value=objects.InstanceGroupList(objects=[*found]),
        ):
            return server_groups.ServerGroups(None)

    def test_only_those_that_are_named(self):
        groups = self.groups(
            group('g1', members=['a', 'b']),
            group('g2', 'db', members=['c']),
            group('g3', 'idle'),
        )
        self.assertEqual({'a': 'g1', 'b': 'g1', 'c': 'g2'}, groups.members)
        self.assertEqual({}, groups.documents)
        self.assertEqual('web', groups.name('g1'))
        self.assertEqual(
            {'web': {'policy': 'anti-affinity', 'project': 'p', 'uuid': 'g1'}},
            groups.documents,
        )

    @ddt.data('', 'g2')
    def test_deleted(self, uuid):
        groups = self.groups(group('g1'))
        self.assertIsNone(groups.name(uuid))
        self.assertEqual({}, groups.documents)

    def test_rules_are_numbers(self):
        """nova stores texts."""
        groups = self.groups(group('g1', rules={'max_server_per_host': '3'}))
        groups.name('g1')
        self.assertEqual(
            {'max_server_per_host': 3}, groups.documents['web']['rules']
        )

    @ddt.data('web', 'a\n', '!!python {1..3}')
    def test_name_that_another_has_or_a_scenario_does_not_take(self, name):
        groups = self.groups(group('g1'), group('g2', name))
        self.assertEqual('web', groups.name('g1'))
        for _ in range(2):
            self.assertEqual('g2', groups.name('g2'))
        self.assertEqual(['web', 'g2'], [*groups.documents])
