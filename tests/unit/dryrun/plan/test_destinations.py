# SPDX-License-Identifier: Apache-2.0

"""Where servers go: nova's scheduler on small clouds, asked as little as can.

tests/functional asks nova itself.
"""

from unittest import mock

import ddt
import fixtures
from nova import objects
from nova.network import model
from nova.scheduler import filters
from nova.scheduler import utils
from nova.scheduler.filters import affinity_filter
from oslo_utils import uuidutils
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.queries import sources
from tests import documentation
from tests.unit.dryrun.cloud import clouds
from tests.unit.dryrun.plan import small
from tests.unit.request_filters import base

WHOLE, PART = likeness.Key('x', True), likeness.Key('x', False)


class TakesFilter(filters.BaseHostFilter):
    """Takes the candidates of a host away."""

    __module__ = 'nova.x'

    def filter_all(self, states, spec_obj):
        for state in states:
            if state.uuid == 'a':
                state.allocation_candidates = []
            yield state


class ChoiceFilter(filters.BaseHostFilter):
    """Refuses a host with a single candidate."""

    __module__ = 'nova.x'

    def host_passes(self, host_state, spec_obj):
        return len(host_state.allocation_candidates) > 1


class DestinationsTestCase(testtools.TestCase):
    """Hosts a to d; nova's weigher prefers a, then b, and so on."""

    def setUp(self):
        super().setUp()
        self.request_filters = []
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.scheduler.request_filter.ALL_REQUEST_FILTERS',
                self.request_filters,
            )
        )
        self.gone = set()
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.dryrun.cloud.gone.find',
                lambda cloud, servers: self.gone.intersection(servers),
            )
        )
        self.stored = None
        self.useFixture(
            fixtures.MockPatchObject(
                servers.Reader, 'find', lambda *_: self.stored
            )
        )
        self.filter = clouds.KnownFilter()
        self.make('abcd')

    def make(self, hosts):
        self.cloud = clouds.Cloud(
            hosts, [self.filter, affinity_filter.DifferentHostFilter()]
        )
        for n, state in enumerate(self.cloud.states.values()):
            state.free_ram_mb = 900_000 - 1000 * n
        self.server = self.cloud.server
        self.places = destinations.Destinations(self.cloud)

    def prepare(self, key=WHOLE, uuid='server', fixed=(), spec=None, **fields):
        """Return a server that is to be evacuated.

        :param fixed: UUIDs of the hosts that it may not go to
        """
        spec = spec or clouds.make_spec(**fields)
        mine = movable.Evacuation(uuid, spec, None)
        mine.may_move_to = lambda state: state.uuid not in fixed
        return small.prepare(self.places, mine, key)

    def find(self, mine=None):
        found = self.places.find(mine or self.prepare())
        return found and found.uuid

    def fill(self, future, hosts):
        """Let a server of one CPU come to each host."""
        for number, host in enumerate(hosts):
            target = self.cloud.find_target(host, **{host: {'VCPU': 1}})
            spec = clouds.make_spec()
            self.assertTrue(future.come(f'{host}{number}', spec, target))

    def judge(self, spec=None, **fields):
        self.matrix, left = self.places.judge(
            spec or clouds.make_spec(**fields)
        )
        return ''.join(state.uuid for state in left)

    def refused(self, name):
        names = [one.constraint for one in self.matrix.constraints]
        return self.matrix.columns[names.index(name)].refused


