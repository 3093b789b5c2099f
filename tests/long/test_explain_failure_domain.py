# SPDX-License-Identifier: Apache-2.0

"""explain of both stages of failure domains, with counts by domain."""

from tests.functional import base
from tests.functional import explain


class FailureDomainsTestCase(base.CloudTestCase):
    weights = {'host1': 300, 'host2': 200, 'host3': 100}
    host_filters = ('FailureDomainFilter',)
    options = {'request_filters': ['failure_domains']}

    def test_both_stages(self):
        self.aggregate('rack-a', ['host1', 'host2'], failure_domain='a')
        group = self.create_group()
        hints = {'group': group, 'different_failure_domain': 'true'}
        self.assertBootsOn('host1', hints=hints)

        answer = explain.run(
            *('--flavor', self.flavor(), '--server-group', group),
            *('--hint', 'different_failure_domain=true', '-f', 'json'),
        )
        self.assertEqual(3, answer.status)
        [request_filter] = [
            row
            for row in answer.rows
            if row['constraint'].startswith('failure_domains')
        ]
        self.assertEqual(
            'not in aggregates rack-a; servers of the group by failure '
            'domain: a: 1',
            request_filter['asks'],
        )
        self.assertEqual(2, request_filter['refused'])
        self.assertIn(
            '2 are in a full failure domain (rack-a)', answer.sentence
        )
        self.assertIn('1 is in no failure domain', answer.sentence)
