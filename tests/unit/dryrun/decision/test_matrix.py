# SPDX-License-Identifier: Apache-2.0

import dataclasses

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import refusals

HOSTS = {str(number): f'host{number}' for number in range(1, 6)}


def refusal(cause='', kind='are out', name='', **fields):
    return refusals.Refusal(kind, cause, name, **fields)


KINDS = {
    'D': refusal(refusals.DISABLED, 'are disabled'),
    # What the request does not want, and what is closed to plain ones.
    'N': refusal('host', 'are not named', rank=refusals.UNWANTED),
    'C': refusal('isolation', 'are isolated', rank=refusals.CLOSED),
    'E': refusal(refusals.ELSEWHERE, 'are not', rank=refusals.UNWANTED),
    # What stands in the way.
    'I': refusal('isolation', 'are isolated'),
    'F': refusal('VCPU', 'are full'),
    'S': refusal('MEMORY_MB', 'are too small'),
    'R': refusal('failure-domain', 'are in a full failure domain'),
}


def build(*columns):
    """Make constraints c0, c1, ...; each is hosts by cause, or a mapping."""
    found = matrix.Matrix(HOSTS)
    for number, column in enumerate(columns):
        if not isinstance(column, dict):
            column = dict.fromkeys(column, refusal())
        found.add('placement', f'c{number}', refused=column)
    return found


def read(text):
    """Make constraints of a text: hosts, and by what they are refused."""
    columns = (
        {u: KINDS[one[-1]] for one in part.split('+') for u in one[:-1]}
        for part in text.split()
    )
    return build(*columns)


def freed(found):
    return [(one.cause, one.hosts) for one in found.count_freed()]


def alone(found):
    found.conclude(found.make_answer())
    return [one.alone for one in found.constraints]


class MatrixTestCase(testtools.TestCase):
    def test_numbers_of_a_constraint(self):
        found = build('12', '123', '')
        self.assertEqual([0, 1, 0], alone(found))
        numbers = [(one.refused, one.left) for one in found.constraints]
        self.assertEqual([(2, 3), (3, 2), (0, 2)], numbers)
        self.assertEqual({'4', '5'}, found.remaining)

    def test_freed(self):
        for columns, expected in (
            # One alone frees hosts: only such are named, the most first.
            (('12345', '1'), [('c0', 4)]),
            (('12', '345'), [('c1', 3), ('c0', 2)]),
            # As many hosts: the order of the scheduler.
            (('12', '34', '5'), [('c0', 2), ('c1', 2), ('c2', 1)]),
            # None alone.
            (('12345', '12345'), []),
        ):
            self.assertEqual(expected, freed(build(*columns)))

    def test_one_cause_at_two_stages(self):
        """Else lifting isolation would never free a host."""
        isolated = dict.fromkeys('12345', refusal('isolation'))
        found = build(isolated, {}, isolated)
        self.assertEqual([('isolation', 5)], freed(found))
        self.assertEqual([(refusal('isolation'), 5)], found.count_reasons())
        self.assertEqual([5, 0, 5], alone(found))

    def test_a_constraint_of_two_causes(self):
        reserved = refusal('reservation', 'are reserved')
        both = refusal('isolation', more=(reserved,))
        found = build(dict.fromkeys('12345', both))
        self.assertEqual([], freed(found))

    def test_causes_are_listed_in_the_order_of_the_hosts(self):
        """Filters refuse hosts in no order."""
        first, other = refusal('isolation'), refusal('reservation', 'are full')
        for refused in ({'1': first, '2': other}, {'2': other, '1': first}):
            [constraint] = build(refused).constraints
            self.assertEqual(['isolation', 'reservation'], constraint.causes)

    @given(
        st.lists(st.sets(st.sampled_from(sorted(HOSTS))), max_size=5).filter(
            lambda columns: set().union(*columns) == set(HOSTS)
        )
    )
    def test_freed_is_what_is_left_without(self, columns):
        """Against the naive way: drop the constraints, and look again."""

        def left_without(dropped):
            kept = [c for n, c in enumerate(columns) if n not in dropped]
            return len(set(HOSTS).difference(*kept))

        expected = {
            f'c{n}': number
            for n in range(len(columns))
            if (number := left_without({n}))
        }
        found = build(*map(sorted, columns))
        self.assertEqual(expected, dict(freed(found)))
        numbers = [left_without({n}) for n in range(len(columns))]
        self.assertEqual(numbers, alone(found))

    def test_a_host_counts_once(self):
        for text, expected in (
            # For the cause of most, not the first: it would look like the
            # cure.
            ('12C 12345S', {'S': 5}),
            # One that is not wanted for that: nothing could open it.
            ('12345F 1234N', {'N': 4, 'F': 1}),
            # One that is disabled for that, for every request.
            ('1D 1N+23F', {'D': 1, 'F': 2}),
            ('1D 1C+23F', {'D': 1, 'F': 2}),
            # But not of another cell: it is no host of the request.
            ('1D 1E+23F', {'E': 1, 'F': 2}),
            ('12E 123D 45F', {'E': 2, 'D': 1, 'F': 2}),
            ('1D 123F', {'D': 1, 'F': 2}),
        ):
            found = dict(read(text).count_reasons())
            self.assertEqual({KINDS[k]: expected[k] for k in expected}, found)

    def test_a_host_that_a_plan_empties(self):
        """It says of that what it says of others, but that it is disabled."""
        found = read('1D 123F').copy(without='12')
        found.add('x', 'x', refused=dict.fromkeys('12', KINDS['N']))
        reasons = dict(found.count_reasons())
        self.assertEqual({KINDS[kind]: 1 for kind in 'DNF'}, reasons)
        # That keeps no server from it that must leave it.
        self.assertEqual('VCPU', found.ranked[0])

    def test_what_stands_in_the_way(self):
        """Not what most hosts say; explain, plans and watch tell the same."""
        for text, expected in (
            # By what lifting would free; disabled hosts before those of
            # others, and then what is closed to plain requests.
            ('1D 23C', 'disabled service, isolation'),
            ('1D 23C 4F', 'disabled service, VCPU, isolation'),
            ('1D 23C 45F', 'VCPU, disabled service, isolation'),
            # Full host 5 would take it if it were not in a full rack; all
            # others are closed to it whatever comes.
            ('12N 34C 123F 5R', 'failure-domain, VCPU, isolation, host'),
            # What no request asks for is the answer where nothing else is.
            ('1N 2C', 'isolation, host'),
            # Nor does what refuses hosts that the request does not want.
            ('12N 3C 12F', 'isolation, host, VCPU'),
            # A policy that a request asks something of is in its way.
            ('12N 3C 4I', 'isolation, host'),
        ):
            found = read(text)
            self.assertEqual(expected.split(', '), found.ranked)
            answer = found.make_answer()
            first = answer.cause, answer.reasons[0].cause
            self.assertEqual((found.ranked[0],) * 2, first)

    def test_finds_host(self):
        short = 'Only 1 of 2 instances finds a host'
        for order, shortage, refused, expected in (
            ('', '', '', False),
            ('1', '', '', True),
            ('1', short, '', False),
            ('1', '', 'nova-api refuses it', False),
        ):
            found = build()
            for uuid in order:
                found.prefer(uuid, 1.0)
            found.shortage, found.refusal = shortage, refused
            self.assertIs(expected, found.finds_host)
            cause = 'state' if refused else None
            self.assertEqual(cause, found.make_answer().cause)

    def test_the_end_of_a_request(self):
        found = build('1')
        found.stop('request filter', 'f', 'no\nway.', 'ask abc')
        self.assertEqual(set(), found.remaining)
        expected = 'request filter', 'f', "'no\\nway'", 'ask abc', 'f'
        self.assertEqual(conclusion.End(*expected), found.end)
        self.assertEqual(0, found.constraints[-1].left)
        [(reason, number)] = found.count_reasons()
        self.assertEqual(('c0', 1), (reason.cause, number))


