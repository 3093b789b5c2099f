# SPDX-License-Identifier: Apache-2.0

"""audit finds the servers that stand on Blazar's hosts and may not."""

from tests.functional import audits
from tests.functional import reservations


class BlazarTestCase(audits.AuditTestCase):
    host_filters = ('BlazarFilter',)
    options = {}

    def findings(self, *argv):
        _, findings = self.audit(*argv)
        return [
            (one['server'], one['host'], one['policy'], one['reason'])
            for one in findings
        ]

    def test_servers_on_hosts_of_blazar(self):
        lease = {
            'blazar:owner': self.api.project_id,
            reservations.OTHER_PROJECT: 'blazar:project',
        }
        self.aggregate('freepool', [])
        self.aggregate('a', ['host1'], zone='blazar_a', metadata=lease)
        self.assertBootsOn('host1', hints={'reservation': 'a'})
        self.assertBootsOn('host3', host='host3')
        early = self.assertBootsOn('host2', host='host2')
        self.assertEqual([], self.findings())

        # The operator gives Blazar a host that has a server.
        self.add_host('freepool', 'host2')
        (finding,) = self.findings('--policy', 'blazar')
        self.assertEqual((early['id'], 'host2', 'blazar'), finding[:3])
        self.assertIn(
            'aggregate freepool is a pool of Blazar (of free hosts) and the '
            'request names no reservation',
            finding[3],
        )

        # The lease passes to another project.
        self.set_metadata('a', {'blazar:owner': reservations.OTHER_PROJECT})
        self.assertEqual(2, len(self.findings()))
