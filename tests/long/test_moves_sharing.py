# SPDX-License-Identifier: Apache-2.0

"""Moves of servers whose disk is on a provider that hosts share.

A request that names its host gets no candidate of such a provider. So a plan
names none, and nova chooses.
"""

from tests.functional import plans
from tests.functional import sharing
from tests.functional import test_survive


class EvacuationTestCase(
    sharing.StorageMixin, test_survive.EvacuationMixin, plans.PlanTestCase
):
    weights = {'host1': 300, 'host2': 200, 'host3': 100}

    def test_what_is_held_already_is_not_needed_twice(self):
        """Placement offers the disk once more, and each server finds it."""
        self.share(45, 'host1', 'host2', 'host3')
        flavor = self.flavor(vcpu=1, disk=10)
        for _ in range(3):
            self.boot(flavor=flavor)
        self.boot(host='host1')
        [failure] = self.survive()['failures']
        self.assertEqual([], failure['without_place'])
        self.assertEqual(
            {None, 'host2'}, {one['to'] for one in failure['moves']}
        )
        self.fail_hosts(failure)

    def test_how_many_may_come(self):
        """Of those that fit, as many as placement offers room to evacuate."""
        self.share(25, 'host1', 'host2')
        flavor = self.flavor(vcpu=4, disk=10)
        spare, fit, failure = self.count_spare(flavor)
        self.assertEqual(2, fit)
        # With both of them no 10 GB are left, which an evacuation asks for.
        self.assertEqual((1, 'host1'), (spare, failure))
        self.boot(flavor=flavor)
        [failure] = self.survive()['failures']
        self.assertEqual([], failure['without_place'])
        self.boot(flavor=flavor)
        self.assertNoValidHost(flavor=flavor)
        [failure] = self.survive()['failures']
        self.assertEqual(2, len(failure['without_place']))
        self.fail_hosts(failure)

    def test_another_storage_where_one_is_full(self):
        """A host that got no server has lost a candidate all the same."""
        for name in ('ssd', 'hdd'):
            self.share(15, 'host1', 'host2', name=name)
        flavor = self.flavor(vcpu=6, disk=10)
        self.assertEqual((1, 2, 'host1'), self.count_spare(flavor))
        self.boot(flavor=flavor)
        [failure] = self.survive()['failures']
        self.assertEqual([], failure['without_place'])
        self.boot(flavor=flavor)
        self.assertNoValidHost(flavor=flavor)
        failure, _ = self.survive()['failures']
        self.assertEqual(1, len(failure['without_place']))
        self.fail_hosts(failure)
