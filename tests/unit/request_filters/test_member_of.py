# SPDX-License-Identifier: Apache-2.0

import dataclasses
import logging

import ddt
from nova import objects

from nova_ext_sched import exception
from nova_ext_sched import request_state
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import verdict
from nova_ext_sched.request_filters import member_of
from tests.unit.request_filters import base as test_base

POLICY = isolation.DECLARATION
FILTER = POLICY.host_filter
REBUILD = {'_nova_check_type': ['rebuild']}
HOSTS = {
    'a': ['a1'],
    'b': ['b1', 'b2', 'b3', 'b4', 'b5'],
    'c': ['c1', 'c2', 'c3'],
    **{uuid: [f'{uuid}1'] for uuid in 'dexyz'},
}


def get_forbidden(spec):
    _, forbidden = test_base.destination_of(spec) or (None, None)
    return set(forbidden or ())


def forbidding(*uuids):
    """Return a spec that forbids aggregates already."""
    destination = objects.Destination(forbidden_aggregates={*uuids})
    return test_base.request_spec(requested_destination=destination)


class MemberOfTestCase(test_base.RequestFilterTestCase):
    """The selects are replaced: host h is in c and z, node n in b and z."""

    def setUp(self):
        super().setUp()
        self.hosts, self.asked = dict(HOSTS), 0
        for path, replacement in (
            ('aggregates.get_uuids_by_hosts',
             lambda ctxt, hosts: {'c', 'z'} if 'h' in hosts else set()),
            ('placement.get_aggregates_of_node',
             lambda ctxt, node: {'b', 'z'} if node == 'n' else set()),
            ('aggregates.get_hosts', self.get_hosts),
        ):  # fmt: skip
            self.replace(f'queries.{path}', replacement)

    def get_hosts(self, ctxt):
        self.asked += 1
        return self.hosts

    def left_out(self, spec):
        """Return what is left to the host filter, None where nothing is."""
        return request_state.of(spec).left_out.get(POLICY.name)


