# SPDX-License-Identifier: Apache-2.0

"""Hosts that fail, on small clouds; nova evacuates in functional."""

from unittest import mock

import ddt
import fixtures
from nova import exception as nova_exception

from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import planner
from nova_ext_sched.dryrun.plan import shared_answers
from nova_ext_sched.dryrun.plan import survive
from tests.unit.dryrun.cloud import clouds
from tests.unit.dryrun.plan import small

NEVER = admission.NotMovable('it is', '', cause='never evacuated')


@ddt.ddt
class SurviveTestCase(small.TestCase):
    def test_what_is_known_is_said_while_the_rest_is_asked(self):
        """The label has it as soon as one cannot fail, and how many."""
        advance = mock.Mock()
        found = self.small.survive(
            'a=4 a1=4; b=4 b1=1; c=4 c1=4; d=4 d1=4; e=6 e1=5', advance=advance
        )
        self.assertEqual([*'abcde'], [one.name for one in found.failed])
        names = enumerate(('a', 'a, c', 'a, c, d', 'a, c, d, e'), 1)
        labels = [f'{number} cannot fail: {bad}' for number, bad in names]
        calls = [one.kwargs for one in advance.mock_calls]
        # None of these is a step.
        found = [one for one in calls if 'steps' in one]
        self.assertEqual([{'steps': 0, 'label': one} for one in labels], found)
        steps = [one for one in calls if 'steps' not in one]
        self.assertEqual([{'total': 5}, *[{}] * 5], steps)

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

    def test_one_cell_after_another(self):
        """The answer has the failures by name."""

        def change(cloud):
            for cell in ('cell1', 'cell2'):
                cloud.cells[cell] = mock.Mock(uuid=cell)
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'{servers.__name__}.Reader.count',
                    lambda _: {
                        'cell1': {'a': 1, 'c': 2},
                        'cell2': {'b': 1, 'd': 1},
                    },
                )
            )

        self.small.change = change
        cloud = 'a=9 s=1; b=9 t=1; c=9 u=1 v=1; d=9 w=1'
        advance, read = mock.Mock(), []
        self.useFixture(
            fixtures.MockPatchObject(
                survive,
                '_note_bad',
                lambda failure, *_: read.append(failure.failure),
            )
        )
        found = self.small.survive(cloud, advance=advance)
        self.assertEqual([*'acbd'], read)
        self.assertEqual([*'abcd'], [one.name for one in found.failed])

    def test_it_still_counts_on_its_host(self):
        """What the servers of a node have is read at once."""
        found = self.small.survive('a=4 s=1+g t=1; b=4 u=1+g; c=4')
        # Those that fail, and those that servers go to.
        self.assertEqual([*'abc'], sorted(found.services))
        [one, other] = found.failed
        self.assertEqual('s:c t:b', small.say(one.moves))
        self.assertEqual({'evacuate'}, {move.how for move in one.moves})
        asked = self.small.cloud.server.asked
        self.assertIn('/resource_providers?in_tree=a', asked)
        # How many hosts are left for the last.
        self.assertEqual([2, 1], [one.last, other.last])

    @ddt.data(
        # None is needed, or none helps.
        ('a=2 s=2; b=2; c=2', 'c', '', 's:b'),
        ('a=9 s=9; b=2; c=3', 'c', '', ''),
        # The first of equal ones.
        ('a=4 s=2 t=2; b=2; c=2; d=4', 'cd', 'c', 's:b t:c'),
        ('a=9 s=3 t=1; b=1; c=2; d=4', 'cd', 'd', 's:d t:b'),
        ('a=9 s=2 t=2; b=1; c=2; d=2; e=1', 'cde', 'cd', 's:c t:d'),
        # One that helps is not left out for one that cannot be helped.
        ('a=9 s=2 u=9; b=1; c=2', 'c', 'c', 's:c'),
    )
    @ddt.unpack
    def test_spares(self, cloud, spares, enabled, moves):
        [failed] = self.small.survive(cloud, spares={*spares}).failed
        self.assertEqual([*enabled], failed.enabled)
        found = sorted(small.say(failed.moves).split())
        self.assertEqual(moves.split(), found)

    def test_too_many_spares_to_try_all(self):
        """Each that is named is needed beside the others."""
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.dryrun.plan.survive._MOST_TRIED', 3
            )
        )
        cloud = 'a=9 s=2 t=2; b=1; c=1; d=2; e=1; f=2; g=1'
        [failed] = self.small.survive(cloud, spares={*'cdefg'}).failed
        self.assertEqual([*'df'], failed.enabled)

    def test_new_servers_do_not_come_to_spares(self):
        found = self.small.survive('a=4 s=2; b=4; c=9', '1', spares={*'c'})
        [room] = found.spares
        self.assertEqual(6, room.fit)

    def test_one_whose_deletion_begins_meanwhile(self):
        """It is evacuated as planned: its host ends no deletion."""
        self.small.deleting = {'x': False}
        [found] = self.small.survive('a=4 x=1; b=4').failed
        self.assertEqual('x:b', small.say(found.moves))
        self.assertEqual([], found.stuck)

    def test_one_that_is_being_deleted(self):
        """It takes no place from others, and has its room yet."""
        self.small.change = lambda _: setattr(
            self.small.instances['x'], 'task_state', 'deleting'
        )
        found = self.small.survive('a=5 x=3 y=2; b=4 z=1')
        self.assertEqual('x', small.name(found.gone))
        said = [small.say(one.moves + one.stuck) for one in found.failed]
        self.assertEqual(['y:b', 'z:VCPU'], said)

    def test_whom_nova_api_is_asked_about(self):
        """One of all that are alike; then by what else it looks at."""
        asked = []

        def ask(*args):
            asked.append(args[-1].uuid)

        self.useFixture(fixtures.MockPatchObject(admission, 'ask', ask))

        def change(cloud):
            self.small.instances['c'].vm_state = 'error'
            self.small.instances['d'].launched_at = None
            shares = {servers.select_shares: {'cell1': {'e'}}}
            cloud.ask_cells = lambda select, *_: shares[select]
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
        causes = 'g:LabelFilter h:LabelFilter e:state b:state a:state d:state'
        self.assertEqual(causes, small.say(one.stuck))
        [*_, e, b, a, d] = one.stuck
        then = [each.then for each in (e, b, a, d)]
        self.assertEqual([small.LABEL, '', '', 'VCPU'], then)
        # What the text counts.
        counted = [(each.cause, each.number) for each in one.causes]
        self.assertEqual([(small.LABEL, 3), ('VCPU', 1)], counted)
        why, helps = 'nova cannot move it: it is shelved', 'unshelve it'
        self.assertEqual((why, helps), (a.said, a.helps))
        self.assertIn(f'{why}. Even then: 0 of 2 hosts', d.said)
        room = 'free VCPU on h2:nodeh2 (not tried)'
        self.assertEqual(f'{helps}; then {room}', d.helps)

    @ddt.data(
        ('shelved', 'state', 'server group'),
        ('live', 'server group', ''),
        (NEVER, 'never evacuated', ''),
    )
    @ddt.unpack
    def test_whose_request_conductor_refuses(self, kind, cause, then):
        """That nova does not move it is known all the same."""
        hosts, servers = small.parse('h1=4 a=1; h2=4')
        problem = nova_exception.UnsupportedPolicyException(reason='x')
        servers['a'] = small.Server('h1', 1, kind=kind, problem=problem)
        [one] = self.small.survive((hosts, servers)).failed
        [stuck] = one.stuck
        self.assertEqual((cause, then), (stuck.cause, stuck.then))


