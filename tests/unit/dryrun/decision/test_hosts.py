# SPDX-License-Identifier: Apache-2.0

"""What becomes of placement's candidates, with filters of the test's own.

tests/functional has nova's HostManager, its filters and its cells.
"""

import types
from unittest import mock

import ddt
from nova import objects
from nova.scheduler import filters
from nova.scheduler import host_manager
from nova.scheduler import weights
from nova.tests import fixtures as nova_fixtures
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched import request_state
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import asking
from nova_ext_sched.dryrun.decision import hosts
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import refusals
from tests.unit.dryrun.cloud import clouds
from tests.unit.request_filters import base


class Refuses(filters.BaseHostFilter):
    """Refuses some hosts, and remembers whom it was asked about."""

    def __init__(self, *names, raises=()):
        super().__init__()
        self.names = names
        self.raises = raises
        self.asked = []

    def filter_all(self, states, spec_obj):
        states = list(states)
        self.asked.append({one.host for one in states})
        if any(one.host in self.raises for one in states):
            raise LookupError('broken')
        return [one for one in states if one.host not in self.names]


class Candidates(filters.CandidateFilterMixin, Refuses):
    pass


class Weigher(weights.BaseHostWeigher):
    def weight_multiplier(self, host_state):
        return 2.0

    def _weigh_object(self, host_state, weight_properties):
        return float(host_state.host[1:])


class Manager(snapshot.Snapshot):
    """Hosts of the test's own, of nine CPUs."""

    def __init__(self, test):
        server = clouds.Placement()
        for name in test.names:
            server.add(name, VCPU=9)
        clouds.connect(self, server)
        self.hosts = {
            name: types.SimpleNamespace(
                host=name,
                name=name,
                cell_uuid=test.cells.get(name, uuids.cell),
            )
            for name in test.names
        }
        self.enabled_cells = [
            types.SimpleNamespace(uuid=uuid)
            for uuid in (uuids.cell, uuids.other)
        ]
        self.unmapped = test.unmapped
        self.enabled_filters = test.filters
        self.filter_handler = filters.HostFilterHandler()
        self.weighers = [Weigher()]
        self.weight_handler = weights.HostWeightHandler()
        self._make = test.state

    def get_host_states_by_uuids(self, ctxt, compute_uuids, spec_obj):
        return [self._make(uuid) for uuid in compute_uuids]


class HostsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.names = ['h1', 'h2', 'h3', 'h4']
        self.candidates = [*self.names]
        #: Of hosts that are in another cell.
        self.cells = {}
        #: In no cell mapping.
        self.unmapped = set()
        self.filters = []
        self.matrix = matrix.Matrix({name: name for name in self.names})
        self.request = base.request_spec(
            instance_uuid=uuids.server,
            num_instances=1,
            instance_group=None,
            ignore_hosts=None,
            flavor=base.flavor(extra_specs={}),
            numa_topology=None,
            pci_requests=objects.InstancePCIRequests(requests=[]),
        )

    def state(self, name):
        state = host_manager.HostState(name, name, uuids.cell)
        state.uuid = name
        state.allocation_candidates = (
            [self.allocation(name)] if name in self.candidates else []
        )
        return state

    def allocation(self, name):
        return clouds.make_request(**{name: {'VCPU': 4}})

    def judge(self):
        """Return whom each constraint refuses, and the order."""
        cloud = Manager(self)
        candidates = types.SimpleNamespace(
            requests=[self.allocation(name) for name in self.candidates],
            summaries={
                name: {'resources': {'VCPU': {'used': 0, 'capacity': 9}}}
                for name in self.candidates
            },
        )
        refusal = refusals.Refusal('are no candidates')
        outside = {*self.names}.difference(self.candidates)
        self.matrix.add('placement', '', '', dict.fromkeys(outside, refusal))
        asked = asking.Asking(
            cloud, mock.MagicMock(), self.request, self.matrix
        )
        judging = hosts.Hosts(asked, candidates)
        if order := judging.judge():
            judging.weigh(order)
            judging.place(order)
        # Those after placement's.
        self.columns = self.matrix.columns[1:]
        return {
            one.constraint: {*column.refused}
            for one, column in zip(
                self.matrix.constraints[1:], self.columns, strict=True
            )
            if column.refused
        }

    def order(self):
        return [place.uuid for place in self.matrix.order]