@ddt.ddt
class JudgeTestCase(DestinationsTestCase):
    def test_nothing_refuses(self):
        self.assertEqual('abcd', self.judge())
        self.places.begin({'hosta', 'hostc', 'unknown'})
        self.assertEqual('bd', self.judge())
        self.places.begin(frozenset())
        self.assertEqual('abcd', self.judge())

    def test_a_request_that_ends(self):
        def refuse(ctxt, spec_obj):
            raise destinations.nova_exception.RequestFilterFailed(reason='no')

        self.request_filters.append(refuse)
        self.assertEqual('', self.judge())
        self.assertIsNotNone(self.matrix.end)
        self.assertEqual([], self.filter.asked)

    def test_a_host_without_a_candidate_that_is_left(self):
        self.cloud.enabled_filters.append(TakesFilter())
        self.assertEqual('bcd', self.judge())
        self.assertEqual('b', self.find())

    def test_what_moves_fill(self):
        with self.cloud.fork() as future:
            self.assertEqual('abcd', self.judge(vcpus=3))
            self.fill(future, 'bb')
            self.assertEqual('acd', self.judge(vcpus=3))
            self.assertEqual(
                {'b': (refusals.Refusal('are full (VCPU)', 'VCPU'),)},
                self.refused('moves before this one'),
            )
            self.assertEqual('abcd', self.judge(vcpus=2))
        self.assertEqual('abcd', self.judge(vcpus=3))

    def test_what_is_not_known(self):
        self.server.add('disks', traits=[clouds.SHARES], DISK_GB=30)
        on_d = self.cloud.stand('one', 'd')
        self.server.hold('one', d={'VCPU': 4}, disks={'DISK_GB': 9})
        spec = clouds.make_spec()
        spec.flavor.root_gb = 9
        with self.cloud.fork() as future:
            self.assertEqual('abc', self.judge(spec))
            self.assertEqual([], self.matrix.remarks)
            target = self.cloud.find_target('a')
            self.cloud.migrate(future, on_d, spec, target)
            self.assertEqual('abcd', self.judge(spec))
            self.assertEqual([], self.matrix.remarks)
            with mock.patch.object(
                utils.ResourceRequest,
                'get_num_of_suffixed_groups',
                return_value=1,
            ):
                self.assertEqual('abc', self.judge(spec))
            [remark] = self.matrix.remarks
            self.assertIn('Whether hostd:noded has room', remark)
            self.assertEqual({'d'}, self.matrix.unknown)

    def test_a_group_stands_where_its_members_moved(self):
        seen = []

        def look(ctxt, spec_obj):
            if spec_obj.instance_group:
                seen.append(spec_obj.instance_group.hosts)
                seen.append(sources.current.place({'m': frozenset()})['m'])

        self.request_filters.append(look)
        group = objects.InstanceGroup(
            uuid='g', members=['m'], hosts=['hostd'], policy='x'
        )
        spec = clouds.make_spec(instance_group=group)
        one = self.cloud.stand('m', 'd')
        mine = self.prepare(PART, instance_group=group)
        with self.cloud.fork() as future:
            self.judge(spec)
            target = self.cloud.find_target('b')
            self.cloud.migrate(future, one, clouds.make_spec(), target)
            self.judge(spec)
            self.find(mine)
        # The request filters too see it there.
        moved = [['hostb'], {'hostb'}]
        self.assertEqual([['hostd'], frozenset(), *moved, *moved], seen)
        # The request itself is left as it is.
        self.assertEqual(['hostd'], group.hosts)