@ddt.ddt
class ForbidTestCase(MemberOfTestCase):
    """The table of Query.write."""

    def within(self, limit, judged, fields=None):
        self.set(max_forbidden_aggregates=limit)
        self.enable(FILTER if judged else 'ComputeFilter')
        self.spec = test_base.request_spec(**(fields or {}))
        return self.forbid(self.spec, 'abcd', 'abcd')

    def forbid(self, spec, forbidden, candidates, traits=(), covered=()):
        before = get_forbidden(spec)
        resolution = verdict.Resolution(
            forbidden=set(forbidden), traits=traits, covered=covered
        )
        items = [
            (one, f'n-{one}', 'trait:X', 'required') for one in candidates
        ]
        member_of.Query(spec, POLICY).write(self.ctxt, resolution, items)
        return get_forbidden(spec) - before

    @ddt.data(
        # all fit, whatever else
        (4, True, {}, 'abcd'),
        (4, False, {}, 'abcd'),
        (4, True, {'force_hosts': ['h']}, 'abcd'),
        # the host filter judges the rest
        (3, True, {}, 'abc'),
        (2, True, {}, 'bc'),
        (1, True, {}, 'b'),
        # nobody judges the rest
        (2, False, {}, 'abcd'),
        # a forced host is not judged
        (2, True, {'force_hosts': ['h']}, 'c'),
        (2, True, {'force_hosts': ['other']}, ''),
        (2, True, {'force_nodes': ['n']}, 'b'),
        (2, True, {'force_nodes': ['other']}, ''),
        (2, False, {'force_nodes': ['n']}, 'b'),
        (2, True, {'force_hosts': ['h'], 'force_nodes': ['n']}, 'c'),
        (2, False, {'force_hosts': ['h']}, 'c'),
    )
    @ddt.unpack
    def test_table(self, limit, judged, fields, expected):
        self.assertEqual(set(expected), self.within(limit, judged, fields))
        # What is left to the host filter, with its hosts.
        rest = set('abcd') - set(expected)
        left = {host: f'n-{uuid}' for uuid in rest for host in HOSTS[uuid]}
        if not judged or fields:
            rest, left = set(), {}
        self.assertEqual(int(bool(rest)), self.asked)
        self.assertLeftOut(left)

    def assertLeftOut(self, expected):
        found = self.left_out(self.spec)
        self.assertEqual(expected, found.forbidden if found else {})

    def test_what_a_trait_stands_for_is_left_to_the_host_filter(self):
        self.enable(FILTER)
        self.spec = forbidding('d')
        for covered in ('bd', ''):
            self.forbid(self.spec, 'a', 'abcd', ['CUSTOM_B'], covered)
            # Another filter has put d into the query.
            expected = dict.fromkeys(HOSTS['b'], 'n-b') if covered else {}
            self.assertLeftOut(expected)

    def test_what_others_forbid_takes_room_and_is_not_added_again(self):
        for limit, expected in ((5, 'bcd'), (4, 'bc'), (1, '')):
            destination = forbidding(*'ax').requested_destination
            fields = {'requested_destination': destination}
            found = self.within(limit, True, fields)
            self.assertEqual({*expected}, found)

    def test_declared_traits_take_room(self):
        self.set(forbid_by_trait=['CUSTOM_*'], max_forbidden_aggregates=3)
        spec = test_base.request_spec()
        spec.root_forbidden.update({'CUSTOM_A', 'COMPUTE_STATUS_DISABLED'})
        self.assertEqual(2, member_of.Query(spec, POLICY).room)
        spec.root_forbidden.update({'CUSTOM_B', 'CUSTOM_C', 'CUSTOM_D'})
        self.assertEqual(0, member_of.Query(spec, POLICY).room)

    def test_traits_go_in_and_take_room(self):
        self.set(forbid_by_trait=['T'], max_forbidden_aggregates=2)
        self.enable(FILTER)
        spec = test_base.request_spec()
        self.assertEqual({'b'}, self.forbid(spec, 'abc', 'abc', {'T'}))
        self.assertEqual({'T'}, spec.root_forbidden)

    @ddt.data(
        ({'force_hosts': []}, True),
        ({'force_hosts': ['h']}, False),
        ({'force_nodes': ['n']}, False),
        ({'force_hosts': ['h'], 'scheduler_hints': REBUILD}, True),
        ({'force_hosts': ['h'], 'scheduler_hints': {'group': ['g']}}, False),
    )
    @ddt.unpack
    def test_host_filter_judges(self, fields, expected):
        other = dataclasses.replace(POLICY, host_filter='OtherFilter')
        self.enable(FILTER)
        for spec in (
            test_base.request_spec(**fields),
            # Fields that nova did not set.
            objects.RequestSpec(**fields),
        ):
            self.assertIs(expected, member_of.Query(spec, POLICY).is_judged)
            self.assertFalse(member_of.Query(spec, other).is_judged)

    def test_warning_names_what_is_left_once(self):
        for _ in range(2):
            self.within(2, True)
        logged = self.output.output
        self.assertEqual(1, logged.count('the hosts of the other 2: '))
        self.assertIn('n-a, n-d.', self.output.output)

    def test_warning_is_for_changes_of_aggregates_not_for_requests(self):
        self.enable(FILTER)
        self.set(max_forbidden_aggregates=1)

        def warnings(forbidden, candidates):
            self.forbid(test_base.request_spec(), forbidden, candidates)
            return self.output.output.count('the hosts of the other')

        self.assertEqual(1, warnings('abcd', 'abcd'))
        self.assertEqual(1, warnings('abc', 'abcd'))
        self.assertEqual(1, warnings('ad', 'abcd'))
        self.assertEqual(2, warnings('ad', 'abcde'))
        # Whatever their number, what is remembered is small.
        self.assertEqual(
            {int}, {type(key[1]) for key in member_of.LOG_ONCE._seen}
        )

    def test_warning_without_judge(self):
        for _ in range(2):
            self.within(2, False)
        logged = self.output.output
        self.assertEqual(1, logged.count('Add IsolatedAggregatesFilter to'))


