# SPDX-License-Identifier: Apache-2.0

"""Moves of a server group's members, beside others that are under way."""

import threading

from nova.virt import fake

from nova_ext_sched.cmd import drain
from nova_ext_sched.cmd import maintain
from nova_ext_sched.cmd import survive
from tests.functional import explain
from tests.functional import nodes
from tests.functional import plans
from tests.functional import test_drain
from tests.functional import test_survive


class UnderWayTestCase(test_drain.DrainTestCase):
    """nova's filters do not see where a member goes (LP 1821755)."""

    weights = {f'host{n}': 700 - n for n in range(1, 6)}

    def setUp(self):
        super().setUp()
        self.may_end = threading.Event()
        self.addCleanup(self.may_end.set)
        migrate = fake.FakeDriver.live_migration

        def migrate_slowly(*args, **kwargs):
            self.may_end.wait(60)
            migrate(*args, **kwargs)

        self.patch(fake.FakeDriver, 'live_migration', migrate_slowly)

    def test_both_hosts_of_a_migration_count(self):
        hints = self.group(limit=1)
        member, other = (
            self.boot(hints=hints, az=f'nova:{host}')
            for host in ('host1', 'host3')
        )
        plain = self.boot(host='host1')
        self.live_migrate(other, 'host2')
        self._wait_for_migration_status(other, ['running'])
        plan = self.plan('host1', by=drain.Drain)
        self.assertEqual(
            {
                (member['id'], 'host1', 'host4'),
                (plain['id'], 'host1', 'host2'),
            },
            {*self.moves(plan)},
        )
        self.may_end.set()
        self._wait_for_server_parameter(
            other, {'OS-EXT-SRV-ATTR:host': 'host2', 'status': 'ACTIVE'}
        )
        self.carry_out(plan)
        self.assertEqual([], self.found())


class NamesTestCase(test_drain.DrainTestCase):
    """People read a group's name where programs have its UUID."""

    def test_a_group_that_keeps_servers(self):
        group = self.create_group(1, name='db')
        self.boot_each_on(*self.weights, hints={'group': group})
        plan = self.plan('host1', by=drain.Drain)
        [stuck] = plan['without_place']
        self.assertIn(f'server group {group} ', stuck['reason'])
        for kind, *argv in (
            (drain.Drain, 'drain', 'host1'),
            (maintain.Maintain, 'maintain', 'host1'),
            (survive.Survive, 'survive', '--host', 'host1'),
        ):
            text, *_ = explain.call(kind, *argv)
            self.assertIn(' server group db ', ' '.join(text.split()))
            self.assertNotIn(group, text)


class NodesTestCase(
    nodes.NodesMixin, test_survive.EvacuationMixin, plans.PlanTestCase
):
    """The servers of a nova-compute count for each of its nodes (ironic)."""

    weights = {'host1': 300, 'host2': 200, 'host3': 100}

    def test_one_of_a_group_goes_to_a_host_of_many_nodes(self):
        hints = self.group(limit=1)
        for host in ('host1', 'host3'):
            self.aggregate(host, [host], failure_domain='rack')
            self.boot(hints=hints, az=f'nova:{host}')
        self.add_nodes('host2', 2)
        self.assertFailure(
            'rack',
            '--lose',
            'domain',
            moves=['host2'],
            stuck=[('anti-affinity', '')],
        )