@ddt.ddt
class FiltersTestCase(HostsTestCase):
    def test_nothing_refuses(self):
        self.assertEqual({}, self.judge())
        self.assertEqual(['h4', 'h3', 'h2', 'h1'], self.order())
        # As nova multiplies: 2.0 times what is normalized to 0 to 1.
        self.assertEqual(
            [2.0, 0.0],
            [self.matrix.order[n].weights['Weigher'] for n in (0, -1)],
        )

    def test_each_filter_judges_what_is_out_too(self):
        first, second = Refuses('h1', 'h2'), Refuses('h2', 'h3')
        self.filters = [first, second]
        self.judge()
        self.assertEqual(['h4'], self.order())
        refused = [{*one.refused} for one in self.columns if one.refused]
        self.assertEqual([{'h1', 'h2'}, {'h2', 'h3'}], refused)
        # What is left first, as in nova; then the others.
        self.assertEqual([{'h3', 'h4'}, {'h1', 'h2'}], second.asked)
        judged = [one.judged for one in self.columns][-2:]
        self.assertEqual([{*self.names}] * 2, judged)

    def test_what_filters_note_of_others_is_not_of_the_request(self):
        class Notes(Refuses):
            def filter_all(self, states, spec_obj):
                noted = request_state.of(spec_obj).group
                self.asked.append((noted.counted, *noted.refused))
                noted.counted += 1
                noted.refused[len(self.asked), 'n'] = None
                return super().filter_all(states, spec_obj)

        self.candidates = ['h1', 'h2']
        self.filters = [Notes(), Notes()]
        self.judge()
        noted = request_state.of(self.request).group
        self.assertEqual(2, noted.counted)
        self.assertEqual([(1, 'n')], [*noted.refused])
        # Of others it is what the request has by then.
        first, _ = self.filters
        self.assertEqual((1, (1, 'n')), first.asked[2])

    def test_the_answer_alone(self):
        self.matrix.whole = False
        second = Refuses()
        self.filters = [Refuses('h1'), second]
        self.judge()
        self.assertEqual([{'h2', 'h3', 'h4'}], second.asked)
        self.assertEqual(['h4', 'h3', 'h2'], self.order())

    def test_a_filter_of_candidates_is_not_asked_about_others(self):
        self.candidates = ['h1', 'h2']
        host_filter = Candidates('h1')
        self.filters = [host_filter]
        self.judge()
        self.assertEqual([{'h1', 'h2'}], host_filter.asked)

    def test_a_filter_that_raises_where_nova_does_not_ask(self):
        """Of a host that it cannot judge nothing is said."""
        self.candidates = ['h1', 'h2']
        self.filters = [Refuses('h4', raises=['h3'])]
        self.judge()
        last = self.columns[-1]
        self.assertEqual({'h4'}, {*last.refused})
        self.assertEqual({'h1', 'h2', 'h4'}, last.judged)
        self.assertEqual(['h2', 'h1'], self.order())

    def test_a_filter_that_takes_the_last_candidate_away(self):
        class Takes(Refuses):
            def filter_all(self, states, spec_obj):
                states = list(states)
                for one in states:
                    if one.host == 'h4':
                        one.allocation_candidates = []
                return states

        self.filters = [Takes()]
        self.assertEqual({'allocation candidates': {'h4'}}, self.judge())
        self.assertEqual(['h3', 'h2', 'h1'], self.order())

    def test_the_requested_destination(self):
        self.request.requested_destination = objects.Destination(
            host='h1', node='h1'
        )
        self.assertEqual(
            {'requested_destination': {'h2', 'h3', 'h4'}}, self.judge()
        )

    def test_a_host_of_another_cell(self):
        self.cells = {'h4': uuids.other}
        self.candidates.remove('h4')
        self.request.requested_destination = objects.Destination(
            cell=objects.CellMapping(uuid=uuids.cell)
        )
        self.assertEqual({'requested cells': {'h4'}}, self.judge())

    @ddt.data(
        # The cell of the destination, whether it is one host, and whether a
        # host in no cell mapping is left out.
        (None, None, True),
        (None, 'h4', True),
        # A move, of which nova-conductor knows the cell.
        (uuids.cell, None, False),
        (uuids.cell, 'h4', False),
    )
    @ddt.unpack
    def test_a_host_in_no_cell_mapping(self, cell, host, is_out):
        self.unmapped = {'h4'}
        names = {'host': host, 'node': host} if host else {}
        if cell or host:
            self.request.requested_destination = objects.Destination(
                cell=objects.CellMapping(uuid=cell) if cell else None, **names
            )
        found = self.judge()
        self.assertEqual({'h4'} if is_out else None, found.get('cell mapping'))


@ddt.ddt
class ClaimsTestCase(HostsTestCase):
    """Several instances, each claimed before the next."""

    @ddt.data(
        # Two of 4 VCPUs fit into 9, on each of four hosts.
        (8, ''),
        (9, 'Only 8 of 9 instances find a host, so nova creates none'),
    )
    @ddt.unpack
    def test_shortage(self, number, expected):
        self.request.num_instances = number
        self.judge()
        self.assertEqual(expected, self.matrix.shortage)


@ddt.ddt
class DrawnTestCase(testtools.TestCase):
    @ddt.data(
        (1, False, [3, 3, 1], 1),
        (1, True, [3, 3, 1], 2),
        (1, True, [3, 2, 1], 1),
        (2, False, [3, 2, 1], 2),
        (2, True, [3, 3, 3], 3),
        (2, True, [3, 2, 1], 2),
        (9, False, [3, 2, 1], 3),
        (9, True, [3], 1),
    )
    @ddt.unpack
    def test_number(self, size, shuffles, weights, expected):
        with nova_fixtures.ConfPatcher(
            host_subset_size=size,
            shuffle_best_same_weighed_hosts=shuffles,
            group='filter_scheduler',
        ):
            self.assertEqual(expected, hosts._count_drawn(weights))
