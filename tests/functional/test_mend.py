# SPDX-License-Identifier: Apache-2.0

"""Plans, each carried out by nova move after move, and audited again."""

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
            self.act(server, action, state)
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
