# SPDX-License-Identifier: Apache-2.0

"""Orders of moves that are long, of two cells, and in each format."""

import csv
import io

from tests.functional import keystone
from tests.functional import openstackclient
from tests.functional import plans


class OrderTestCase(plans.PlanTestCase):
    weights = {'host1': 400, 'host2': 300, 'host3': 200, 'host4': 100}

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


class TwoPoliciesTestCase(plans.PlanTestCase):
    weights = {'host1': 400, 'host2': 300, 'host3': 200, 'host4': 100}

    def test_of_a_full_host_and_rack_as_many_as_are_too_many(self):
        self.aggregate('rack1', ['host1', 'host2'], failure_domain='rack1')
        self.aggregate('rack2', ['host3', 'host4'], failure_domain='rack2')
        self.rack_limit = 2
        hints = self.group(limit=9)
        self.boot_each_on('host1', 'host1', 'host2', 'host3', hints=hints)
        hints = self.group(limit=1)
        for _ in range(2):
            self.boot(hints=hints, az='nova:host2')
        plan = self.mend()
        by = {one['policies'][0]: one['to'] for one in plan['moves']}
        self.assertEqual({'anti-affinity', 'failure-domain'}, {*by})
        self.assertEqual(2, len(plan['moves']))
        self.assertIn(by['failure-domain'], ('host3', 'host4'))
        self.assertEqual(3, len(plan['mended_by_others']))


class CellsTestCase(plans.PlanTestCase):
    """Most hosts are in another cell, where no move goes."""

    NUMBER_OF_CELLS = 2
    weights = {'host1': 200, 'host2': 100, 'host3': 20, 'host4': 10}
    cells = {'host3': 'cell2', 'host4': 'cell2'}

    def test_the_cause_is_not_the_cell(self):
        hints = self.group(limit=1)
        self.boot_each_on('host1', 'host1', 'host2', hints=hints)
        plan = self.mend()
        self.assertSentence(
            '0 of 2 servers can be moved; 2 cannot: anti-affinity.', plan
        )
        one = plan['without_place'][0]
        self.assertIn('2 are not in the requested cell', one['reason'])
        self.assertEqual('', one['would_help'])


class FormatsTestCase(plans.PlanTestCase):
    weights = {'host1': 300, 'host2': 200, 'host3': 100}

    def setUp(self):
        super().setUp()
        self.running = self.boot(host='host2', name='web; $(reboot)')['id']
        self.stopped = self.boot_stopped(host='host2')['id']
        self.isolate('windows', ['host2'], 'CUSTOM_WINDOWS')
        self.openstack = self.useFixture(
            openstackclient.OpenStackClient(
                self.api_fixture.api.base_url, microversion='2.68'
            )
        )

    def test_rows_of_a_cloud_that_changes(self):
        """The scheduler looks at the host again, and refuses the move."""
        plan = self.plan()
        _, text = self.run_mend('-f', 'csv')
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(['1', '2'], [row['Turn'] for row in rows])
        self.assertEqual(
            {self.running: 'live', self.stopped: 'cold'},
            {row['Server']: row['Method'] for row in rows},
        )
        self.isolate('more', ['host1', 'host3'], 'CUSTOM_MORE')
        for move in plan['moves']:
            live = ['--live-migration'] * (move['method'] == 'live')
            words = ['--host', move['to'], move['server']]
            self.openstack.run('server', 'migrate', *live, *words)
            self.wait_until_idle({'id': move['server']})
            self.assertEqual('host2', self.host_of({'id': move['server']}))