@ddt.ddt
class LikeTestCase(DestinationsTestCase):
    def test_not_in_a_fork(self):
        """What is shared holds for the cloud as it is."""
        one = self.places.find_like(WHOLE, clouds.make_spec)
        with self.cloud.fork():
            again = self.places.find_like(WHOLE, clouds.make_spec)
            self.assertIs(one.shared, again.shared)
            error = self.assertRaises(
                RuntimeError,
                self.places.find_like,
                likeness.Key('y', True),
                clouds.make_spec,
            )
        self.assertIn('expected the cloud as it is, got a fork', str(error))

    def test_what_is_of_one_server_is_not_shared(self):
        group = objects.InstanceGroup(hosts=[])
        hints = {'different_host': ['one']}
        self.cloud.stand('one', 'a')
        spec = clouds.make_spec(
            ignore_hosts=['hostb'],
            instance_group=group,
            scheduler_hints=hints,
        )
        shared = self.places.find_like(PART, lambda: spec).shared
        self.assertEqual({*'abcd'}, {*shared.requests})

    @ddt.data(False, True)
    def test_what_a_deleted_server_is_answered_is_not_shared(self, explains):
        """Its request ends where a request filter reads the server."""

        def refuse(ctxt, spec_obj):
            if spec_obj.instance_uuid in self.gone:
                raise destinations.nova_exception.RequestFilterFailed(
                    reason='gone'
                )

        def ask(uuid):
            like = self.places.find_like(
                WHOLE, lambda: clouds.make_spec(instance_uuid=uuid)
            )
            if explains:
                mine = movable.Evacuation(uuid, clouds.make_spec(), like)
                return {*self.places.explain(mine)[1]}
            return {*like.shared.requests}

        self.request_filters.append(refuse)
        if explains:
            # It is deleted after it was prepared.
            self.assertEqual({*'abcd'}, ask('first'))
            self.places.begin(frozenset())
        self.gone.add('first')
        self.assertRaises(
            destinations.nova_exception.InstanceNotFound, ask, 'first'
        )
        self.assertEqual({*'abcd'}, ask('second'))

    def test_requests_of_which_nothing_is_known(self):
        self.assertIsNone(self.places.find_like(None, None))
        self.cloud.enabled_filters.append(clouds.AtMostFilter())
        self.assertIsNone(self.prepare().like)

    @ddt.data(WHOLE, PART, None)
    def test_count(self, key):
        self.places.begin({'hosta', 'hostb'})
        self.assertEqual(2, self.places.count(self.prepare(key)))