class GroupTestCase(testtools.TestCase):
    def test_label(self):
        """It stands for what a member has written."""
        custom = refusal('CUSTOM_A', 'lack CUSTOM_A', label='custom')
        found = refusals.group([(custom, 2), (KINDS['F'], 1)])
        labels = [(one.cause, one.label) for one in found]
        self.assertEqual([('CUSTOM_A', 'custom'), ('VCPU', 'VCPU')], labels)

    def test_names_are_counted_within_a_kind(self):
        found = refusals.group(
            (refusals.Refusal(kind, kind, name, detail, rank=rank), number)
            for number, kind, name, detail, rank in (
                (9, 'are excluded', '', '', refusals.UNWANTED),
                (1, 'lack T', '', '', 0),
                (1, 'are down', '', '', 0),
                (1, 'are isolated', 'windows', '', 0),
                (4, 'are isolated', 'sql', 'x', 0),
                (1, 'are isolated', 'windows', 'x', 0),
            )
        )
        names = [('sql', 4), ('windows', 2)]
        expected = [
            (*['are isolated'] * 3, 6, names, [('x', 5)]),
            # As many as another kind: by their text, always.
            (*['are down'] * 3, 1, [], []),
            (*['lack T'] * 3, 1, [], []),
            # What the request does not want comes last.
            (*['are excluded'] * 3, 9, [], []),
        ]
        self.assertEqual(expected, [*map(dataclasses.astuple, found)])

    def test_full_of_two_resources(self):
        words = 'are full (DISK_GB, VCPU)', 'DISK_GB and VCPU'
        found = refusals.full(['DISK_GB', 'VCPU'])
        self.assertEqual(words, found[:2])
        self.assertTrue(found.is_full)
        # Each is a constraint of its own; people read what a host lacks.
        judged = matrix.Matrix({'1': 'h1', '2': 'h2'})
        for hosts, name in (('12', 'VCPU'), ('1', 'DISK_GB')):
            full = dict.fromkeys(hosts, refusals.full([name]))
            judged.add('placement', name, refused=full)
        self.assertEqual(
            {
                ('are full (DISK_GB, VCPU)', 'VCPU'): 1,
                ('are full (VCPU)', 'VCPU'): 1,
            },
            {one[:2]: number for one, number in judged.count_reasons()},
        )


class DecidersTestCase(testtools.TestCase):
    def test_a_weigher_without_which_hosts_are_equal(self):
        found = matrix.Matrix({'a': 'h1', 'b': 'h2'})
        for uuid, weight in (('a', 2.0), ('b', 1.0)):
            found.prefer(uuid, weight).weights.update(w=weight, v=0.0)
        deciders = found.make_answer().deciders
        self.assertEqual([conclusion.Decider('w', 'h2')], deciders)
        found.preferences['w'] = 'hosts with room'
        deciders = found.make_answer().deciders
        expected = conclusion.Decider('w', 'h2', 'hosts with room')
        self.assertEqual([expected], deciders)

    def test_what_a_host_loses(self):
        """By a weigher that gives it less, not by one that gives it more."""
        found = matrix.Matrix({'a': 'h1', 'b': 'h2'})
        for uuid, w, v in (('a', 2.0, 0.0), ('b', 1.0, 0.5)):
            found.prefer(uuid, w + v).weights.update(w=w, v=v)
        concluded = found.conclude(found.make_answer())
        found = [(one.rank, one.loses) for one in concluded.hosts]
        self.assertEqual([(1, {}), (2, {'w': 1.0})], found)
