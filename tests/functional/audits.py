# SPDX-License-Identifier: Apache-2.0

"""Base of the functional tests of the audit."""

import io
import json
import types

from nova_ext_sched.cmd.audit import command
from tests.functional import base


class Audit(command.Audit):
    """The command in a process whose nova is configured already."""

    def configure(self, parsed_args):
        pass


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

    def run_audit(self, *argv):
        """Run the command; return its exit status and what it writes."""
        stdout = io.StringIO()
        audit = Audit(types.SimpleNamespace(stdout=stdout), None)
        audit.cmd_name = 'audit'
        parsed = audit.get_parser('audit').parse_args(argv)
        status = audit.run(parsed)
        return status, stdout.getvalue()

    def audit(self, *argv):
        """Run the command; return its exit status and its findings."""
        status, text = self.run_audit(*argv, '-f', 'json')
        return status, json.loads(text)['findings'] if text else []

    def found(self, *argv):
        """Return server, host and policy of each finding, sorted."""
        status, rows = self.audit(*argv)
        self.assertEqual(3 if rows else 0, status)
        return sorted(
            (row['server'], row['host'], row['policy']) for row in rows
        )
