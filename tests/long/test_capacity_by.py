# SPDX-License-Identifier: Apache-2.0

"""The room of zones, aggregates and failure domains, beside a real nova."""

from tests.functional import capacity


class GroupsTestCase(capacity.CapacityTestCase):
    """Two zones of a host each; host1 is in three aggregates."""

    def setUp(self):
        super().setUp()
        self.aggregate('earth', ['host1'], zone='earth', failure_domain='r1')
        self.aggregate('mars', ['host2'], zone='mars', failure_domain='r1,r2')
        self.aggregate('gpu', ['host1'])
        self.aggregate('ssd', ['host1', 'host2'])
        # Two fit on a host.
        self.large_id = self.large()

    def by(self, kind, *args):
        answer = capacity.run(
            *('--flavor', self.large_id, '--by', kind, '-f', 'json', *args)
        )
        [found] = answer.flavors
        self.assertEqual(6, found['servers'])
        servers = {one['name']: one['servers'] for one in found['groups']}
        return servers, found['in_several']['servers']

    def test_zones_aggregates_and_domains(self):
        self.assertEqual(
            ({'earth': 2, 'mars': 2, 'nova': 2}, 0), self.by('zone')
        )
        # A host is in three aggregates.
        self.assertEqual(
            ({'earth': 2, 'gpu': 2, 'mars': 2, 'ssd': 4, '': 2}, 4),
            self.by('aggregate'),
        )
        answer = capacity.run('--flavor', self.large_id, '--by', 'aggregate')
        self.assertIn(
            '\n4 of these would be on hosts in several aggregates, and count '
            'in each.\n',
            answer.out,
        )
        self.assertEqual(({'r1': 4, 'r2': 2, '': 2}, 2), self.by('domain'))
        self.assertEqual(
            ({'r1': 4, 'r2': 2, 'r3': 2, '': 2}, 4),
            self.by(
                'domain', '--aggregate-property', 'gpu', 'failure_domain=r3'
            ),
        )
        # What ends the room.
        self.set_service('host2', status='disabled')
        self.boot(flavor=self.large(vcpu=9), az='nova:host1')
        answer = capacity.read('--flavor', self.large_id, '--by', 'aggregate')
        [found] = answer.flavors
        ends = {
            one['name']: {end['ends']: end['hosts'] for end in one['ends']}
            for one in found['groups']
        }
        self.assertEqual({'VCPU': 1, 'disabled service': 1}, ends['ssd'])
        self.assertEqual({'VCPU': 1}, ends['gpu'])
        rows = capacity.run(
            *('--flavor', self.large_id, '--by', 'zone', '-f', 'value'),
            *('-c', 'Zone', '-c', 'Servers', '-c', 'Hosts'),
        )
        self.assertEqual('nova 2 1\nearth 0 0\nmars 0 0\n', rows.out)
        self.set_service('host2', status='enabled')
        for _ in range(2):
            self.boot(flavor=self.large_id, az='mars')
        self.assertNoValidHost(flavor=self.large_id, az='mars')
