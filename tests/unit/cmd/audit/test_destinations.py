# SPDX-License-Identifier: Apache-2.0

"""What is asked, and how often; tests/functional compares with nova."""

import types
from unittest import mock

from nova import exception as nova_exception
import testtools

from nova_ext_sched.cmd.audit import destinations


def make_spec(query='a', cell=None, cross=False):
    return types.SimpleNamespace(
        query=query,
        requested_destination=types.SimpleNamespace(
            cell=cell and types.SimpleNamespace(uuid=cell),
            allow_cross_cell_move=cross,
        ),
    )


class DestinationsTestCase(testtools.TestCase):
    """Placement has candidates h1 to h3 and one that is no host."""

    def setUp(self):
        super().setUp()
        self.request = {'allocations': {'h1': {}, 'h2': {}, 'h3': {}}}
        self.scheduler = mock.Mock(
            aggs_by_id={1: 'aggregate'},
            hosts={
                uuid: types.SimpleNamespace(name=f'name of {uuid}')
                for uuid in ('h1', 'h2', 'h3', 'h4')
            },
        )
        self.scheduler.get_host_states_by_uuids.side_effect = lambda *_: [
            types.SimpleNamespace(uuid=uuid) for uuid in self.scheduler.hosts
        ]
        self.scheduler.get_filtered_hosts.side_effect = self.filter
        self.scheduler.get_weighed_hosts.side_effect = lambda states, _: [
            types.SimpleNamespace(obj=state) for state in reversed(states)
        ]
        self.refuse = set()
        self.empty = set()
        self.destinations = destinations.Destinations(self.scheduler)

    def filter(self, states, _):
        for state in states:
            if state.uuid in self.empty:
                state.allocation_candidates.clear()
            for candidate in state.allocation_candidates:
                candidate['seen'] = state.uuid
        return [state for state in states if state.uuid not in self.refuse]

    def find(self, spec, error=None):
        form = mock.Mock()
        form.to_querystring.return_value = spec.query
        with (
            mock.patch.object(destinations.explain_server, 'Server') as server,
            mock.patch.object(
                destinations.request_filter,
                'process_reqspec',
                side_effect=error,
            ),
            mock.patch.object(
                destinations.query, 'forms', return_value=[form]
            ),
            mock.patch.object(
                destinations.query, 'Candidates'
            ) as self.candidates,
            mock.patch.object(destinations.aggregates, 'use') as use,
        ):
            server.return_value.spec_obj = spec
            self.candidates.return_value.requests = [self.request]
            self.candidates.return_value.summaries = {
                'h1': {},
                'h2': {},
                'h3': {},
                'shared': {},
            }
            found = self.destinations.find('server')
        self.assertEqual(['aggregate'], list(use.call_args.args[1]))
        server.return_value.migrate.assert_called_once_with()
        return [name.removeprefix('name of ') for name in found]

    def test_the_best_first(self):
        self.refuse = {'h2'}
        self.assertEqual(['h3', 'h1'], self.find(make_spec()))
        # What a filter does to one candidate leaves the others alone.
        self.assertNotIn('seen', self.request)

    def test_candidates_that_a_filter_takes_away(self):
        self.empty = {'h3'}
        self.assertEqual(['h2', 'h1'], self.find(make_spec()))
        self.empty = set()
        self.assertEqual(['h3', 'h2', 'h1'], self.find(make_spec()))

    def test_no_host(self):
        self.refuse = {'h1', 'h2', 'h3'}
        self.assertEqual([], self.find(make_spec()))
        self.scheduler.get_weighed_hosts.assert_not_called()

    def test_request_that_a_request_filter_ends(self):
        for error in (
            nova_exception.RequestFilterFailed(reason='no'),
            nova_exception.NoValidHost(reason='no'),
        ):
            self.assertEqual([], self.find(make_spec(), error))

    def test_equal_queries_are_asked_once(self):
        for query, calls in (('a', 1), ('a', 0), ('b', 1), ('a', 0)):
            self.find(make_spec(query))
            self.assertEqual(calls, self.candidates.call_count, query)

    def test_answers_that_are_kept(self):
        most = destinations._MOST_ANSWERS
        for number in range(most + 1):
            self.find(make_spec(number))
        self.assertEqual(1, len(self.destinations._answers))

    def test_hosts_are_read_once_a_cell(self):
        for args, calls in (
            ({}, 1),
            ({}, 1),
            ({'cell': 'c1'}, 2),
            ({'cell': 'c1'}, 2),
        ):
            self.find(make_spec(**args))
            self.assertEqual(
                calls, self.scheduler.get_host_states_by_uuids.call_count
            )

    def test_move_that_may_leave_its_cell(self):
        """nova asks every cell."""
        for cross in (False, True, True):
            self.find(make_spec(cell='c1', cross=cross))
        self.assertEqual(2, self.scheduler.get_host_states_by_uuids.call_count)
