# SPDX-License-Identifier: Apache-2.0


import ddt
from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import refusals

HOSTS = {str(number): f'host{number}' for number in range(1, 6)}


def refusal(cause='', kind='are out', name='', **fields):
    return refusals.Refusal(kind, cause, name, **fields)


def build(*columns):
    """Make constraints c0, c1, ...; each is hosts by cause, or a mapping."""
    found = matrix.Matrix(HOSTS)
    for number, column in enumerate(columns):
        if not isinstance(column, dict):
            column = {uuid: refusal() for uuid in column}
        found.add('placement', f'c{number}', refused=column)
    return found


def freed(found):
    return [(one.cause, one.hosts) for one in found.count_freed()]


def alone(found):
    found.conclude(found.make_answer())
    return [one.alone for one in found.constraints]


@ddt.ddt
class MatrixTestCase(testtools.TestCase):
    def test_numbers_of_a_constraint(self):
        found = build('12', '123', '')
        self.assertEqual(
            [(2, 0, 3), (3, 1, 2), (0, 0, 2)],
            [
                (one.refused, alone, one.left)
                for one, alone in zip(
                    found.constraints, alone(found), strict=True
                )
            ],
        )
        self.assertEqual({'4', '5'}, found.remaining)

    @ddt.data(
        # One alone frees hosts: only such are named, the most first.
        (('12345', '1'), [('c0', 4)]),
        (('12', '345'), [('c1', 3), ('c0', 2)]),
        # As many hosts: the order of the scheduler.
        (('12', '34', '5'), [('c0', 2), ('c1', 2), ('c2', 1)]),
        # None alone.
        (('12345', '12345'), []),
    )
    @ddt.unpack
    def test_freed(self, columns, expected):
        self.assertEqual(expected, freed(build(*columns)))

    def test_one_cause_at_two_stages(self):
        """Else lifting isolation would never free a host."""
        isolated = dict.fromkeys('12345', refusal('isolation'))
        found = build(isolated, {}, isolated)
        self.assertEqual([('isolation', 5)], freed(found))
        self.assertEqual([(refusal('isolation'), 5)], found.count_reasons())
        self.assertEqual([5, 0, 5], alone(found))

    def test_a_constraint_of_two_causes(self):
        both = refusal(
            'isolation', more=(refusal('reservation', 'are reserved'),)
        )
        found = build(dict.fromkeys('12345', both))
        self.assertEqual([], freed(found))

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
        self.assertEqual(
            [left_without({n}) for n in range(len(columns))],
            alone(found),
        )

    @given(st.lists(st.sets(st.sampled_from(sorted(HOSTS))), max_size=5))
    def test_reasons_add_up(self, columns):
        found = build(*map(sorted, columns))
        total = sum(number for _, number in found.count_reasons())
        self.assertEqual(len(HOSTS) - len(found.remaining), total)

    def test_a_host_counts_for_the_cause_of_most(self):
        """Not for the first: it would look like the cure."""
        found = build(
            {u: refusal('isolation', 'are isolated') for u in '12'},
            {u: refusal('MEMORY_MB', 'are too small') for u in HOSTS},
        )
        self.assertEqual(
            [(refusal('MEMORY_MB', 'are too small'), 5)],
            found.count_reasons(),
        )

    def test_a_host_that_is_not_wanted_counts_for_that(self):
        """Whatever else refuses it: nothing could open it."""
        named = refusal('host', 'are not named', rank=refusals.UNWANTED)
        full = refusal('VCPU', 'are full')
        found = build(
            dict.fromkeys('12345', full), dict.fromkeys('1234', named)
        )
        self.assertEqual(['VCPU', 'host'], found.ranked)
        self.assertEqual({named: 4, full: 1}, dict(found.count_reasons()))

    def test_a_disabled_host_has_one_name(self):
        """Whatever else excludes it, and for every request."""
        disabled = refusal(refusals.DISABLED, 'are disabled')
        named = refusal('host', 'are not named', rank=refusals.UNWANTED)
        closed = refusal('isolation', 'are isolated', rank=refusals.CLOSED)
        full = refusal('VCPU', 'are full')
        for others in ({'1': named}, {'1': closed}, {'1': full}):
            found = build({'1': disabled}, others | dict.fromkeys('23', full))
            self.assertEqual(
                {disabled: 1, full: 2}, dict(found.count_reasons())
            )
            # A plan says of a host that is to be empty what it says of others.
            found = found.copy(without='12')
            found.add('x', 'x', refused=dict.fromkeys('12', named))
            self.assertEqual(
                {disabled: 1, named: 1, full: 1}, dict(found.count_reasons())
            )
            # That it is disabled keeps no server from it that must leave it.
            self.assertEqual('VCPU', found.ranked[0])

    def test_disabled_hosts_come_before_those_of_others(self):
        """By what lifting would free; what is closed to plain ones follows."""
        disabled = refusal(refusals.DISABLED, 'are disabled')
        closed = refusal('isolation', 'are isolated', rank=refusals.CLOSED)
        full = refusal('VCPU', 'are full')
        for others, expected in (
            ({}, [refusals.DISABLED, 'isolation']),
            ({'4': full}, [refusals.DISABLED, 'VCPU', 'isolation']),
            (
                dict.fromkeys('45', full),
                ['VCPU', refusals.DISABLED, 'isolation'],
            ),
        ):
            found = build(
                {'1': disabled},
                dict.fromkeys('23', closed),
                others,
            )
            self.assertEqual(expected, found.ranked)

    def test_what_stands_in_the_way(self):
        """Not what most hosts say; explain, plans and watch tell the same.

        Full host 5 would take it if it were not in a full rack; all others
        are closed to it whatever comes.
        """
        elsewhere = refusal('cell', 'are elsewhere', rank=refusals.UNWANTED)
        closed = refusal('isolation', 'are isolated', rank=refusals.CLOSED)
        full = refusal('VCPU', 'are full')
        rack = refusal('failure-domain', 'are in a full failure domain')
        for expected, columns in (
            # Of all that stands in the way: what alone would free a host.
            (
                ['failure-domain', 'VCPU', 'isolation', 'cell'],
                (
                    dict.fromkeys('12', elsewhere),
                    dict.fromkeys('34', closed),
                    dict.fromkeys('123', full),
                    {'5': rack},
                ),
            ),
            # What no request asks for is the answer where nothing else is.
            (['isolation', 'cell'], ({'1': elsewhere}, {'2': closed})),
            # Nor does what refuses hosts that the request does not want.
            (
                ['isolation', 'cell', 'VCPU'],
                (
                    dict.fromkeys('12', elsewhere),
                    {'3': closed},
                    dict.fromkeys('12', full),
                ),
            ),
            # A policy that a request asks something of is in its way.
            (
                ['isolation', 'cell'],
                (
                    dict.fromkeys('12', elsewhere),
                    {'3': closed},
                    {'4': closed._replace(rank=refusals.IN_THE_WAY)},
                ),
            ),
        ):
            found = build(*columns)
            self.assertEqual(expected, found.ranked)
            answer = found.make_answer()
            self.assertEqual(expected[0], answer.cause)
            self.assertEqual(expected[0], answer.reasons[0].cause)

    @ddt.data(
        ('', '', '', False),
        ('1', '', '', True),
        ('1', 'Only 1 of 2 instances finds a host', '', False),
        ('1', '', 'nova-api refuses it', False),
    )
    @ddt.unpack
    def test_finds_host(self, order, shortage, refusal, expected):
        found = build()
        for uuid in order:
            found.prefer(uuid, 1.0)
        found.shortage, found.refusal = shortage, refusal
        self.assertIs(expected, found.finds_host)
        answer = found.make_answer()
        self.assertEqual('state' if refusal else None, answer.cause)

    def test_the_end_of_a_request(self):
        found = build('1')
        found.stop('request filter', 'f', 'no\nway.', 'ask abc')
        self.assertEqual(set(), found.remaining)
        self.assertEqual(
            conclusion.End(
                'request filter', 'f', "'no\\nway'", 'ask abc', 'f'
            ),
            found.end,
        )
        self.assertEqual(0, found.constraints[-1].left)
        self.assertEqual(
            [('c0', 1)], [(r.cause, n) for r, n in found.count_reasons()]
        )