@ddt.ddt
class FindTestCase(DestinationsTestCase):
    @ddt.data(WHOLE, PART, None)
    def test_the_best_that_may_take_it(self, key):
        self.assertEqual('a', self.find(self.prepare(key)))
        mine = self.prepare(key, fixed='ab')
        self.assertEqual('c', self.find(mine))
        self.places.begin({'hostc'})
        self.assertEqual('d', self.find(mine))
        self.places.begin({'hostc', 'hostd'})
        self.assertIsNone(self.find(mine))

    @ddt.data(WHOLE, PART, None)
    def test_what_others_took(self, key):
        mine = self.prepare(key, vcpus=2)
        with self.cloud.fork() as future:
            self.fill(future, 'aaab')
            took = ''
            while (target := self.places.find(mine)) is not None:
                took += target.uuid
                self.assertTrue(future.come(took, mine.spec_obj, target))
            self.assertEqual('bccdd', ''.join(sorted(took)))
        self.assertEqual('a', self.find(mine))

    def test_of_equal_hosts_the_first(self):
        """As nova takes it, whatever was touched."""
        for key in (WHOLE, PART, None):
            for state in self.cloud.states.values():
                state.free_ram_mb = 1000
            mine = self.prepare(key)
            with self.cloud.fork() as future:
                self.fill(future, 'dcb')
                for state in self.cloud.states.values():
                    state.free_ram_mb = 1000
                self.assertEqual('a', self.find(mine))

    def test_only_the_best_are_asked_and_those_that_others_touched(self):
        """One after the other; one that refused not again."""
        self.make('abcdefghijklmn')
        mine = self.prepare()
        asked = self.filter.asked
        asked.clear()
        self.assertEqual('a', self.find(mine))
        self.assertEqual(['a'], asked)
        self.filter.most = 0
        with self.cloud.fork() as future:
            self.fill(future, 'ma')
            asked.clear()
            self.assertIsNone(self.find(mine))
            # Those beyond the best, after them: nothing else is left.
            self.assertEqual([*'abcdem'], sorted(asked[:6]))
            self.assertEqual(sorted(self.cloud.states), sorted(asked))
            asked.clear()
            with self.cloud.fork() as inner:
                self.assertIsNone(self.find(mine))
                self.assertEqual([], asked)
                self.fill(inner, 'm')
                self.assertIsNone(self.find(mine))
                self.assertEqual(['m'], asked)
                asked.clear()
            self.assertIsNone(self.find(mine))
            self.assertEqual([], asked)

    def test_one_that_refuses_goes_on_to_refuse(self):
        self.filter.most = 1
        mine = self.prepare()
        with self.cloud.fork() as future:
            self.fill(future, 'a')
            self.filter.asked.clear()
            for _ in range(2):
                self.assertEqual('b', self.find(mine))
            self.assertEqual(1, self.filter.asked.count('a'))
        # What was judged in a fork is of the fork.
        self.assertEqual('a', self.find(mine))
        # Where none is left, nobody is asked anew.
        mine = self.prepare(likeness.Key('y', True), fixed='abcd')
        self.filter.asked.clear()
        self.assertIsNone(self.find(mine))
        self.assertEqual([], self.filter.asked)

    def test_hosts_that_were_touched(self):
        """Also before this fork; some are no destinations."""
        self.make('abcdefghijklmn')
        self.server.hold('x', d={'VCPU': 4})
        mine = self.prepare()
        self.cloud.under_way = {'x': {'hostd'}}
        with self.cloud.fork() as future:
            future.count_under_way()
            self.fill(future, 'an')
            self.cloud.states['n'].free_ram_mb = 10**9
            for barred, expected in (({'hosta'}, 'n'), ({'hostn'}, 'a')):
                self.places.begin(barred)
                self.assertEqual(expected, self.find(mine))
                with self.cloud.fork():
                    self.assertEqual(expected, self.find(mine))

    def test_what_hosts_share_may_have_gone_to_another(self):
        self.server.add('disks', traits=[clouds.SHARES], DISK_GB=30)
        mine = self.prepare(vcpus=1)
        mine.spec_obj.flavor.root_gb = 20
        for key in (likeness.Key('disk', True), likeness.Key('disk', False)):
            mine.like = self.places.find_like(key, mine.spec_obj.obj_clone)
            with self.cloud.fork() as future:
                target = self.places.find(mine)
                self.assertEqual('a', target.uuid)
                self.assertEqual(
                    {'a', 'disks'},
                    {*target.allocation_candidates[0]['allocations']},
                )
                mine.go(future, target)
                self.assertIsNone(self.find(mine))
            self.assertEqual('a', self.find(mine))

    def prepare_with_disks(self):
        """Return a server that takes 20 GB of one of two shared providers."""
        for name in ('disks', 'others'):
            self.server.add(name, traits=[clouds.SHARES], DISK_GB=30)
        mine = self.prepare(vcpus=1)
        mine.spec_obj.flavor.root_gb = 20
        key = likeness.Key('disk', True)
        mine.like = self.places.find_like(key, mine.spec_obj.obj_clone)
        return mine

    def test_what_the_first_of_many_share_is_full(self):
        """The one host of other disks is found, however far behind."""
        self.make('abcdefghijkl')
        mine = self.prepare_with_disks()
        for uuid, requests in mine.like.shared.requests.items():
            disks = 'others' if uuid == 'l' else 'disks'
            requests[:] = [
                clouds.make_request(
                    **{uuid: {'VCPU': 1}, disks: {'DISK_GB': 20}}
                )
            ]
        with self.cloud.fork() as future:
            for expected in 'al':
                target = self.places.find(mine)
                self.assertEqual(expected, target.uuid)
                mine.go(future, target)
            self.assertIsNone(self.find(mine))

    def test_what_hosts_share_may_come_back(self):
        """A host that nobody touched is judged by the requests that fit."""
        mine = self.prepare_with_disks()
        self.cloud.enabled_filters.append(ChoiceFilter())
        for uuid, requests in mine.like.shared.requests.items():
            requests.append(
                clouds.make_request(
                    **{uuid: {'VCPU': 1}, 'others': {'DISK_GB': 20}}
                )
            )
        with self.cloud.fork() as future:
            target = self.places.find(mine)
            self.assertEqual('a', target.uuid)
            mine.go(future, target)
            self.assertIsNone(self.find(mine))
        with self.cloud.fork() as future:
            self.fill(future, 'aaaa')
            self.assertEqual('b', self.find(mine))


