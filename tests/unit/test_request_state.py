# SPDX-License-Identifier: Apache-2.0

import ddt
from nova import objects
import testtools

from nova_ext_sched import request_state

objects.register_all()


@ddt.ddt
class PicksTestCase(testtools.TestCase):
    @ddt.data([], ['before', 'a'])
    def test_in_order(self, before):
        """The first pick of a group that has no host yet counts too."""
        group = objects.InstanceGroup(hosts=[*before])
        spec = objects.RequestSpec(instance_group=group)
        for picked in ([], ['a'], ['a', 'b'], ['a', 'b', 'a']):
            group.hosts = [*before, *picked]
            for _ in range(2):
                self.assertEqual(picked, request_state.picks(spec))
        request_state.forget_group(spec)
        self.assertEqual([], request_state.picks(spec))

    @ddt.data({}, {'hosts': None})
    def test_a_group_whose_hosts_are_not_known(self, fields):
        group = objects.InstanceGroup(**fields)
        spec = objects.RequestSpec(instance_group=group)
        self.assertEqual([], request_state.picks(spec))