class GroupTestCase(testtools.TestCase):
    def test_label(self):
        """It stands for what a member has written."""
        found = refusals.group(
            [
                (refusal('CUSTOM_A', 'lack CUSTOM_A', label='custom'), 2),
                (refusal('VCPU', 'lack VCPU'), 1),
            ]
        )
        self.assertEqual(
            [('CUSTOM_A', 'custom'), ('VCPU', 'VCPU')],
            [(one.cause, one.label) for one in found],
        )

    def test_names_are_counted_within_a_kind(self):
        names = [
            refusals.Name('sql', 4),
            refusals.Name('windows', 2),
        ]
        details = [refusals.Detail('x', 5)]
        self.assertEqual(
            [
                refusals.Reason(
                    'are isolated',
                    'isolation',
                    'isolation',
                    6,
                    names,
                    details,
                ),
                # As many as another kind: by their text, always.
                refusals.Reason('are down', '', '', 1, [], []),
                refusals.Reason('lack T', '', '', 1, [], []),
                # What the request does not want comes last.
                refusals.Reason(
                    'are excluded', 'ignore_hosts', 'ignore_hosts', 9, [], []
                ),
            ],
            refusals.group(
                [
                    (
                        refusal(
                            'ignore_hosts',
                            'are excluded',
                            rank=refusals.UNWANTED,
                        ),
                        9,
                    ),
                    (refusal(kind='lack T'), 1),
                    (refusal(kind='are down'), 1),
                    (refusal('isolation', 'are isolated', name='windows'), 1),
                    (
                        refusal(
                            'isolation', 'are isolated', name='sql', detail='x'
                        ),
                        4,
                    ),
                    (
                        refusal(
                            kind='are isolated', name='windows', detail='x'
                        ),
                        1,
                    ),
                ]
            ),
        )


