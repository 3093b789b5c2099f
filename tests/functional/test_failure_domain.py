# SPDX-License-Identifier: Apache-2.0

"""Failure domains, from nova's API to the host.

Two racks of two hosts, and a host in no rack. The scheduler prefers the
latter, then rack a: the wrong host nearly everywhere.
"""

from unittest import mock

from nova.tests import fixtures as nova_fixtures

from tests.functional import base
from tests.functional import explain

DIFFERENT = {'different_failure_domain': 'true'}


def at_most(limit):
    return {'max_server_per_failure_domain': limit}


class FailureDomainsTestCase(base.CloudTestCase):
    host_filters = ('FailureDomainFilter',)
    weights = {'loose': 500, 'a1': 400, 'a2': 300, 'b1': 200, 'b2': 100}
    key = 'failure_domain'

    def setUp(self):
        super().setUp()
        self.small = self.flavor()
        self.set_up_racks()

    def set_up_racks(self):
        self.racks = {
            rack: self.aggregate(
                f'rack {rack}',
                [host for host in self.computes if host.startswith(rack)],
                metadata={self.key: rack},
            )
            for rack in 'ab'
        }

    def post(self, group, hints, **server):
        """Send the request for servers of a group, and wait for nothing."""
        return super().post({**hints, 'group': group}, self.small, **server)

    def boot_in(self, group, hints, **kwargs):
        return self.boot(
            flavor=self.small, hints={**hints, 'group': group}, **kwargs
        )

    def settled_host(self, server):
        """Wait for a server to be ACTIVE or ERROR; return its host or None."""

        def is_settled():
            status = self.api.get_server(server['id'])['status']
            self.assertIn(status, ('ACTIVE', 'ERROR'))

        self._wait_for_assert(is_settled)
        return self.host_of(server)

    def hosts(self, group, hints, count):
        """Boot servers of a group one by one; return their hosts.

        None stands for a server without a valid host.
        """
        return [
            self.settled_host(self.post(group, hints)) for _ in range(count)
        ]

    def hosts_of_one_request(self, group, hints, count):
        before = {server['id'] for server in self.api.get_servers()}
        self.post(group, hints, min_count=count, max_count=count)
        return sorted(
            self.settled_host(server) or 'none'
            for server in self.api.get_servers()
            if server['id'] not in before
        )

    def member_of(self):
        return self.queries[-1].get('member_of', [])


class BootTest(FailureDomainsTestCase):
    """Who lands where; the rows are in tests/unit/policy."""

    def test_boots(self):
        self.malformed_hint_is_refused_and_others_ask_nothing()
        with nova_fixtures.ConfPatcher(
            max_server_per_failure_domain=2, group='nova_ext_sched'
        ):
            self.the_strictest_wins()
        # nova's own weighers decide.
        self.assertIn(
            'Add nova_ext_sched.weighers.all_weighers to weight_classes.',
            self.log,
        )
        self.forced_and_requested_hosts()
        self.servers_of_one_request()
        self.one_server_a_domain()

    def servers_of_one_request(self):
        """The second would be on a2: nothing but the pick of a1 speaks."""
        group = self.create_group()
        self.assertEqual(
            ['a1', 'b1'], self.hosts_of_one_request(group, DIFFERENT, 2)
        )

    def one_server_a_domain(self):
        group = self.create_group()
        first = self.boot_in(group, DIFFERENT)
        self.assertEqual('a1', self.host_of(first))
        with self.metadata_away():
            self.assertEqual([None], self.hosts(group, DIFFERENT, 1))
        self.assertIn('failure_domains cannot decide', self.log)
        self.assertEqual(['b1', None], self.hosts(group, DIFFERENT, 2))
        both = ','.join(sorted(self.racks.values()))
        self.assertEqual([f'!in:{both}'], self.member_of())
        self.explain_counts_by_domain(group)
        self._delete_server(first)
        self.assertEqual(['a1'], self.hosts(group, DIFFERENT, 1))
        # A member counts where placement left its host out.
        self.set_service('a1', status='disabled')
        self.assertEqual([None], self.hosts(group, DIFFERENT, 1))

    def explain_counts_by_domain(self, group):
        answer = explain.read(
            *('--flavor', self.small, '--server-group', group),
            *('--hint', 'different_failure_domain=true'),
        )
        self.assertEqual(3, answer.status)
        [stage1] = [
            row
            for row in answer.rows
            if row['constraint'].startswith('failure_domains')
        ]
        self.assertEqual(
            'not in aggregates rack a, rack b; servers of the group by '
            'failure domain: a: 1, b: 1',
            stage1['asks'],
        )
        self.assertEqual(4, stage1['refused'])
        self.assertIn('4 are in a full failure domain', answer.sentence)
        self.assertIn('1 is in no failure domain', answer.sentence)

    def the_strictest_wins(self):
        group = self.create_group(9)
        self.assertEqual(
            ['a1', 'b1'], self.hosts(group, {**DIFFERENT, **at_most('9')}, 2)
        )
        group = self.create_group(9)
        self.assertEqual(
            ['a1', 'a1', 'b1'], self.hosts(group, at_most('9'), 3)
        )

    def malformed_hint_is_refused_and_others_ask_nothing(self):
        with mock.patch(
            'nova_ext_sched.queries.group_members._look_up',
            side_effect=AssertionError('the cells were asked'),
        ):
            group = self.create_group(9)
            self.assertEqual(['loose'], self.hosts(group, {}, 1))
            self.assertBootsOn('loose', flavor=self.small, hints=DIFFERENT)
        self.assertEqual([], self.member_of())
        # A hint in another form is refused, and placement is not asked.
        self.queries.clear()
        self.assertEqual([None], self.hosts(group, at_most('abc'), 1))
        self.assertEqual([], self.queries)
        self.assertIn(
            'scheduler hint max_server_per_failure_domain: expected one '
            "value, an integer, 1 or more, got 'abc'",
            self.log,
        )

    def forced_and_requested_hosts(self):
        group = self.create_group()
        self.boot_in(group, DIFFERENT)
        for choice, state in (
            ({'az': 'nova:a2'}, 'ERROR'),
            ({'host': 'a2'}, 'ERROR'),
            ({'host': 'loose'}, 'ERROR'),
            ({'az': 'nova:b1'}, 'ACTIVE'),
            # nova asks no host filter about a forced host.
            ({'az': 'nova:loose'}, 'ACTIVE'),
        ):
            self.boot_in(group, DIFFERENT, expected_state=state, **choice)
        # The last one counts nowhere.
        self.assertEqual([None], self.hosts(group, DIFFERENT, 1))
        self.assertIn('are on hosts without a failure domain', self.log)


class PairTestCase(FailureDomainsTestCase):
    """Servers on a1 and b1, one a rack.

    The server of a1 may go to a2, because it does not count itself, and
    nowhere else, whatever the scheduler prefers.
    """

    weights = {'loose': 500, 'b2': 400, 'a1': 300, 'a2': 200, 'b1': 350}
    started = ('a1', 'b1', 'b2', 'loose')

    def setUp(self):
        super().setUp()
        self.group = self.create_group()
        self.other = self.boot_in(self.group, DIFFERENT)
        self.server = self.boot_in(self.group, DIFFERENT)
        self.assertEqual('b2', self.host_of(self.other))
        self.assertEqual('a1', self.host_of(self.server))