@ddt.ddt
class RequireTestCase(MemberOfTestCase):
    """Required sets, and what they leave to stage 2."""

    def setUp(self):
        super().setUp()
        self.hosts |= {uuid: [f'{uuid}1'] for uuid in 'fgh'}
        self.spec = test_base.request_spec()

    def write(self, limit, judged, required, forbidden='', policy=POLICY):
        """Return what the query then requires and forbids."""
        self.set(max_forbidden_aggregates=limit)
        self.enable(FILTER if judged else 'ComputeFilter')
        member_of.Query(self.spec, policy).write(
            self.ctxt,
            verdict.Resolution([*map(set, required)], set(forbidden)),
            [(uuid, f'n-{uuid}', 'r:x', '1') for uuid in 'abcdefgh'],
        )
        destination = self.spec.requested_destination
        aggregates = destination and destination.aggregates or []
        return (
            [one.replace(',', '') for one in aggregates],
            ''.join(sorted(get_forbidden(self.spec))),
        )

    def left_sets(self):
        """Return the names of the sets that stage 2 judges."""
        found = self.left_out(self.spec)
        return [names for _, names in found.required] if found else []

    @ddt.data(
        # all fit
        (4, True, {}, ['abc', 'd'], ['d', 'abc'], 0),
        (4, False, {}, ['abc', 'd'], ['d', 'abc'], 0),
        # two keys of the same aggregates
        (3, True, {}, ['abc', 'abc'], ['abc'], 0),
        # the host filter judges those of the sets that do not fit
        (3, True, {}, ['abc'], ['abc'], 0),
        (2, True, {}, ['abc'], ['bc'], 1),
        (1, True, {}, ['abc'], ['b'], 1),
        (1, True, {}, ['abcd', 'd'], ['d'], 1),
        (1, True, {}, ['abcd', 'abc'], ['b'], 2),
        # nobody judges them
        (3, False, {}, ['abc', 'd'], ['d', 'abc'], 0),
        # a forced host is not judged
        (2, True, {'force_hosts': ['h']}, ['abcd'], ['c'], 0),
        (2, False, {'force_hosts': ['h']}, ['abcd'], ['c'], 0),
        (2, True, {'force_hosts': ['other']}, ['abcd'], ['a'], 0),
        (2, True, {'force_nodes': ['n']}, ['abcd'], ['b'], 0),
        (2, True, {'force_nodes': ['other']}, ['abcd'], ['a'], 0),
        (4, True, {'force_hosts': ['h']}, ['abcd'], ['abcd'], 0),
    )
    @ddt.unpack
    def test_table(self, limit, judged, fields, required, expected, left):
        self.spec = test_base.request_spec(**fields)
        found, _ = self.write(limit, judged, required)
        self.assertEqual(expected, found)
        self.assertEqual(left, len(self.left_sets()))

    def test_what_stage_2_judges(self):
        """The hosts of the whole set, as the database has them."""
        for _ in range(2):
            self.write(1, True, ['ace'])
        [(hosts, names)] = self.left_out(self.spec).required
        self.assertEqual({'a1', 'c1', 'c2', 'c3', 'e1'}, hosts)
        self.assertEqual('3 aggregates: n-a, n-c, n-e', names)

    @ddt.data(
        # b has most hosts.
        ({}, [], '', 'b'),
        # nova wants a zone, which c alone is in; it takes room too.
        ({'z': ['c1', 'other']}, ['z'], '', 'c'),
        # Its hosts are forbidden, by this policy or by another.
        ({'f': HOSTS['b']}, [], 'f', 'c'),
        # Another set has hosts of a alone.
        ({'f': ['a1'], 'g': [], 'h': [], 'e': []}, [], '', 'a'),
        # Those of no host are the last.
        ({'b': ['c1'], 'c': [], 'a': []}, [], '', 'b'),
    )
    @ddt.unpack
    def test_most_hosts_that_can_be_used(
        self, hosts, present, forbidden, expected
    ):
        self.hosts.update(hosts)
        sets = ['abc']
        if 'g' in hosts:
            sets.append('efgh')
        self.spec.requested_destination = objects.Destination(
            aggregates=present, forbidden_aggregates=set(forbidden)
        )
        room = 1 + len(present) + len(forbidden)
        found, _ = self.write(room, True, sets)
        self.assertEqual([*present, expected], found)

    def test_required_and_forbidden_share_the_room(self):
        self.assertEqual((['a'], 'bc'), self.write(3, True, ['a'], 'bcde'))
        # What is there takes room, and is not added again.
        self.assertEqual((['a'], 'bc'), self.write(3, True, ['a'], 'bc'))

    def test_what_nova_requires_takes_room(self):
        self.spec.requested_destination = objects.Destination(
            aggregates=['x,y', 'z']
        )
        self.assertEqual(1, self.room(4))
        self.assertEqual(0, self.room(2))

    def room(self, limit):
        self.set(max_forbidden_aggregates=limit)
        return member_of.Query(self.spec, POLICY).room

    def test_a_set_goes_before_what_was_forbidden(self):
        """Of those, the aggregates with the fewest hosts make room."""
        self.assertEqual(([], 'abc'), self.write(3, True, [], 'abcd'))
        self.assertEqual((['e'], 'bc'), self.write(3, True, ['e']))
        self.assertEqual((['e', 'fg'], ''), self.write(3, True, ['fg']))
        # There is nothing left to take away.
        self.assertEqual((['e', 'fg'], ''), self.write(3, True, ['h']))
        self.assertEqual(['1 aggregate: n-h'], self.left_sets())

    def test_a_part_takes_all_the_room(self):
        self.write(3, True, [], 'abc')
        self.assertEqual((['def'], ''), self.write(3, True, ['defg']))

    def test_what_makes_room_is_left_to_its_own_filter(self):
        self.write(3, True, [], 'abc')
        other = dataclasses.replace(POLICY, name='other')
        found = self.write(3, True, ['e'], policy=other)
        self.assertEqual((['e'], 'bc'), found)
        self.assertEqual(
            {POLICY.name: request_state.LeftOut({'a1': 'n-a'})},
            request_state.of(self.spec).left_out,
        )

    def test_what_makes_room_can_be_forbidden_by_two(self):
        self.write(2, True, [], 'ab')
        other = dataclasses.replace(POLICY, name='other')
        found = self.write(2, True, ['e'], 'a', other)
        self.assertEqual((['e'], 'b'), found)
        left = request_state.LeftOut({'a1': 'n-a'})
        self.assertEqual(
            {POLICY.name: left, 'other': left},
            request_state.of(self.spec).left_out,
        )

    def test_failure_domains_forget_the_group_alone(self):
        self.write(3, True, [], 'abc')
        request_state.forget_group(self.spec)
        self.assertEqual((['e'], 'bc'), self.write(3, True, ['e']))

    def test_what_nobody_judges_stays(self):
        """Of another filter, of nova's, and of what two policies forbid."""
        other = dataclasses.replace(POLICY, host_filter='OtherFilter')
        self.write(4, True, [], 'ab', policy=other)
        self.assertEqual(([], 'abc'), self.write(3, True, [], 'ac'))
        self.assertEqual((['d'], 'ab'), self.write(3, True, ['d']))
        self.assertEqual((['d'], 'ab'), self.write(3, True, ['e']))

        self.spec = forbidding('a')
        self.write(2, True, [], 'ab')
        self.assertEqual((['d'], 'a'), self.write(2, True, ['d']))

        self.spec = test_base.request_spec()
        self.write(2, True, [], 'ab')
        self.write(2, True, [], 'a', policy=other)
        self.assertEqual((['d'], 'a'), self.write(2, True, ['d']))
        self.assertEqual((['d'], 'a'), self.write(2, True, ['e']))

    def test_warnings(self):
        for _ in range(2):
            self.write(3, True, ['abcd'])
        left = (
            'A request must land in one of 4 aggregates: n-a, n-b, n-c, n-d. '
            'Its placement query names 3 of them, those with the most hosts, '
            'because max_forbidden_aggregates has no room for all. Servers '
            'get no host if the hosts of these are full'
        )
        self.assertEqual(1, self.output.output.count(left))
        self.assertNotIn('Add IsolatedAggregatesFilter', self.output.output)
        self.write(3, True, ['efg'])
        self.assertIn(
            'names none of them, because max_forbidden_aggregates has no room '
            'for all. IsolatedAggregatesFilter checks the hosts that placemen',
            self.output.output,
        )
        self.spec = test_base.request_spec()
        for _ in range(2):
            self.write(3, False, ['abcd'])
        self.assertEqual(1, self.output.output.count(left))
        logged = self.output.output
        self.assertEqual(1, logged.count('Add IsolatedAggregatesFilter to'))
        self.assertIn('names 4 required aggregates,', self.output.output)

    def test_a_request_in_a_forced_host_or_with_room_warns_of_nothing(self):
        self.write(3, True, ['abc'])
        self.spec = test_base.request_spec(force_hosts=['h'])
        self.write(3, True, ['abcd'])
        self.assertEqual('', self.output.output)


