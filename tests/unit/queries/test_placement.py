# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import ddt
from nova import exception as nova_exception

from nova_ext_sched.queries import placement
from tests.unit.request_filters import base as test_base

NAMED = '/resource_providers?name=a%26b+c'
AGGREGATES = '/resource_providers/u/aggregates'
KNOWN = {NAMED: {'resource_providers': [{'uuid': 'u'}]}}


@ddt.ddt
class NodeTestCase(test_base.RequestFilterTestCase):
    """tests/functional/test_isolation.py has a real placement."""

    def read(self, answers):
        """Return the aggregates of the node ``a&b c``.

        :param answers: of placement, by URL; None for an error of its own
        """

        def get(url, version, global_request_id):
            self.assertEqual(self.ctxt.global_id, global_request_id)
            answer = answers[url]
            status = 500 if answer is None else 200
            return mock.Mock(
                status_code=status, text='away', json=lambda: answer
            )

        client = mock.Mock(get=get)
        path = 'queries.placement.report.report_client_singleton'
        self.replace(path, lambda: client)
        return placement.get_aggregates_of_node(self.ctxt, 'a&b c')

    def test_aggregates(self):
        found = self.read(KNOWN | {AGGREGATES: {'aggregates': ['x', 'y']}})
        self.assertEqual({'x', 'y'}, found)
        self.assertEqual(set(), self.read({NAMED: {'resource_providers': []}}))

    @ddt.data({NAMED: None}, KNOWN | {AGGREGATES: None})
    def test_placement_is_away(self, answers):
        """The request then ends: no aggregate would be forbidden."""
        kind = nova_exception.NovaException
        error = self.assertRaises(kind, self.read, answers)
        self.assertEqual('status 500: away', str(error))
