# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import ddt
import testtools

from nova_ext_sched.dryrun.decision import advice
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.decision import trial
from nova_ext_sched.policy import act
from tests.unit.dryrun.cloud import clouds

START = act.Act(act.REPAIR, 'start {hosts}', act.RUNS, by_command=False)
TAKE = act.Act(
    act.POLICY, 'take {hosts} out of {names}', act.LEAVES, ('a',), 'others'
)
MAKE = act.Act(act.POLICY, 'make F accept {hosts}')
KINDS = {
    'D': refusals.Refusal('are down', 'down', acts=(START,)),
    'I': refusals.Refusal('are isolated', 'isolation', acts=(TAKE,)),
    'F': refusals.Refusal('are refused', 'F', acts=(MAKE,)),
    'N': refusals.Refusal('are not known', 'N'),
    'S': refusals.Refusal('are too small', 'VCPU', lifts=False),
    'V': refusals.full(['VCPU']),
    'M': refusals.full(['MEMORY_MB']),
    # Nobody knows how much of it is lacking.
    'U': refusals.full(['VGPU']),
    'Z': refusals.Refusal(
        'are too small', 'VCPU', lifts=False, acts=(refusals.SMALLER,)
    ),
}


class Trials:
    """Says how many hosts take a request after acts, by their words.

    :ivar tried: the acts that were asked about
    :ivar left: the hosts that nobody may start
    """

    left = ()

    def __init__(self, answers):
        self.answers, self.tried, self.moved = answers, [], {}
        self.cloud = clouds.stub({}, aggs_by_id={})
        self.described, self.smaller = (), 'tiny'

    def allows(self, made, uuid):
        if uuid in self.left and made.supposes == act.RUNS:
            return False
        return made.supposes != act.UNHELD

    def list_amounts(self, uuid, lacking):
        if 'raise' in self.answers:
            [(option, missing)] = lacking.items()
            words = f'raise {option} by {missing} on {{hosts}}'
            yield act.Act(act.POLICY, words, act.AMOUNT, (option, '2'))

    def count(self, steps):
        words = '+'.join(one.act.words.split()[0] for one in steps)
        if any(one.act.supposes == act.NOTHING for one in steps):
            raise trial.Untried
        self.tried.append(words)
        return self.answers.get(words, 0)