class WriteTestCase(test_base.RequestFilterTestCase):
    """What goes into the request spec, and into the log."""

    level = logging.DEBUG
    items = [('a', 'agg-a', 'r:a', '1'), ('b', 'agg-b', 'r:b', '1')]

    def write(self, spec, **resolved):
        """Write it twice, as for a request that is filtered again."""
        for _ in range(2):
            query = member_of.Query(spec, POLICY)
            query.write(self.ctxt, verdict.Resolution(**resolved), self.items)
        return spec.requested_destination

    def test_forbid(self):
        params = objects.RequestLevelParams()
        there = objects.Destination(host='h')
        for spec in (
            test_base.request_spec(),
            objects.RequestSpec(request_level_params=params),
            test_base.request_spec(requested_destination=there),
        ):
            for uuids in (['a', 'b'], ['b', 'c']):
                destination = self.write(spec, forbidden=uuids)
            self.assertEqual(
                {'a', 'b', 'c'}, set(destination.forbidden_aggregates)
            )
        self.assertEqual('h', destination.host)
        self.assertIn(
            'isolate_aggregates: the request must stay out of 2 aggregates: '
            'agg-a, agg-b. The placement query forbids 2 of them\n',
            self.output.output,
        )

    def test_require_beside_what_is_there(self):
        spec = test_base.request_spec(
            requested_destination=objects.Destination(
                aggregates=['z', 'a'], forbidden_aggregates={'f'}
            )
        )
        destination = self.write(spec, required=[{'a'}, {'b'}, {'c', 'a'}])
        self.assertEqual(['z', 'a', 'b', 'a,c'], destination.aggregates)
        self.assertEqual({'f'}, destination.forbidden_aggregates)
        self.assertIn(
            'isolate_aggregates: the request must land in 1 aggregate: '
            'agg-b\n',
            self.output.output,
        )

    def test_nothing_to_ask_for_changes_nothing(self):
        self.assertIsNone(self.write(test_base.request_spec()))

    def test_no_host_is_left(self):
        words = {'unmet': 'no aggregate', 'detail': 'q has it'}
        spec = test_base.request_spec()
        error = self.assertRaises(
            exception.RequestRefused, self.write, spec, **words
        )
        self.assertEqual([*words.values()], [error.reason, error.detail])
