# SPDX-License-Identifier: Apache-2.0

from tests.functional import audits


class PoliciesTestCase(audits.AuditTestCase):
    def test_policies(self):
        # Otherwise nova-compute refuses what the forced host brings.
        self.flags(disable_group_policy_check_upcall=True, group='workarounds')
        # The last one leaves options of nova.conf changed.
        for check in (
            self.reservation,
            self.failure_domain,
            self.isolation,
        ):
            check()
            for server in self.admin_api.get_servers():
                self._delete_server(server)

    def isolation(self):
        server = self.boot(host='host2')
        self.boot(host='host1')
        self.assertEqual((0, []), self.audit())
        self.isolate('windows', ['host2'], 'CUSTOM_WINDOWS')
        status, rows = self.audit()
        self.assertEqual(3, status)
        self.assertEqual(
            [
                {
                    'server': server['id'],
                    'name': server['name'],
                    'project': self.api.project_id,
                    'host': 'host2',
                    'policy': 'isolation',
                    'reason': 'the request is not allowed in windows: it does '
                    'not require CUSTOM_WINDOWS',
                    # No keystone answers here.
                    'project_name': None,
                    'server_group': None,
                }
            ],
            rows,
        )
        other = ('--host', 'host1')
        self.assertEqual([], self.found(*other))
        # Nobody knows this one: that is no all-clear.
        self.assertEqual((1, []), self.audit('--project', 'f00d' * 8))
        # The hosts of both, as for drain and survive.
        self.assertEqual(
            [(server['id'], 'host2', 'isolation')],
            self.found(*other, '--aggregate', 'windows'),
        )
        # The request filter alone keeps requests out, so it is on, ...
        enabled = 'filter_scheduler.enabled_filters='
        self.assertEqual(
            [(server['id'], 'host2', 'isolation')],
            self.found('--option', enabled),
        )
        # ... and here nothing obeys.
        found = self.audit(
            *('--option', f'{enabled}ServerGroupAntiAffinityFilter'),
            *('--option', 'nova_ext_sched.request_filters='),
        )
        self.assertEqual((0, []), found)

    def reservation(self):
        """One stands on another's host, one lost its own."""
        self.aggregate('db', ['host3'], metadata={'reservation:db': 'true'})
        flavor = self.flavor(specs={'reservation:db': 'true'})
        left = self.boot(flavor=flavor, host='host3')
        plain = self.boot(host='host2')
        self.remove_host('db', 'host3')
        self.add_host('db', 'host2')
        self.assertEqual(
            sorted(
                [
                    (left['id'], 'host3', 'reservation'),
                    (plain['id'], 'host2', 'reservation'),
                ]
            ),
            self.found(),
        )
        self.set_metadata('db', {'reservation:db': None})

    def failure_domain(self):
        """Two of a group come to stand in one rack; the third is alone.

        By their hints; nothing of the operator's asks for that.
        """
        policy = 'failure-domain-by-hint'
        group = self.create_group(2)
        hints = {'group': group, 'different_failure_domain': 'true'}
        for host in self.weights:
            self.aggregate(f'of {host}', [host], failure_domain=host)
        servers = {
            host: self.boot(hints=hints, host=host)['id']
            for host in self.weights
        }
        self.boot(hints={'group': group}, host='host1')
        self.assertEqual([(servers['host1'], 'host1', policy)], self.found())
        self.set_metadata('of host2', {'failure_domain': 'host3'})
        status, rows = self.audit('--host', 'host3')
        self.assertEqual(
            [
                f'not counting this server, failure domain host3 holds 1 '
                f'server of server group {group} and the limit is 1'
            ],
            [row['reason'] for row in rows],
        )
        self.assertEqual(
            sorted((servers[host], host, policy) for host in self.weights),
            self.found(),
        )
        self.assertEqual(
            [(servers['host1'], 'host1', policy)],
            self.found(
                '--aggregate-property', 'of host2', 'failure_domain=host2'
            ),
        )
