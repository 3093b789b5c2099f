# SPDX-License-Identifier: Apache-2.0

"""Hosts that fail, on small clouds; nova evacuates in functional."""

from unittest import mock

import ddt
import fixtures
from nova import exception as nova_exception
import testtools

from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.decision import admission
from tests.unit.dryrun.plan import small


@ddt.ddt
class SurviveTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.small = self.useFixture(small.Small())

    def test_what_is_known_is_said_while_the_rest_is_asked(self):
        """The label has it as soon as one cannot fail, and how many."""
        advance = mock.Mock()
        found = self.small.survive(
            'a=4 a1=4; b=4 b1=1; c=4 c1=4; d=4 d1=4; e=6 e1=5', advance=advance
        )
        self.assertEqual([*'abcde'], [one.name for one in found.failed])
        said = [call.kwargs for call in advance.mock_calls[1:] if call.kwargs]
        # None of these is a step.
        self.assertEqual(
            [
                {'steps': 0, 'label': f'{number} cannot fail: {names}'}
                for number, names in (
                    (1, 'a'),
                    (2, 'a, c'),
                    (3, 'a, c, d'),
                    (4, 'a, c, d, e'),
                )
            ],
            said,
        )
        self.assertEqual(
            [mock.call(total=5), *[mock.call()] * 5],
            [one for one in advance.mock_calls if 'steps' not in one.kwargs],
        )

    def test_each_failure_as_if_nothing_else_had_failed(self):
        """What was said of servers that are alike is not said again."""
        # r finds two servers on each host; y finds b full, by x.
        cloud = 'a=9 p=1 q=1 r=1; b=4; d=9 x=4 y=1'
        self.small.filter.most = 2
        found = self.small.survive(cloud).failed
        self.assertEqual([*'ad'], [one.name for one in found])
        for one in found:
            alone = self.small.survive(cloud, hosts=[one.name]).failed
            self.assertEqual([one], alone)

    def test_it_still_counts_on_its_host(self):
        """What the servers of a node have is read at once."""
        [one, other] = self.small.survive(
            'a=4 s=1+g t=1; b=4 u=1+g; c=4'
        ).failed
        self.assertEqual(
            's:c:evacuate t:b:evacuate',
            ' '.join(f'{small.say([m])}:{m.how}' for m in one.moves),
        )
        self.assertIn(
            '/resource_providers?in_tree=a', self.small.cloud.server.asked
        )
        # How many hosts are left for the last.
        self.assertEqual([2, 1], [one.last, other.last])

    def test_one_that_is_being_deleted(self):
        """It takes no place from others, and has its room yet."""
        self.small.change = lambda _: setattr(
            self.small.instances['x'], 'task_state', 'deleting'
        )
        found = self.small.survive('a=5 x=3 y=2; b=4 z=1')
        self.assertEqual('x', small.name(found.gone))
        self.assertEqual(
            ['y:b', 'z:VCPU'],
            [small.say(one.moves + one.stuck) for one in found.failed],
        )

    def test_whom_nova_api_is_asked_about(self):
        """One of all that are alike; then by what else it looks at."""
        asked = []
        self.useFixture(
            fixtures.MockPatchObject(
                admission, 'ask', lambda *args: asked.append(args[-1].uuid)
            )
        )

        def change(cloud):
            self.small.instances['c'].vm_state = 'error'
            self.small.instances['d'].launched_at = None
            ask = cloud.ask_cells
            cloud.ask_cells = lambda select, *args: (
                {'cell1': {'e'}}
                if select is servers.select_shares
                else ask(select, *args)
            )
            # Of host2 nova has no nova-compute.
            cloud.services[('cell1', 'host1')] = None

        self.small.change = change
        self.small.survive('host1=9 a=1 b=1 c=1 d=1 e=1; host2=9 f=1 g=1')
        self.assertEqual([*'acdef'], asked)

    def test_whether_there_would_be_room_otherwise(self):
        """They go last, the hardest first, each beside those before it."""
        [one] = self.small.survive(
            'h1=12 a=1:shelved b=2:shelved c=3 d=1:shelved e=1/1:shelved '
            'g=3/1 h=1/1; h2=6'
        ).failed
        self.assertEqual('c:h2', small.say(one.moves))
        self.assertEqual(
            'g:LabelFilter h:LabelFilter e:state b:state a:state d:state',
            small.say(one.stuck),
        )
        found = {each.uuid: each for each in one.stuck}
        self.assertEqual(
            [small.LABEL, '', '', 'VCPU'], [found[u].then for u in 'ebad']
        )
        why = 'nova cannot move it: it is shelved'
        self.assertEqual(
            (why, 'unshelve it'), (found['a'].said, found['a'].helps)
        )
        self.assertIn(f'{why}. Even then: 0 of 2 hosts', found['d'].said)
        self.assertEqual(
            'unshelve it; then free VCPU on h2:nodeh2', found['d'].helps
        )

    @ddt.data(
        ('', True, 'server group'),
        ('', False, 'server group'),
        ('never evacuated', True, 'never evacuated'),
    )
    @ddt.unpack
    def test_whose_request_conductor_refuses(self, never, shelved, cause):
        """That nova does not move it is known all the same."""
        hosts, servers = small.parse('h1=4 a=1; h2=4')
        problem = nova_exception.UnsupportedPolicyException(reason='x')
        servers['a'] = small.Server(
            'h1',
            1,
            kind=admission.NotMovable('it is', '', cause=never)
            if never
            else 'shelved'
            if shelved
            else 'live',
            problem=problem,
        )
        [one] = self.small.survive((hosts, servers)).failed
        [stuck] = one.stuck
        self.assertEqual(cause, stuck.then or stuck.cause)
        self.assertEqual(
            {'': 'state' if shelved else cause}.get(never, never), stuck.cause
        )
