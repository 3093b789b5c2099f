# SPDX-License-Identifier: Apache-2.0

"""The audit, one policy and one circumstance at a time."""

from tests.functional import audits


class DomainsTestCase(audits.AuditTestCase):
    """Failure domains above their limit, as a race leaves them."""

    options = {}

    def setUp(self):
        super().setUp()
        self.flags(disable_group_policy_check_upcall=True, group='workarounds')
        self.aggregate('rack1', ['host1', 'host2'], failure_domain='rack1')
        self.aggregate('rack2', ['host3'], failure_domain='rack2')
        self.members = {'group': self.create_group(2)}

    def boot_on(self, host):
        return self.boot(hints=self.members, az=f'nova:{host}')['id']

    def allow(self, servers):
        """Turn the policy on, which would have refused servers at boot."""
        self.flags(
            max_server_per_failure_domain=servers, group='nova_ext_sched'
        )

    def test_two_in_a_rack(self):
        servers = [
            (self.boot_on(host), host, 'failure-domain')
            for host in ('host1', 'host2', 'host3')
        ]
        self.allow(2)
        self.assertEqual([], self.found())
        self.allow(1)
        self.assertEqual(sorted(servers[:2]), self.found())
        # A server that moves counts in both racks.
        moving = servers[2][0]
        self.allow(0)
        self.act({'id': moving}, 'migrate', 'VERIFY_RESIZE', host='host1')
        self.allow(2)
        self.assertEqual(
            {uuid for uuid, *_ in servers}, {uuid for uuid, *_ in self.found()}
        )