@ddt.ddt
class FindTestCase(testtools.TestCase):
    def find(self, text, answers, bounds=advice.DEFAULT, **more):
        """Find advice where hosts are refused as a text says.

        :param text: a word for each host, a letter for what refuses it
        """
        hosts = text.split()
        names = {str(n): f'host{n}' for n in range(1, len(hosts) + 1)}
        judged = matrix.Matrix(names)
        for letter, one in KINDS.items():
            refused = {
                uuid: one
                for uuid, letters in zip(names, hosts, strict=True)
                if letter in letters
            }
            capacity = None
            if letter in 'VM':
                numbers = dict.fromkeys(
                    ('large_enough', 'full', 'too_small', 'without'), 0
                )
                capacity = conclusion.Capacity(
                    one.cause, 4, unknown=0, **numbers
                )
            judged.add(
                'placement',
                letter,
                refused=refused,
                capacity=capacity,
                free=dict.fromkeys(refused, 1) if capacity else None,
            )
        self.trials = Trials(answers)
        found = advice.find(judged, self.trials, bounds, **more)
        return [(one.act, one.hosts) for one in found]

    @ddt.data(
        # Each act of a host that one cause refuses, repairs first.
        ('D I', {'start': 1, 'take': 1},
         [('start host1', 1), ('take host2 out of a', 1)]),
        # All hosts of which the same is to be done.
        ('D D I', {'start': 2}, [('start host1, host2', 2)]),
        # After which no host takes it: not said.
        ('D I', {'take': 1}, [('take host2 out of a', 1)]),
        ('D I', {}, []),
        # Pairs, where no single act helps.
        ('DI', {'start+take': 1},
         [('start host1, and take host1 out of a', 1)]),
        ('DI D', {'start': 1, 'start+take': 1}, [('start host2', 1)]),
        # What nothing lifts, what nobody knows, and more than two.
        ('DS IS S', {'start': 1, 'take': 1}, []),
        ('DN N', {'start': 1}, []),
        ('DIV', {'start+take+free': 1}, []),
        # All that a host lacks is one act; a further host is another.
        ('VM', {'free': 1, 'add': 1},
         [('free 3 VCPU, 3 MEMORY_MB on host1', 1),
          ('add a host like host1', 1)]),
        # On those that lack least.
        ('VM V V', {'free': 1, 'add': 1},
         [('free 3 VCPU on one of host2, host3', 1),
          ('add a host like host1', 1)]),
        ('VM VM V', {'free': 1}, [('free 3 VCPU on host3', 1)]),
        # How much is not known of every class.
        ('U', {'free': 1}, [('free VGPU on host1', 1)]),
        # Nothing is freed where a host is too small.
        ('Z', {'free': 1, 'ask': 1}, [('ask for flavor tiny', 1)]),
        ('VZ', {'free': 1, 'ask': 1}, [('ask for flavor tiny', 1)]),
        # An option of nova-compute, by what the first host lacks; untried it
        # is not said.
        ('V V', {'free': 1, 'raise': 2},
         [('free 3 VCPU on one of host1, host2', 1),
          ('raise VCPU by 3 on host1', 2)]),
        # What cannot be tried comes last.
        ('F D', {'start': 1},
         [('start host2', 1), ('make F accept host1', None)]),
    )  # fmt: skip
    @ddt.unpack
    def test_find(self, text, answers, expected):
        self.assertEqual(expected, self.find(text, answers))

    def _find_full(self, free, closed=()):
        """Find advice where hosts lack memory; a request asks for 1000.

        :param free: of each host
        :param closed: those that are isolated besides
        """
        names = {str(n): f'host{n}' for n, _ in enumerate(free, 1)}
        judged = matrix.Matrix(names)
        numbers = dict.fromkeys(
            ('large_enough', 'full', 'too_small', 'without'), 0
        )
        judged.add(
            'placement',
            'M',
            refused=dict.fromkeys(names, KINDS['M']),
            capacity=conclusion.Capacity(
                'MEMORY_MB', 1000, unknown=0, **numbers
            ),
            free=dict(zip(names, free, strict=True)),
        )
        judged.add(
            'host filter', 'I', refused=dict.fromkeys(closed, KINDS['I'])
        )
        trials = Trials({'free': 1, 'free+take': 1})
        return [one.act for one in advice.find(judged, trials)]

    @ddt.data(
        # The least amount, as a number; of as many hosts.
        ([900, 980, 100], 'free 20 MEMORY_MB on host2'),
        # What most lack is freed on one of them, however much it is.
        ([900, 980, 900], 'free 100 MEMORY_MB on one of host1, host3'),
    )
    @ddt.unpack
    def test_the_least_that_is_lacking(self, free, expected):
        self.assertEqual([expected], self._find_full(free))

    def test_the_least_of_hosts_that_only_room_refuses(self):
        """One that is isolated too is not the one to be freed alone."""
        self.assertEqual(
            ['free 100 MEMORY_MB on host1'],
            self._find_full([900, 980], closed=['2']),
        )

    def test_pairs_with_what_each_host_lacks(self):
        self.assertEqual(
            [
                'free 100 MEMORY_MB on host1, and take host1 out of a',
                'free 20 MEMORY_MB on host2, and take host2 out of a',
            ],
            self._find_full([900, 980], closed=['1', '2']),
        )

    def test_hosts_that_differ_in_what_is_allowed(self):
        """The same refuses them, and one may not be started."""
        judged = matrix.Matrix({str(n): f'host{n}' for n in (10, 9, 2)})
        judged.add(
            'cell', 'x', refused=dict.fromkeys(judged.names, KINDS['D'])
        )
        trials = Trials({'start': 2})
        trials.left = ('9',)
        [one] = advice.find(judged, trials)
        self.assertEqual('start host2, host10', one.act)

    def test_bounds(self):
        """What there was no time for is said, after the others."""
        answers = {'start': 1, 'take': 1}
        for tries, seconds, expected in (
            (1, 9, [('start host1', 1), ('take host2 out of a', None)]),
            (0, 9, [('start host1', None), ('take host2 out of a', None)]),
            (9, 0, [('start host1', None), ('take host2 out of a', None)]),
        ):
            bounds = advice.Bounds(tries, seconds)
            found = self.find('D I', answers, bounds)
            self.assertEqual(expected, found)

    def test_a_trial_that_would_take_too_long(self):
        """One takes as long as the longest before it."""
        now = iter(range(0, 1000))
        with mock.patch.object(
            advice.time, 'process_time', lambda: 0.1 * next(now)
        ):
            # Each reading of the clock is a tenth of a second later.
            for seconds, expected in ((0.35, None), (0.55, 1)):
                answers = {'start': 1, 'take': 1}
                found = self.find('D I', answers, advice.Bounds(9, seconds))
                self.assertEqual([1, expected], [one for _, one in found])

    def test_what_nobody_is_asked_to_give_up(self):
        found = self.find('D I', {'take': 1}, without=['isolation'])
        self.assertEqual([], found)

    def test_a_trial_that_fails(self):
        trials = Trials({})

        def fail(steps):
            raise ValueError('placement is away')

        trials.count = fail
        judged = matrix.Matrix({'1': 'host1'})
        judged.add('cell', 'x', refused={'1': KINDS['D']})
        [one] = advice.find(judged, trials)
        self.assertEqual(('start host1', None), (one.act, one.hosts))

    def test_where_hosts_are_left(self):
        judged = matrix.Matrix({'1': 'host1', '2': 'host2'})
        judged.add('cell', 'x', refused={'1': KINDS['D']})
        self.assertEqual([], advice.find(judged, Trials({'start': 1})))
