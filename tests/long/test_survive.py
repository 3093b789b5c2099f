# SPDX-License-Identifier: Apache-2.0

"""How many servers may come, and servers that are deleted meanwhile."""

from nova.tests import fixtures as nova_fixtures

from nova_ext_sched.cmd import survive as survive_command
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.decision import server as explain_server
from nova_ext_sched.dryrun.plan import ending
from nova_ext_sched.dryrun.plan import shared_answers
from tests.functional import explain
from tests.functional import keystone
from tests.functional import plans
from tests.functional import test_survive


class FlavorTestCase(test_survive.SurviveTestCase):
    """How many more servers may come: as many come, and then one more."""

    def assertSpare(self, spare, fit, failure, flavor, *argv):
        """Let servers come and a host fail, and nova evacuate it.

        :param flavor: the ID of the new servers' flavor
        """
        self.assertEqual(
            (spare, fit, failure), self.count_spare(flavor, *argv)
        )
        for _ in range(spare):
            self.boot(flavor=flavor)
        # No failure is worse than before.
        self.assertEqual(0, self.find_most_stuck(self.survive(*argv)))
        self.boot(flavor=flavor)
        document = self.survive(*argv)
        self.assertEqual(1, self.find_most_stuck(document))
        [failed] = [
            one for one in document['failures'] if one['failure'] == failure
        ]
        self.assertEqual(1, len(failed['without_place']))
        self.fail_hosts(failed)

    def find_most_stuck(self, document):
        return max(len(one['without_place']) for one in document['failures'])

    def test_a_project(self):
        """As many as nova makes for it; for no project why there is none."""
        mine = self.api.project_id
        self.useFixture(keystone.Projects(mine))
        reservation = {'reservation:gpu': 'true'}
        self.aggregate(
            'gpu',
            ['host1', 'host2'],
            metadata={**reservation, 'filter_tenant_id': mine},
        )
        flavor = self.flavor(vcpu=4, specs=reservation)
        self.assertEqual(
            (2, 4, 'host1'), self.count_spare(flavor, project=mine)
        )
        [none] = self.survive('--flavor', flavor)['flavors']
        self.assertEqual((0, 'reservation'), (none['fit'], none['cause']))
        self.assertIn('No project was given (--project)', none['reason'])

    def test_a_group_whose_rule_is_just_met(self):
        hints = self.group(limit=2)
        member = self.flavor(vcpu=3)
        for host in (*self.weights, 'host1'):
            self.boot(flavor=member, hints=hints, az=f'nova:{host}')
        for number, host in ((6, 'host2'), (4, 'host3')):
            self.boot(flavor=self.flavor(vcpu=number), az=f'nova:{host}')
        # Two on host1; the next takes the room on host3, and host4 may have
        # one of the group alone.
        self.assertSpare(2, 6, 'host1', self.flavor(vcpu=2))

    def test_a_rack(self):
        self.racks()
        self.boot(flavor=self.flavor(vcpu=3), az='nova:host1')
        self.boot(flavor=self.flavor(vcpu=8), az='nova:host4')
        # Two on host1; the next takes the room on host2.
        self.assertSpare(
            2, 8, 'rack1', self.flavor(vcpu=3), '--lose', 'domain'
        )


class CellsTestCase(test_survive.EvacuationMixin, plans.PlanTestCase):
    NUMBER_OF_CELLS = 2
    weights = {'host1': 200, 'host2': 100, 'host3': 20, 'host4': 10}
    cells = {'host3': 'cell2', 'host4': 'cell2'}

    def test_more_servers_stay_in_their_cell_too(self):
        # Two on host1; the next takes the room of one of them on host2.
        flavor = self.flavor(vcpu=5)
        self.assertEqual((2, 8, 'host1'), self.count_spare(flavor))

    def test_a_disabled_host_of_another_cell_is_no_cause(self):
        hints = self.group(limit=1)
        for host in ('host1', 'host2'):
            self.boot(hints=hints, az=f'nova:{host}')
        self.set_service('host3', status='disabled')
        found = explain.ask(
            survive_command.Survive, 'survive', '--host', 'host1'
        )
        [failure] = found.plan['failures']
        [cause] = failure['causes']
        self.assertEqual(
            ('anti-affinity', 1), (cause['cause'], cause['servers'])
        )


class DeletedTestCase(test_survive.SurviveTestCase):
    """Servers that are deleted while hosts fail."""

    weights = {'host1': 300, 'host2': 200}

    def setUp(self):
        super().setUp()
        network = nova_fixtures.NeutronFixture.network_1['id']
        self.networks = [{'uuid': network}]

    def test_at_any_moment(self):
        """Servers that are like one that is gone are judged as before."""
        alike = [self.boot_alike() for _ in range(3)]
        for target, name, archives in (
            (admission, 'ask', True),
            (explain_server.Server, '__init__', False),
            (shared_answers.SharedAnswers, 'make', False),
            (ending, 'settle', False),
        ):
            first, *others = sorted(alike, key=lambda one: one['id'])
            with self.deleting(first, target, name, archives):
                document = self.survive('--host', 'host1')
            self.assertDeleted([first], document)
            [failure] = document['failures']
            self.assertEqual([], failure['without_place'])
            self.assertEqual(
                [one['id'] for one in others],
                sorted(one['server'] for one in failure['moves']),
            )
            alike = [*others, self.boot_alike()]

    def boot_alike(self):
        return self.boot(az='nova:host1', networks=self.networks)
