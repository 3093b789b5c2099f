# SPDX-License-Identifier: Apache-2.0

"""Base of the functional tests of the audit."""

import contextlib
import json
from unittest import mock

from nova import context as nova_context
from nova import objects

from nova_ext_sched.cmd import audit as audit_command
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
        text, _, status = explain.ask(audit_command.Audit, 'audit', *argv)
        return status, json.loads(text)['findings'] if text else []

    def found(self, *argv):
        """Return server, host and policy of each finding, sorted."""
        status, rows = self.audit(*argv)
        self.assertEqual(3 if rows else 0, status)
        return sorted(
            (row['server'], row['host'], row['policy']) for row in rows
        )

    @contextlib.contextmanager
    def deleting(self, server, target, name, archives=False):
        """Let nova delete a server just before a function is called first.

        :param target: whose ``name`` is the function; it goes on
        :param archives: whether it is archived then, in the API database
        """
        function, left = getattr(target, name), [server['id']]

        def delete_and_go_on(*args, **kwargs):
            if left:
                self._delete_server(server)
                if archives:
                    # As nova-manage does.
                    ctxt = nova_context.get_admin_context()
                    objects.InstanceMappingList.destroy_bulk(ctxt, left)
                    objects.RequestSpec.destroy_bulk(ctxt, left)
                left.clear()
            return function(*args, **kwargs)

        with mock.patch.object(target, name, delete_and_go_on):
            yield
        # What it raises is taken for a fault of the server.
        self.assertEqual([], left)
