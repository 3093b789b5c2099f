# SPDX-License-Identifier: Apache-2.0

"""Base of the functional tests of the audit."""

import json

from nova_ext_sched.cmd.audit import command
from tests.functional import base
from tests.functional import explain


class AuditTestCase(base.CloudTestCase):
    host_filters = (
        'IsolatedAggregatesFilter',
        'AggregateInstanceTypeFilter',
        'ServerGroupAntiAffinityFilter',
        'FailureDomainFilter',
    )
    options = {
        'enable_isolated_aggregate_filtering': True,
        'placement_req_required_member_prefix': ['reservation:'],
        'placement_req_default_forbidden_member_prefix': ['reservation:'],
    }
    weights = {'host1': 300, 'host2': 200, 'host3': 100}

    def audit(self, *argv):
        """Run the command; return its exit status and its findings."""
        text, _, status = explain.call(
            command.Audit, 'audit', *argv, '-f', 'json'
        )
        return status, json.loads(text)['findings'] if text else []

    def found(self, *argv):
        """Return server, host and policy of each finding, sorted."""
        status, rows = self.audit(*argv)
        self.assertEqual(3 if rows else 0, status)
        return sorted(
            (row['server'], row['host'], row['policy']) for row in rows
        )
