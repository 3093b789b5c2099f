# SPDX-License-Identifier: Apache-2.0

"""Plans, each carried out by nova move after move, and audited again."""

import fixtures

from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import snapshot
from tests.functional import keystone
from tests.functional import plans


class PlanTestCase(plans.PlanTestCase):
    weights = {'host1': 400, 'host2': 300, 'host3': 200, 'host4': 100}

    def test_isolation_over_a_filled_aggregate(self):
        """The third finds the best host full, by the first two."""
        flavor = self.flavor(vcpu=4)
        servers = [
            self.boot(flavor=flavor, host=host)
            for host in ('host2', 'host2', 'host3')
        ]
        suspended = self.boot(flavor=self.flavor(vcpu=1), host='host3')
        for server, action, state in (
            (servers[0], 'os-stop', 'SHUTOFF'),
            (suspended, 'suspend', 'SUSPENDED'),
        ):
            self.admin_api.post_server_action(server['id'], {action: None})
            self._wait_for_state_change(server, state)
        self.isolate('windows', ['host2', 'host3'], 'CUSTOM_WINDOWS')
        plan = self.mend()
        self.assertEqual(
            ['host1'] * 2 + ['host4'], [m['to'] for m in plan['moves']]
        )
        self.assertEqual(
            sorted((one['id']) for one in servers),
            sorted(m['server'] for m in plan['moves']),
        )
        self.assertSentence(
            '3 of 4 servers can be moved; 1 cannot: state.', plan
        )
        self.assertIn('vm_state', plan['without_place'][0]['reason'])
        self.assertEqual(
            {
                (kind, self.api.project_id, 'isolation')
                for kind in ('live', 'cold')
            },
            {
                (m['method'], m['project'], *m['policies'])
                for m in plan['moves']
            },
        )

    def test_a_full_destination_that_an_order_resolves(self):
        """Each of three takes the place that the one before it left."""
        flavors = [
            self.flavor(vcpu=10, specs={f'reservation:{name}': 'true'})
            for name in 'abc'
        ]
        servers = [
            self.boot(flavor=flavor, az=f'nova:{host}')['id']
            for flavor, host in zip(
                flavors, ('host1', 'host2', 'host3'), strict=True
            )
        ]
        for name, host in (('a', 'host2'), ('b', 'host3'), ('c', 'host4')):
            self.aggregate(name, [host], metadata={f'reservation:{name}': '1'})
        a, b, c = servers
        self.assertEqual(
            [
                (c, 'host3', 'host4'),
                (b, 'host2', 'host3'),
                (a, 'host1', 'host2'),
            ],
            self.moves(self.mend()),
        )

    def test_arguments(self):
        """Stage 1 obeys a change too: nova and placement have it otherwise."""
        plan = self.mend()
        self.assertEqual([], plan['moves'])
        self.assertSentence('No server has to move.', plan)
        self._create_trait('CUSTOM_WINDOWS')
        server = self.boot(host='host2')
        required = {'trait:CUSTOM_WINDOWS': 'required'}
        self.aggregate('windows', ['host2'])
        self.aggregate('licensed', ['host1'], metadata=required)
        trait = 'trait:CUSTOM_WINDOWS'
        changed = ('--aggregate-property', 'windows', f'{trait}=required')
        for argv, host in (
            (changed, 'host3'),
            (
                (*changed, '--no-aggregate-property', 'licensed', trait),
                'host1',
            ),
            (('--aggregate-host', 'licensed', 'host2'), 'host3'),
            (
                (
                    *('--aggregate-host', 'licensed', 'host2'),
                    *('--no-aggregate-host', 'licensed', 'host1'),
                ),
                'host1',
            ),
        ):
            self.assertEqual(
                [(server['id'], 'host2', host)], self.moves(self.plan(*argv))
            )
        # Nothing of it is left in the process.
        self.assertNoValidHost(host='host1')
        flavor = self.flavor(specs={'trait:COMPUTE_NODE': 'required'})
        for kind in (None, flavor):
            self.boot(flavor=kind, host='host3')
        self.isolate('more', ['host2', 'host3'], 'CUSTOM_WINDOWS')
        self.useFixture(keystone.Projects('empty'))
        for argv, number in (
            (('--host', 'host2'), 1),
            (('--project', 'empty'), 0),
            (('--aggregate', 'more'), 3),
        ):
            self.assertEqual(number, len(self.plan(*argv)['moves']))
        self.equal_requests_are_asked_once()

    def equal_requests_are_asked_once(self):
        """One query for each flavor, and the hosts read once."""
        asked, read = [], []
        candidates = placement.Candidates
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.dryrun.cloud.placement.Candidates',
                lambda *args: asked.append(args) or candidates(*args),
            )
        )
        states = snapshot.Snapshot._get_host_states
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.dryrun.cloud.snapshot.Snapshot._get_host_states',
                lambda *args: read.append(args) or states(*args),
            )
        )
        self.assertEqual(3, len(self.plan()['moves']))
        self.assertEqual((2, 1), (len(asked), len(read)))


class ByHintTestCase(plans.PlanTestCase):
    weights = {'host1': 400, 'host2': 300, 'host3': 200, 'host4': 100}

    def test_what_only_a_hint_asks_for(self):
        for host in self.weights:
            self.aggregate(f'of {host}', [host], failure_domain=host)
        hints = {**self.group(limit=9), 'different_failure_domain': 'true'}
        for host in ('host1', 'host2'):
            self.boot(hints=hints, host=host)
        self.set_metadata('of host2', {'failure_domain': 'host1'})
        plan = self.mend()
        self.assertEqual(1, len(plan['moves']))
