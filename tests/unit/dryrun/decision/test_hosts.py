# SPDX-License-Identifier: Apache-2.0

"""What becomes of placement's candidates, with filters of the test's own.

tests/functional has nova's HostManager, its filters and its cells.
"""

import fixtures
from nova import objects
from nova.scheduler import filters
from nova.scheduler import weights
from nova.tests import fixtures as nova_fixtures
import testtools

from nova_ext_sched import request_state
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.decision import asking
from nova_ext_sched.dryrun.decision import hosts
from tests.unit.dryrun.cloud import clouds
from tests.unit.dryrun.cloud import test_snapshot


class Refuses(filters.BaseHostFilter):
    """Refuses some hosts, and remembers whom it was asked about."""

    def __init__(self, refused='', raises=None):
        self.refused, self.raises, self.asked = refused, raises, []

    def filter_all(self, states, spec_obj):
        uuids = [one.uuid for one in states]
        self.asked.append(''.join(sorted(uuids)))
        if self.raises in uuids:
            raise LookupError('broken')
        return [one for one in states if one.uuid not in self.refused]


class Candidates(filters.CandidateFilterMixin, Refuses):
    pass


class Notes(Refuses):
    """Notes something of the request."""

    def filter_all(self, states, spec_obj):
        noted = request_state.of(spec_obj).group
        self.asked.append((noted.counted, *noted.refused))
        noted.counted += 1
        noted.refused[len(self.asked), 'n'] = None
        return states


class Takes(Refuses):
    """Takes the candidates of a host away."""

    def filter_all(self, states, spec_obj):
        for one in states:
            if one.uuid in self.refused:
                one.allocation_candidates = []
        return states


class Weigher(weights.BaseHostWeigher):
    def weight_multiplier(self, host_state):
        return 2.0

    def _weigh_object(self, host_state, weight_properties):
        return float(host_state.uuid)


class HostsTestCase(testtools.TestCase):
    """Four hosts of nine CPUs; a server takes four."""

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud('')
        for uuid in '1234':
            self.cloud.add_node(uuid, f'h{uuid}', VCPU=9)
        self.cloud.weighers = [Weigher()]
        self.spec = clouds.make_spec(4)
        name = 'nova.scheduler.request_filter.ALL_REQUEST_FILTERS'
        self.useFixture(fixtures.MonkeyPatch(name, []))

    def offer(self, uuids):
        """Let placement offer some hosts alone."""
        for uuid in {*'1234'} - {*uuids}:
            self.cloud.server.hold(f'on {uuid}', **{uuid: {'VCPU': 9}})

    def judge(self, *host_filters, with_reasons=True):
        """Return whom constraints after placement's refuse, and the order."""
        self.cloud.enabled_filters = [*host_filters]
        self.matrix = found = asking.start(self.cloud, with_reasons)
        ctxt = process.context()
        asked = asking.Asking(self.cloud, ctxt, self.spec, found)
        hosts.schedule(asked)
        stages = 'cell', 'requested host', 'host filter'
        judged = zip(found.constraints, found.columns, strict=True)
        self.columns = [
            (one.constraint, its) for one, its in judged if one.stage in stages
        ]
        refused = {
            name: ''.join(sorted(one.refused))
            for name, one in self.columns
            if one.refused
        }
        return refused, ''.join(place.uuid for place in found.order)


class FiltersTestCase(HostsTestCase):
    def test_nothing_refuses(self):
        self.assertEqual(({}, '4321'), self.judge())
        # As nova multiplies: 2.0 times what is normalized to 0 to 1.
        first, *_, last = (one.weights for one in self.matrix.order)
        self.assertEqual((2.0, 0.0), (first['Weigher'], last['Weigher']))

    def test_each_filter_judges_what_is_out_too(self):
        second = Refuses('23')
        _, order = self.judge(Refuses('12'), second)
        self.assertEqual('4', order)
        (_, one), (_, other) = self.columns[-2:]
        refused = {*one.refused}, {*other.refused}
        self.assertEqual(({*'12'}, {*'23'}), refused)
        # What is left first, as in nova; then the others.
        self.assertEqual(['34', '12'], second.asked)
        self.assertEqual([{*'1234'}] * 2, [one.judged, other.judged])
        # Nobody asks about them for the answer alone.
        second = Refuses()
        _, order = self.judge(Refuses('1'), second, with_reasons=False)
        self.assertEqual((['234'], '432'), (second.asked, order))

    def test_what_filters_note_of_others_is_not_of_the_request(self):
        self.offer('12')
        first = Notes()
        self.judge(first, Notes())
        noted = request_state.of(self.spec).group
        self.assertEqual(2, noted.counted)
        self.assertEqual([(1, 'n')], [*noted.refused])
        # Of others it is what the request has by then.
        self.assertEqual([(0,), (1, (1, 'n'))], first.asked)

    def test_a_filter_of_candidates_is_not_asked_about_others(self):
        self.offer('12')
        host_filter = Candidates('1')
        self.judge(host_filter)
        self.assertEqual(['12'], host_filter.asked)

    def test_a_filter_that_raises_where_nova_does_not_ask(self):
        """Of a host that it cannot judge nothing is said."""
        self.offer('12')
        found = self.judge(Refuses('4', raises='3'))
        self.assertEqual(({'Refuses': '4'}, '21'), found)
        self.assertEqual({*'124'}, self.columns[-1][1].judged)

    def test_a_filter_that_takes_the_last_candidate_away(self):
        found = self.judge(Takes('4'))
        self.assertEqual(({'allocation candidates': '4'}, '321'), found)

    def test_what_the_request_names(self):
        first, second = test_snapshot.FIRST, test_snapshot.SECOND
        self.cloud.unmapped = {'h4'}
        self.cloud.enabled_cells = [first, second]
        unmapped, named = {'cell mapping': '4'}, 'requested_destination'
        host = {'host': 'h4', 'node': 'node4'}
        for destination, expected in (
            (None, unmapped),
            (host, {**unmapped, named: '123'}),
            # A move, of which nova-conductor knows the cell.
            ({'cell': first}, {}),
            ({'cell': first, **host}, {named: '123'}),
            ({'cell': second}, {'requested cells': '1234'}),
        ):
            self.spec.requested_destination = destination and (
                objects.Destination(**{'cell': None, **destination})
            )
            self.assertEqual(expected, self.judge()[0])

    def test_several_servers(self):
        """Each is claimed before the next: two fit on each host."""
        for number, expected in (
            (8, ''),
            (9, 'Only 8 of 9 instances find a host, so nova creates none'),
        ):
            self.spec.num_instances = number
            self.judge()
            self.assertEqual(expected, self.matrix.shortage)

    def test_from_how_many_one_is_drawn(self):
        for size, shuffles, given, expected in (
            (1, False, [3, 3, 1], 1),
            (1, True, [3, 3, 1], 2),
            (1, True, [3, 2, 1], 1),
            (2, False, [3, 2, 1], 2),
            (2, True, [3, 3, 3], 3),
            (2, True, [3, 2, 1], 2),
            (9, False, [3, 2, 1], 3),
            (9, True, [3], 1),
        ):
            options = {
                'host_subset_size': size,
                'shuffle_best_same_weighed_hosts': shuffles,
            }
            group = 'filter_scheduler'
            with nova_fixtures.ConfPatcher(group=group, **options):
                self.assertEqual(expected, hosts._count_drawn(given))