class FullTestCase(testtools.TestCase):
    def test_of_two_resources(self):
        self.assertEqual(
            refusals.Refusal('are full (DISK_GB, VCPU)', 'DISK_GB and VCPU'),
            refusals.full(['DISK_GB', 'VCPU']),
        )


class DecidersTestCase(testtools.TestCase):
    def test_a_weigher_without_which_hosts_are_equal(self):
        found = matrix.Matrix({'a': 'h1', 'b': 'h2'})
        for uuid, weight in (('a', 2.0), ('b', 1.0)):
            found.prefer(uuid, weight).weights.update(w=weight, v=0.0)
        self.assertEqual(
            [conclusion.Decider('w', 'h2')], found.make_answer().deciders
        )

    def test_what_a_host_loses(self):
        """By a weigher that gives it less, not by one that gives it more."""
        found = matrix.Matrix({'a': 'h1', 'b': 'h2'})
        for uuid, w, v in (('a', 2.0, 0.0), ('b', 1.0, 0.5)):
            found.prefer(uuid, w + v).weights.update(w=w, v=v)
        concluded = found.conclude(found.make_answer())
        self.assertEqual(
            [(1, {}), (2, {'w': 1.0})],
            [(one.rank, one.loses) for one in concluded.hosts],
        )


@ddt.ddt
class ActTestCase(testtools.TestCase):
    @ddt.data(
        (('disabled service', 'are disabled'), 'enable host1, host2'),
        (
            ('availability zone', 'are not in the availability zone az1'),
            'put host1, host2 into the zone az1',
        ),
        (('VCPU', 'are full (VCPU)'), 'free VCPU on host1, host2'),
        (
            ('anti-affinity', 'are full for the server group'),
            'move a server of the group away from host1, host2',
        ),
        (
            ('isolation', 'are isolated', 'windows'),
            'take host1, host2 out of windows',
        ),
        (
            ('isolation', 'are isolated'),
            'take host1, host2 out of the isolated aggregates',
        ),
        (
            ('aggregate type', 'have aggregates that do not match the flavor'),
            'change the flavor, or the aggregates of host1, host2',
        ),
        (
            (
                'aggregate left in placement',
                'are isolated in placement, but in no such aggregate in nova: '
                'use openstack resource provider aggregate set',
            ),
            'use openstack resource provider aggregate set',
        ),
        (('VCPU', 'lack VCPU'), 'free VCPU on host1, host2'),
        (
            ('trait X', 'lack the trait X'),
            'give host1, host2 the trait X',
        ),
        (
            ('forbidden trait X', 'have the forbidden trait X'),
            'take the trait X from host1, host2',
        ),
        (('F', 'are refused by F'), 'make F accept host1, host2'),
    )
    @ddt.unpack
    def test_what_to_do(self, refused, expected):
        self.assertEqual(
            expected, refusals.say_act([refusal(*refused)], ['host2', 'host1'])
        )

    def test_a_fault(self):
        found = refusal(
            'anti-affinity',
            'are full for the server group',
            detail='server group g cannot be read: x',
        )
        self.assertEqual(
            'repair what anti-affinity cannot read',
            refusals.say_act([found], ['host1']),
        )

    def test_many(self):
        found = [refusal('i', 'are isolated', name) for name in 'bca']
        hosts = [f'host{n}' for n in range(9, 14)]
        self.assertEqual(
            'take host9, host10, host11 and 2 more out of a, b, c',
            refusals.say_act(found, hosts),
        )