@ddt.ddt
class ProposalTestCase(DestinationsTestCase):
    """A server of which nova reads more than it has in common with others."""

    def prepare(self, like=None, **fields):
        """Prepare one after another that is like it, and judged for both."""
        key = likeness.Key(uuidutils.generate_uuid(), False)
        super().prepare(key, spec=like)
        return super().prepare(key, **fields)

    def test_its_own_hints_decide(self):
        self.cloud.stand('one', 'a')
        hints = {'different_host': ['one']}
        mine = self.prepare(scheduler_hints=hints)
        self.assertEqual('b', self.find(mine))
        # Those of the others do not.
        self.assertEqual('a', self.find(self.prepare(uuid='other')))

    def test_count(self):
        """By its own filters; what is not worth asking counts."""
        self.cloud.stand('one', 'a')
        hints = {'different_host': ['one']}
        mine = self.prepare(scheduler_hints=hints)
        self.assertEqual(3, self.places.count(mine))
        with mock.patch.object(destinations, 'WEIGHED', 2):
            self.filter.asked.clear()
            self.assertEqual(3, self.places.count(mine))
            self.assertEqual(['a', 'b'], self.filter.asked)

        def refuse(ctxt, spec_obj):
            raise destinations.nova_exception.RequestFilterFailed(reason='no')

        self.request_filters.append(refuse)
        self.places.begin(frozenset())
        self.assertEqual(0, self.places.count(mine))

    def test_its_own_question_decides(self):
        """Of each host that its filters leave, the best first."""
        flavor = base.flavor(extra_specs={'trait:T': 'required'})
        self.server.providers['c'].traits = {'T'}
        mine = self.prepare(flavor=flavor)
        self.server.asked.clear()
        self.assertEqual('c', self.find(mine))
        asked = [one for one in self.server.asked if '_candidates' in one]
        # nova asks for the host's own providers.
        self.assertEqual(
            [True] * 3,
            [
                f'in_tree={host}' in url
                for host, url in zip('abc', asked, strict=True)
            ],
        )
        # Each question is asked once.
        self.server.asked.clear()
        self.find(mine)
        self.assertEqual([], self.server.asked)
        self.assertIsNone(mine.spec_obj.requested_destination)

    def test_more_hosts_are_proposed(self):
        self.make('abcdefghijklmn')
        self.server.providers['l'].traits = {'T'}
        flavor = base.flavor(extra_specs={'trait:T': 'required'})
        self.assertEqual('l', self.find(self.prepare(flavor=flavor)))
        self.assertIn('in_tree=l', self.server.asked[-1])

    def test_not_all_hosts_are_proposed(self):
        """Where none of so many will do, all are asked at once."""
        self.make([f'h{number}' for number in range(60)])
        mine = self.prepare()
        self.filter.most = 0
        self.filter.asked.clear()
        self.assertIsNone(self.find(mine))
        self.assertEqual(destinations.PROPOSED + 60, len(self.filter.asked))

    def test_where_none_of_the_proposed_will_do(self):
        """Its own question on all hosts decides."""
        flavor = base.flavor(extra_specs={'trait:T': 'required'})
        self.server.providers['d'].traits = {'T'}
        with mock.patch.object(destinations, 'PROPOSED', 2):
            mine = self.prepare(flavor=flavor)
            self.assertEqual('d', self.find(mine))
        mine = self.prepare(like=clouds.make_spec(vcpus=5))
        self.assertEqual('a', self.find(mine))

    def test_its_own_candidates_go_on(self):
        """Not those of the shared answer."""
        self.server.add('disks', traits=[clouds.SHARES], DISK_GB=30)
        like = clouds.make_spec()
        like.flavor.root_gb = 20
        mine = self.prepare(like=like)
        [request] = self.places.find(mine).allocation_candidates
        self.assertEqual({'a'}, {*request['allocations']})

    def test_a_request_filter_that_refuses_it(self):
        def refuse(ctxt, spec_obj):
            if spec_obj.project_id == 'mine':
                raise destinations.nova_exception.RequestFilterFailed(
                    reason='no'
                )

        self.request_filters.append(refuse)
        self.assertIsNone(self.find(self.prepare(project_id='mine')))

    def test_request_filters_are_asked_once(self):
        """They may ask Cinder."""
        mine = self.prepare(ignore_hosts=[])
        asked = []
        self.request_filters.append(
            lambda ctxt, spec_obj: asked.append(spec_obj.ignore_hosts)
        )
        self.places.count(mine)
        with self.cloud.fork():
            self.find(mine)
        self.assertEqual([[]], asked)
        # It has arrived elsewhere.
        mine.spec_obj.ignore_hosts = ['hosta']
        self.find(mine)
        self.assertEqual([[], ['hosta']], asked)
        # Another plan asks anew.
        self.places.begin(frozenset())
        self.find(mine)
        self.assertEqual([[], ['hosta'], ['hosta']], asked)

    def test_request_filters_are_asked_again_where_a_member_moved(self):
        one = self.cloud.stand('one', 'a')
        group = objects.InstanceGroup(
            members=['one', 'server'], hosts=['hosta'], policy='affinity'
        )
        mine = self.prepare(instance_group=group)
        seen = []
        self.request_filters.append(
            lambda ctxt, spec_obj: seen.append(spec_obj.instance_group.hosts)
        )
        self.places.count(mine)
        with self.cloud.fork() as future:
            self.find(mine)
            target = self.cloud.find_target('b', b={'VCPU': 1})
            self.cloud.migrate(future, one, clouds.make_spec(), target)
            self.find(mine)
            self.find(mine)
        # After the fork it is where it was.
        self.find(mine)
        self.assertEqual([['hosta'], ['hostb'], ['hostb']], seen)