@ddt.ddt
class SpareTestCase(small.TestCase):
    def spare(self, free, standing, size):
        """Let each host fail, and return what is counted.

        A host has room for some units; a server takes its size of them.

        :param free: the units that each host has now
        :param standing: the sizes of servers by host; None for one that nova
            does not evacuate
        :param size: of the new servers
        """
        hosts, servers = {}, {}
        for host, units in free.items():
            for number, one in enumerate(standing.get(host, ())):
                kind, cpus = ('live', one) if one else ('shelved', 1)
                made = small.Server(host, cpus, kind=kind)
                servers[f'{host}-{number}'] = made
                units += cpus
            hosts[host] = small.Host(units, 0, units, 64 * free[host])
        return self.small.survive((hosts, servers), f'{size}').spares[0]

    @ddt.data(
        # Nothing stands: the new ones alone.
        ({'a': 4, 'b': 4}, {}, 1, (8, 4, 'a')),
        ({'a': 4, 'b': 4, 'c': 4}, {}, 1, (12, 8, 'a')),
        # A host alone: none of its new ones has another.
        ({'a': 4}, {}, 1, (4, 0, 'a')),
        # Whole servers of whole hosts.
        ({'a': 3, 'b': 5}, {}, 2, (3, 1, 'b')),
        # What stands needs the room.
        ({'a': 4, 'b': 4}, {'a': [3]}, 1, (8, 1, 'a')),
        ({'a': 4, 'b': 4}, {'a': [4]}, 1, (8, 0, 'a')),
        # What finds no host now is not counted, whatever the reason.
        ({'a': 4, 'b': 4}, {'a': [9]}, 1, (8, 4, 'a')),
        ({'a': 4, 'b': 4}, {'a': [None]}, 1, (8, 4, 'a')),
        # None fits.
        ({'a': 4, 'b': 4}, {'a': [4]}, 5, (0, 0, '')),
    )
    @ddt.unpack
    def test_one_more_is_one_too_many(self, free, standing, size, expected):
        one = self.spare(free, standing, size)
        found = one.fit, one.may_come, one.worse, one.is_more
        self.assertEqual((*expected, False), found)

    @ddt.data(({}, 0, 'a'), ({'a-0'}, 1, 'b'))
    @ddt.unpack
    def test_one_that_is_gone_since(self, gone, may_come, worse):
        """It finds no host any more, and needs none."""
        self.small.deleted = {*gone}
        one = self.spare({'a': 0, 'b': 3, 'c': 2}, {'a': [3]}, 2)
        found = one.fit, one.may_come, one.worse
        self.assertEqual((2, may_come, worse), found)

    @ddt.data(True, False)
    def test_a_new_server_stays_in_its_cell(self, is_known):
        """nova evacuates none to another, though it has room."""

        def change(cloud):
            cloud.enabled_cells = [*cloud.cells.values()]
            cloud._contexts['cell2'] = clouds.CCTXT
            for host in 'bc':
                cloud.states[host].cell_uuid = 'cell2'

        if not is_known:
            self.small.host_filters = (small.Unknown(lambda *_: True),)
        self.small.change = change
        one = self.spare({'a': 3, 'b': 4, 'c': 4}, {}, 1)
        found = one.fit, one.may_come, one.worse
        self.assertEqual((11, 2, 'a'), found)

    def test_a_filter_of_which_nothing_is_known(self):
        """It opens a host that it refused before."""

        def passes(state, _):
            return state.uuid == 'a' or self.small.cloud.states['a'].instances

        self.small.host_filters = (small.Unknown(passes),)
        found = self.spare({'a': 2, 'b': 2}, {}, 1)
        self.assertEqual((4, 2), (found.fit, found.may_come))

    def test_there_are_no_more_than_are_counted(self):
        with mock.patch.object(survive, 'MOST', 3):
            found = self.spare({'a': 4, 'b': 4}, {}, 1)
        expected = ['1', '1', 3, True, 3, '', '', '']
        self.assertEqual(expected, [*vars(found).values()])

    def test_hosts_are_counted_once(self):
        """For all failures of a cloud with the same new servers."""
        judged = []
        find = shared_answers.Verdicts._find_passing

        def find_passing(asked, shared, uuids):
            version = asked._cloud.open_fork.version
            judged.extend((id(shared), version, one) for one in uuids)
            return find(asked, shared, uuids)

        with (
            mock.patch.object(survive, 'MOST', 5),
            mock.patch.object(
                shared_answers.Verdicts, '_find_passing', find_passing
            ),
        ):
            standing = {host: [2] for host in 'abcd'}
            found = self.spare(dict.fromkeys('abcd', 9), standing, 1)
        self.assertEqual(5, found.may_come)
        self.assertLess(8, len(judged))
        self.assertEqual(len({*judged}), len(judged))

    def test_hosts_are_ordered_before_any_server_moves(self):
        """An order made on the way would be none for the next failure."""
        unordered = []
        try_ = planner.try_

        def note(places, leaving, movables, barred):
            versions = places.cloud.versions
            for prepared in movables.values():
                shared = prepared.like.shared
                touched = places.cloud.open_fork.all_touched
                known = touched & shared.requests.keys()
                changed = shared.ranked.find_changed(known, versions)
                unordered.append(len(changed))
            return try_(places, leaving, movables, barred)

        hosts = 'abcdefghijkl'
        with (
            mock.patch.object(destinations, 'UNORDERED', 4),
            mock.patch.object(planner, 'try_', note),
        ):
            self.spare(dict.fromkeys(hosts, 2), {h: [2] * 3 for h in hosts}, 1)
        self.assertLess(len(hosts), len(unordered))
        self.assertLessEqual(max(unordered), 4)

    def test_why_none_fits(self):
        found = self.spare({'a': 4, 'b': 2}, {}, 5)
        self.assertEqual('MEMORY_MB', found.cause)
        said = '0 of 2 hosts can take it. 2 are too small (MEMORY_MB)'
        self.assertEqual(said, found.said)