class RankTestCase(DestinationsTestCase):
    """A hundred hosts that a server came to each."""

    def setUp(self):
        super().setUp()
        self.make([f'h{number:03}' for number in range(100)])
        self.names = [*self.cloud.states]
        self.mine = self.prepare()
        self.weighed = []
        weigh = self.cloud.get_weighed_hosts

        def count(states, spec_obj):
            self.weighed.append(len(states))
            return weigh(states, spec_obj)

        self.cloud.get_weighed_hosts = count

    def ask(self, mine=None):
        """Return where it goes, and how many hosts nova's weighers saw."""
        self.weighed.clear()
        return self.find(mine or self.mine), self.weighed[:]

    def test_all_are_ordered_once(self):
        with self.cloud.fork() as future:
            self.fill(future, self.names)
            self.assertEqual(('h000', [100, 4]), self.ask())
            self.assertEqual(('h000', [4]), self.ask())
            # Those that changed, and the best of the others.
            self.fill(future, ['h000'] * 4)
            self.assertEqual(('h001', [4]), self.ask())
            self.fill(future, ['h001'])
            self.assertEqual(('h001', [5]), self.ask())
            self.cloud.states['h099'].free_ram_mb = 10**9
            self.fill(future, ['h099'])
            self.assertEqual(('h099', [6]), self.ask())
            # Many have changed: all again.
            self.fill(future, self.names[-51:])
            self.assertEqual(('h099', [100, 4]), self.ask())
            # What a trial changed is of the trial.
            with self.cloud.fork() as trial:
                self.fill(trial, ['h098', 'h099'])
                self.assertEqual(('h001', [5]), self.ask())
            self.assertEqual(('h099', [4]), self.ask())

    def test_the_next_best_where_these_refuse(self):
        self.filter.most = 1
        with self.cloud.fork() as future:
            self.fill(future, self.names)
            future.vacated.add('h077')
            self.cloud.states['h077'].num_instances = 0
            self.assertEqual('h077', self.ask()[0])
            self.filter.asked.clear()
            self.assertEqual('h077', self.ask()[0])
            # None of those is asked again.
            self.assertEqual(['h077'], self.filter.asked)
            self.places.bar({'hosth077'})
            self.assertIsNone(self.ask()[0])

    def test_its_own_filters_are_asked_about_some(self):
        mine = self.prepare(PART)
        with self.cloud.fork() as future:
            self.fill(future, self.names)
            self.filter.asked.clear()
            self.assertEqual('h000', self.ask(mine)[0])
            self.assertLessEqual(
                len(self.filter.asked), destinations.PROPOSED + 1
            )


class ExplainTestCase(DestinationsTestCase):
    def explain(self, mine):
        self.matrix, left = self.places.explain(mine)
        return left and {*map(str, (getattr(s, 'uuid', s) for s in left))}

    def test_like_servers_are_explained_once(self):
        self.places.begin({'hosta'})
        mine = self.prepare()
        self.filter.most = 0
        self.assertFalse(self.explain(mine))
        self.assertEqual(
            {'a': (refusals.IGNORED,)}, self.refused('ignore_hosts')
        )
        self.assertEqual({*'bcd'}, {*self.refused('KnownFilter')})
        self.filter.asked.clear()
        self.explain(self.prepare())
        self.assertEqual([], self.filter.asked)
        # Another plan asks anew.
        self.places.begin(frozenset())
        self.filter.most = 9
        self.assertEqual({*'abcd'}, self.explain(mine))

    def test_the_ports_of_one_that_is_there(self):
        """Those of the server that was judged first may be gone."""
        vif = model.VIF(id=uuids.port, network=model.Network(id=uuids.net))
        mine = objects.Instance(
            info_cache=objects.InstanceInfoCache(
                network_info=model.NetworkInfo([vif])
            )
        )
        seen = []
        self.request_filters.append(
            lambda ctxt, spec_obj: seen.append(
                'requested_networks' in spec_obj
                and [one.port_id for one in spec_obj.requested_networks]
            )
        )
        for self.stored, expected in (
            (None, False),
            (servers.Stored('server', mine, None, None), [uuids.port]),
        ):
            self.places.begin(frozenset())
            self.explain(self.prepare())
            self.assertEqual(expected, seen[-1])

    def test_others_by_themselves(self):
        self.filter.most = 0
        for key in (PART, None):
            self.explain(self.prepare(key))
            self.filter.asked.clear()
            self.assertFalse(self.explain(self.prepare(key)))
            self.assertTrue(self.filter.asked)

    def test_hosts_that_are_barred_are_so_for_all(self):
        """Whatever else refuses them."""
        self.places.begin({'hosta'})
        self.filter.most = 0
        for key in (WHOLE, PART, None):
            self.assertFalse(self.explain(self.prepare(key)))
            self.assertEqual({*'bcd'}, {*self.refused('KnownFilter')})
            self.assertEqual({'a'}, {*self.matrix.columns[-1].refused})


@ddt.ddt
class UsesOnlyTestCase(DestinationsTestCase):
    @ddt.data(
        ('ab', True),
        ('a', True),
        ('ad', False),
        ('d', False),
        # A host that shares what it has.
        ('d', True, 'd'),
    )
    @ddt.unpack
    def test_request(self, providers, expected, host='a'):
        """Provider b is within a; d is shared."""
        self.server.providers['d'].traits = {clouds.SHARES}
        one = clouds.make_request(**{uuid: {'VCPU': 1} for uuid in providers})
        self.assertIs(expected, destinations.uses_only(one, host, self.cloud))


class PageTestCase(testtools.TestCase):
    def test_survive_says_how_many_hosts_are_weighed(self):
        page = documentation.ROOT / 'doc/source/cli/survive.rst'
        text = ' '.join(page.read_text().split())
        for said in (
            f'only the {destinations.WEIGHED} hosts that were the best',
            'for a server with hints or in a group up to '
            f'{destinations.PROPOSED}.',
        ):
            self.assertIn(said, text)
