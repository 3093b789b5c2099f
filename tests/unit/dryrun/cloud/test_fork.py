# SPDX-License-Identifier: Apache-2.0

"""What would be if, and that nothing is left of it; nova is in functional."""

import contextlib
import types
from unittest import mock
from urllib import parse

import ddt
from nova import objects
from nova.objects import aggregate
import testtools

from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.queries import sources
from tests.unit.dryrun.cloud import clouds

NOWHERE = {uuid: frozenset() for uuid in ('one', 'new', 'idle')}


class ForkTestCase(testtools.TestCase):
    """Hosts a to c, and ``one``, which stands on a."""

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud()
        self.one = self.cloud.stand('one', 'a')
        self.spec = clouds.make_spec()

    def describe(self):
        """Return all that a fork may change, of the process too."""
        return (
            self.cloud.describe(),
            self.cloud.supposed,
            self.cloud.client.ledger,
            sources.current,
            dict(vars(aggregate)),
            sources.current.place(NOWHERE),
            dict(self.cloud.server.held),
        )

    def take(self, future, host, number, uuid='new'):
        """Let a server of so many CPUs come."""
        target = self.cloud.find_target(host, **{host: {'VCPU': number}})
        self.assertTrue(future.come(uuid, self.spec, target))

    def come(self, future):
        return future.come('new', self.spec, self.cloud.find_target('b'))

    def move(self, future, to='b', **more):
        target = self.cloud.find_target(to, **more)
        return self.cloud.migrate(future, self.one, self.spec, target)

    def evacuate(self, future, to='b', **more):
        target = self.cloud.find_target(to, **more)
        return future.evacuate('one', self.spec, target, 'a')

    def leave(self, future):
        future.leave('one', self.spec, 'a', claims.read_taken(self.one))
        return True

    def count_under_way(self, future):
        self.cloud.under_way = {'one': {'hosta', 'hostb', 'gone'}}
        return future.count_under_way()

    def held(self, future, consumer='one'):
        allocations = future.ledger.get(consumer).json()['allocations']
        return {uuid: one['resources'] for uuid, one in allocations.items()}

    def look(self):
        """Return the servers, their number and free memory of each host."""
        found = self.cloud.describe().items()
        return {host: rest[:3] for host, rest in found}


SMALL = {'VCPU': 1, 'MEMORY_MB': 64}
# What says how much room a provider has.
PARTS = 'inventories', 'usages'


@ddt.ddt
class NothingIsLeftTestCase(ForkTestCase):
    def failing(self):
        return contextlib.suppress(ZeroDivisionError)

    @ddt.data('come', 'move', 'evacuate', 'count_under_way')
    def test_instances_load_their_fields(self, name):
        """As nova-scheduler's do; those of a server that comes have none."""
        image = objects.ImageMeta(properties=objects.ImageMetaProps())
        self.spec.image = image
        with self.cloud.fork() as future:
            getattr(self, name)(future)
            uuid = 'new' if name == 'come' else 'one'
            instance = self.cloud.states['b'].instances[uuid]
            nova = objects.InstanceList(objects=[instance]).objects
            self.assertIs(clouds.CCTXT, nova[0]._context)
            self.assertEqual(uuid, nova[0].uuid)
            if name == 'come':
                self.assertIs(image, nova[0].image_meta)
                self.assertTrue(
                    future.evacuate(
                        uuid, self.spec, self.cloud.find_target('c'), None
                    )
                )
                self.assertIs(instance, self.cloud.states['c'].instances[uuid])

    @ddt.data('come', 'move', 'evacuate', 'count_under_way')
    def test_whatever_happened(self, name):
        before = self.describe()
        for fails in (False, True):
            with self.failing(), self.cloud.fork() as future:
                getattr(self, name)(future)
                self.assertIs(future, self.cloud.supposed)
                self.assertIs(future.ledger, self.cloud.client.ledger)
                now = self.describe()
                for old, new in list(zip(before, now, strict=True))[:-1]:
                    self.assertNotEqual(old, new)
                if fails:
                    raise ZeroDivisionError
            self.assertEqual(before, self.describe())

    @ddt.data('come', 'move', 'evacuate', 'leave')
    def test_nothing_waits(self, name):
        with (
            mock.patch('time.sleep', side_effect=AssertionError),
            self.cloud.fork() as future,
        ):
            self.assertTrue(getattr(self, name)(future))

    def test_one_that_leaves(self):
        # The servers of a nova-compute count for each of its nodes.
        self.cloud.add_node('a2', 'hosta')
        self.cloud.states['a2'].instances['one'] = mock.sentinel.one
        group = objects.InstanceGroup(members=['one'], hosts=['hosta'])
        before = self.look()['a']
        with self.cloud.fork() as future:
            self.leave(future)
            self.assertEqual([], self.look()['a2'][0])
            future.correct_group(group)
            self.assertEqual([], group.hosts)
            _, number, memory = self.look()['a']
            self.assertEqual(([], 0), (self.look()['a'][0], number))
            self.assertEqual(before[2] + self.spec.memory_mb, memory)
            self.assertEqual({}, self.held(future))
            self.assertEqual({'a'}, future.vacated)
        self.assertEqual(before, self.look()['a'])

    def test_a_trial_that_is_kept(self):
        before = self.describe()
        with self.cloud.fork() as outer:
            self.take(outer, 'b', 3)
            with self.cloud.fork() as trial:
                self.assertFalse(self.move(trial, b={'VCPU': 2}))
                self.assertTrue(self.move(trial, 'c'))
                trial.keep()
                kept = self.describe()
            now = self.describe()
            # All but which fork is open, and its ledger.
            self.assertEqual(kept[0], now[0])
            self.assertEqual(kept[5], now[5])
            self.assertEqual({'new': 'hostb', 'one': 'hostc'}, outer.moved)
            self.assertEqual({'c': SMALL}, self.held(outer))
            self.assertEqual({'a'}, outer.vacated)
            self.assertEqual({'a', 'b', 'c'}, {*outer.touched})
            self.assertEqual(('c', (None, ())), outer.placed['one'])
            # It goes on from there, and another trial leaves nothing.
            with self.cloud.fork() as trial:
                self.assertTrue(self.move(trial, 'a'))
            self.assertEqual(now, self.describe())
            self.assertTrue(self.move(outer, 'a'))
            self.assertEqual((['one'], 1, 1000), self.look()['a'])
        self.assertEqual(before, self.describe())

    def test_a_trial_that_is_kept_in_one_that_is_not(self):
        with self.cloud.fork() as outer:
            self.take(outer, 'b', 3)
            before = self.describe(), self.held(outer)
            with self.cloud.fork() as middle:
                self.assertTrue(self.move(middle, 'c'))
                with self.cloud.fork() as trial:
                    self.assertTrue(self.move(trial, 'a'))
                    trial.keep()
                self.assertEqual('hosta', middle.moved['one'])
                self.assertEqual({'a': SMALL}, self.held(middle))
                self.assertEqual({'a', 'c'}, middle.vacated)
                self.assertEqual(1, middle.ledger.get_free('b', 'VCPU'))
                self.assertEqual(4, middle.ledger.get_free('c', 'VCPU'))
            self.assertEqual(before, (self.describe(), self.held(outer)))
            self.assertEqual({'new': 'hostb'}, outer.moved)
            self.assertFalse(outer.vacated)
            self.assertTrue(self.move(outer, 'c'))
            self.assertEqual(3, outer.ledger.get_free('c', 'VCPU'))

    def test_forks_are_a_stack(self):
        before = self.describe()
        with self.cloud.fork() as outer:
            self.take(outer, 'b', 3)
            moved = self.describe()
            for name in ('move', 'evacuate', 'count_under_way'):
                with self.failing(), self.cloud.fork() as inner:
                    self.assertIs(outer, inner.before)
                    # What came before counts.
                    self.assertEqual({'new': 'hostb'}, inner.moved)
                    self.assertFalse(inner.touched)
                    self.assertFalse(self.move(inner, b={'VCPU': 2}))
                    getattr(self, name)(inner)
                    self.assertTrue(inner.touched)
                    raise ZeroDivisionError
                self.assertEqual(moved, self.describe())
                self.assertEqual({'new': 'hostb'}, outer.moved)
                self.assertEqual({'b'}, {*outer.touched})
        self.assertEqual(before, self.describe())

    @ddt.data('come', 'move', 'evacuate')
    def test_a_claim_that_fails(self, name):
        """Another took what the candidate is made of."""
        with self.cloud.fork() as future:
            self.take(future, 'b', 4, 'other')
            before = self.describe()
            held = self.held(future)
            self.assertIs(False, getattr(self, name)(future))
            self.assertEqual(before, self.describe())
            self.assertEqual(held, self.held(future))
            self.assertEqual({}, self.held(future, 'new'))
            self.assertEqual({'other': 'hostb'}, future.moved)
            # It may go elsewhere.
            self.assertTrue(self.move(future, 'c'))


@ddt.ddt
class ClaimTestCase(ForkTestCase):
    def test_one_that_comes(self):
        with self.cloud.fork() as future:
            self.assertTrue(self.come(future))
            self.assertEqual((['new'], 1, 936), self.look()['b'])
            self.assertEqual({'b': SMALL}, self.held(future, 'new'))
            self.assertEqual({'new': 'hostb'}, future.moved)
            self.assertEqual({'b'}, {*future.touched})
            places = sources.current.place(NOWHERE)
            self.assertEqual({**NOWHERE, 'new': {'hostb'}}, places)
        # Nobody asks placement what a new one has.
        self.assertNotIn('/allocations/new', self.cloud.server.asked)

    def test_one_that_moves(self):
        instance = self.cloud.states['a'].instances['one']
        with self.cloud.fork() as future:
            self.assertTrue(self.move(future))
            # nova's own, of which filters can read more.
            on_b = self.cloud.states['b'].instances
            self.assertIs(instance, on_b['one'])
            self.assertEqual(
                {
                    'a': ([], 0, 1064),
                    'b': (['one'], 1, 936),
                    'c': ([], 0, 1000),
                },
                self.look(),
            )
            self.assertEqual({'b': SMALL}, self.held(future))
            self.assertEqual(
                [4, 3, 4],
                [future.ledger.get_free(host, 'VCPU') for host in 'abc'],
            )
            self.assertEqual({'one': 'hostb'}, future.moved)
            self.assertEqual({'a', 'b'}, {*future.touched})
            self.assertEqual({'hostb'}, sources.current.place(NOWHERE)['one'])
            # And back.
            self.one.host, self.one.node = 'hostb', 'nodeb'
            self.assertTrue(self.move(future, 'a'))
            self.assertEqual((['one'], 1, 1000), self.look()['a'])
            self.assertEqual({'a': SMALL}, self.held(future))
        # A migration is new, and all that a host's servers have is read at
        # once.
        asked = self.cloud.server.asked
        self.assertFalse([one for one in asked if one[:13] == '/allocations/'])

    def test_one_that_moves_twice(self):
        """It leaves where it came to, with what it got there."""
        with self.cloud.fork() as future:
            before = self.look(), future.ledger.get_free('b', 'VCPU')
            self.assertTrue(self.move(future, 'b'))
            self.assertTrue(self.move(future, 'c'))
            self.assertEqual((['one'], 1, 936), self.look()['c'])
            self.assertEqual(before[0]['b'], self.look()['b'])
            self.assertEqual(before[1], future.ledger.get_free('b', 'VCPU'))
            self.assertEqual({'c': SMALL}, self.held(future))
            self.assertEqual({'a', 'b'}, future.vacated)
            self.assertEqual(('c', (None, ())), future.placed['one'])

    def test_one_that_moves_takes_first(self):
        """Disks that both hosts share have to have room for it twice."""
        self.cloud.server.add('disks', traits=[clouds.SHARES], DISK_GB=30)
        disks = {'disks': {'DISK_GB': 20}}
        self.cloud.server.hold('one', a=SMALL, **disks)
        with self.cloud.fork() as future:
            self.assertFalse(self.move(future, **disks))
            self.assertTrue(self.move(future, disks={'DISK_GB': 10}))
            self.assertEqual(20, future.ledger.get_free('disks', 'DISK_GB'))

    def test_one_that_is_evacuated(self):
        """It keeps what it has, and takes no provider twice."""
        self.cloud.server.add('disks', traits=[clouds.SHARES], DISK_GB=30)
        disks = {'disks': {'DISK_GB': 20}}
        self.cloud.server.hold('one', a=SMALL, **disks)
        self.cloud.stand('idle', 'a')
        asked = self.cloud.server.asked
        with self.cloud.fork() as future:
            self.assertTrue(self.evacuate(future, **disks))
            number = len(asked)
            self.assertEqual(
                {'a': SMALL, 'b': SMALL, **disks}, self.held(future)
            )
            self.assertEqual((['idle', 'one'], 2, 1000), self.look()['a'])
            self.assertEqual((['one'], 1, 936), self.look()['b'])
            with self.cloud.fork() as inner:
                self.assertEqual({'a': SMALL}, self.held(inner, 'idle'))
            future.evacuate(
                'idle', self.spec, self.cloud.find_target('c'), 'a'
            )
        # All that a host's servers have is read at once.
        self.assertFalse([one for one in asked if '/allocations/' in one])
        self.assertEqual(
            {f'/resource_providers/c/{part}' for part in PARTS},
            {*asked[number:]},
        )
        with self.cloud.fork() as future:
            # Of a host without a compute node each is asked about.
            target = self.cloud.find_target('b')
            self.assertTrue(future.evacuate('one', self.spec, target, None))
            self.assertIn('a', self.held(future))
        self.assertIn('/allocations/one', asked)

    @ddt.data('move', 'evacuate')
    def test_one_that_holds_more_than_may_be_given_now(self, name):
        """Placement takes what nova would write of its host for no amount."""
        self.cloud.server.providers['a'].limits = {'max_unit': 63}
        before = self.cloud.describe()
        with self.cloud.fork() as future:
            self.assertIs(False, getattr(self, name)(future))
            self.assertEqual(before, self.cloud.describe())
            self.assertEqual({'a': SMALL}, self.held(future))
            self.assertEqual(
                [('MEMORY_MB', 64)], future.ledger.find_violated('one')
            )

    def test_one_that_has_nothing(self):
        """nova healed no allocation of it yet."""
        del self.cloud.server.held['one']
        with self.cloud.fork() as future:
            self.assertFalse(self.move(future, b={'VCPU': 5}))
            self.assertTrue(self.move(future))
            self.assertEqual({'b': SMALL}, self.held(future))

    def test_one_that_claims_in_placement_alone(self):
        request = clouds.make_request(b={'VCPU': 3})
        with self.cloud.fork() as future:
            states = self.look()
            self.assertTrue(future.allocate('new', self.spec, request))
            self.assertFalse(future.allocate('more', self.spec, request))
            self.assertEqual({'b': {'VCPU': 3}}, self.held(future, 'new'))
            self.assertEqual((states, {}), (self.look(), future.moved))
        self.assertNotIn('/allocations/new', self.cloud.server.asked)

    def test_the_limits_of_the_filters(self):
        """nova consumes NUMA cells by them; they end with the claim."""
        limits = []

        def consume(state, *args):
            limits.append((state.uuid, state.limits))

        target = self.cloud.find_target('b')
        target.limits = {'numa_topology': 'cells'}
        with (
            mock.patch.object(claims, 'consume', consume),
            self.cloud.fork() as future,
        ):
            future.come('new', self.spec, target)
            self.assertEqual({}, self.cloud.states['b'].limits)
        self.assertEqual([('b', target.limits)], limits)

    def test_a_group_is_left_as_it_is(self):
        group = objects.InstanceGroup(members=['new', 'one'], hosts=['old'])
        self.spec.instance_group = group
        with self.cloud.fork() as future:
            self.come(future)
            self.assertEqual(['old'], group.hosts)
            future.correct_group(group)
            self.assertEqual(['hosta', 'hostb'], group.hosts)
            with self.cloud.fork() as inner:
                self.move(inner, 'c')
                inner.correct_group(group)
            self.assertEqual(['hostb', 'hostc'], group.hosts)
            # None of its members moved.
            group.members = ['idle']
            future.correct_group(group)
            self.assertEqual(['hostb', 'hostc'], group.hosts)
            future.correct_group(None)

    def test_nodes_of_one_nova_compute(self):
        """A server counts for each of them, as nova counts it (ironic)."""
        for uuid, host in (('d', 'hosta'), ('e', 'hostb')):
            self.cloud.add_node(uuid, host)
        self.cloud.states['d'].instances['one'] = objects.Instance(uuid='one')
        with self.cloud.fork() as future:
            self.move(future)
            on = {host: servers for host, (servers, *_) in self.look().items()}
            self.assertEqual(
                {'a': [], 'b': ['one'], 'c': [], 'd': [], 'e': ['one']}, on
            )
            # Of the nodes only one has less room.
            self.assertEqual((['one'], 0, 1000), self.look()['e'])
            self.assertEqual({*'abde'}, {*future.touched})

    def test_one_that_is_under_way(self):
        with self.cloud.fork() as future:
            self.count_under_way(future)
            self.assertEqual((['one'], 0, 1000), self.look()['b'])
            self.assertEqual({'b'}, {*future.touched})
            self.assertEqual({}, future.moved)
            self.assertEqual(
                {'hosta', 'hostb', 'gone'},
                sources.current.place(NOWHERE)['one'],
            )

    def test_versions(self):
        """A number is never another state's, in another fork either."""
        known = set()
        for _ in range(2):
            with self.cloud.fork() as future:
                for number in range(2):
                    self.take(future, 'b', 1, f'new{number}')
                    self.assertNotIn(self.cloud.versions['b'], known)
                    known.add(self.cloud.versions['b'])
        self.assertEqual(4, len(known))


@ddt.ddt
class CandidatesTestCase(ForkTestCase):
    """Host d is full: placement does not offer it."""

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud('abcd')
        self.spec = clouds.make_spec()
        self.provider = self.cloud.server.providers['d']
        self.provider.inventory = {'VCPU': 4, 'MEMORY_MB': 999}
        self.servers = {
            number: self.cloud.stand(f'{number}', 'd') for number in (1, 2, 4)
        }
        self.hold(**{'1': 1, '2': 1, '4': 2})

    def hold(self, **amounts):
        for server, number in amounts.items():
            self.cloud.server.hold(server, d={'VCPU': number})

    def ask(self, future, text='resources=VCPU:2'):
        """Return the candidates' hosts."""
        form = mock.Mock(_limit=None)
        form.to_querystring.return_value = text
        params = dict(parse.parse_qsl(text))
        form.get_num_of_suffixed_groups.return_value = 'resources1' in params
        form.merged_resources.return_value = {
            name: int(amount)
            for name, amount in (
                one.split(':') for one in params['resources'].split(',')
            )
        }
        with mock.patch.object(
            self.cloud.client,
            'get_allocation_candidates',
            lambda _, form: (
                *(
                    self.cloud.client.get(
                        f'/allocation_candidates?{form.to_querystring()}'
                    ).json()[key]
                    for key in ('allocation_requests', 'provider_summaries')
                ),
                None,
            ),
        ):
            found = future.get_candidates(None, [form])
        self.unknown = future.find_unknown([form])
        hosts = [next(iter(one['allocations'])) for one in found.requests]
        self.assertEqual(hosts, list(found.summaries))
        return found, ''.join(hosts)

    def leave(self, future, *servers):
        for server in servers:
            self.assertTrue(
                self.cloud.migrate(
                    future,
                    self.servers[server],
                    self.spec,
                    self.cloud.find_target('a', a={}),
                )
            )

    @ddt.data(
        # Who left d, the query, whether it is a candidate then, whether that
        # is known.
        ((4,), 'resources=VCPU:2', True),
        ((1, 2), 'resources=VCPU:2', True),
        ((1,), 'resources=VCPU:2', False),
        ((4,), 'resources=VCPU:2&required=!T', True),
        ((4,), 'resources=VCPU:2&required=T', False),
        # No provider of the host has it.
        ((4,), 'resources=VCPU:2,DISK_GB:1', False),
        ((4,), 'resources=VCPU:2&resources1=CUSTOM_A:1', False, False),
        # And what the host gives to one server.
        ((1, 2, 4), 'resources=VCPU:3', False, True, {'max_unit': 2}),
        ((4,), 'resources=VCPU:1', False, True, {'min_unit': 2}),
        ((4,), 'resources=VCPU:1', False, True, {'step_size': 2}),
    )
    @ddt.unpack
    def test_what_a_fork_opens(
        self, left, text, opened, known=True, limits=None
    ):
        self.provider.limits = limits or {}
        for host in 'abc' * ('required=T' in text):
            self.cloud.server.providers[host].traits = {'T'}
        for host in 'abc':
            self.cloud.server.providers[host].inventory['DISK_GB'] = 9
        with self.cloud.fork() as future:
            self.assertEqual('abc', self.ask(future, text)[1])
            self.leave(future, *left)
            _, found = self.ask(future, text)
            self.assertEqual('abc' + 'd' * opened, found)
            self.assertEqual(set() if known else {'d'}, self.unknown)
            with self.cloud.fork() as inner:
                self.assertEqual(found, self.ask(inner, text)[1])
        with self.cloud.fork() as future:
            self.assertEqual('abc', self.ask(future, text)[1])

    @ddt.data(
        # The query, and the providers that each candidate on d has.
        ('', {'d gpu1', 'd gpu2'}),
        ('&required=T', {'d gpu2'}),
        ('&required=!T', {'d gpu1'}),
        ('&in_tree=d', {'d gpu1', 'd gpu2'}),
        (',DISK_GB:3', {'d gpu1 disks', 'd gpu2 disks'}),
        # What hosts share is of no tree.
        (',DISK_GB:3&in_tree=d', set()),
        (',DISK_GB:3&member_of=in:A', set()),
        (',DISK_GB:3&member_of=in:all', {'d gpu1 disks', 'd gpu2 disks'}),
        (',DISK_GB:3&member_of=!in:B', set()),
        ('&member_of=!in:A', set()),
        (',DISK_GB:31', set()),
    )
    @ddt.unpack
    def test_what_other_providers_give(self, text, expected):
        server = self.cloud.server
        server.add('gpu1', 'd', VGPU=1)
        server.add('gpu2', 'd', traits=['T'], VGPU=1)
        server.add('disks', traits=[clouds.SHARES], DISK_GB=30)
        # The host is in aggregate A, the disks are in B.
        has = server._has
        server._has = lambda uuid, key, value: (
            (uuid == 'disks') == (value == 'in:B')
            if value in ('in:A', 'in:B')
            else has(uuid, key, value)
        )
        form = mock.Mock()
        query_string = f'resources=VCPU:2,VGPU:1{text}'
        form.to_querystring.return_value = query_string
        form.get_num_of_suffixed_groups.return_value = 0
        form.merged_resources.return_value = {
            name: int(amount)
            for name, amount in (
                one.split(':')
                for one in query_string.split('&')[0][10:].split(',')
            )
        }
        with self.cloud.fork() as future:
            found = future.open([form], {'d'}, {})['d']
            self.assertEqual(
                expected, {' '.join(one['allocations']) for one in found}
            )
            for one in found:
                self.assertEqual({'': [*one['allocations']]}, one['mappings'])
                self.assertEqual(
                    {'resources': {'VCPU': 2}}, one['allocations']['d']
                )
            # Those that placement's answer has come first, and once.
            again = future.open([form], {'d'}, {'d': found[1:]})['d']
            self.assertEqual(found[1:], again[:-1])
            self.assertCountEqual(found, again)

    def test_a_host_of_which_placement_offers_another_provider(self):
        """One device was free, and a server gives the other one back."""
        for name in ('gpu1', 'gpu2'):
            self.cloud.server.add(name, 'd', VGPU=1)
        self.hold(**{'1': 1, '2': 1, '4': 1})
        self.cloud.server.hold('4', d={'VCPU': 1}, gpu2={'VGPU': 1})
        answered = clouds.make_request(d={'VCPU': 1}, gpu1={'VGPU': 1})
        answer = types.SimpleNamespace(
            requests=[answered],
            summaries={'d': clouds.make_summary(VCPU=(4, 3))},
        )
        self.cloud.providers.get_candidates = lambda *_: answer
        form = mock.Mock()
        form.to_querystring.return_value = 'resources=VCPU:1,VGPU:1'
        form.get_num_of_suffixed_groups.return_value = 0
        form.merged_resources.return_value = {'VCPU': 1, 'VGPU': 1}
        with self.cloud.fork() as future:
            self.assertIs(answer, future.get_candidates(None, [form]))
            self.leave(future, 4)
            found = future.get_candidates(None, [form])
            self.assertEqual(
                [['d', 'gpu1'], ['d', 'gpu2']],
                [[*one['allocations']] for one in found.requests],
            )
            self.assertEqual(
                {'root_provider_uuid': 'd', 'resources': mock.ANY},
                found.summaries['gpu2'],
            )

    def test_a_provider_that_hosts_share(self):
        """What a server gives back to it, other hosts may give."""
        server = self.cloud.server
        server.add('disks', traits=[clouds.SHARES], DISK_GB=30)
        server.hold('4', d={'VCPU': 1}, disks={'DISK_GB': 9})
        with self.cloud.fork() as future:
            self.leave(future, 4)
            self.assertEqual({*'abcd'}, future.vacated)
            self.assertEqual({*'abcd'}, future.find_other({'a': ()}))

    def test_a_place_that_is_taken_again(self):
        with self.cloud.fork() as future:
            self.leave(future, 4)
            self.assertEqual('abcd', self.ask(future)[1])
            self.take(future, 'd', 1)
            self.assertEqual('abc', self.ask(future)[1])

    def test_a_host_that_is_a_candidate_anyway(self):
        """It is one once, and no sharing provider makes it unknown."""
        with self.cloud.fork() as future:
            self.leave(future, 4)
            _, found = self.ask(future, 'resources=MEMORY_MB:1')
            self.assertEqual('abcd', found)

    def test_what_a_fork_fills(self):
        """Another request may have the same answer, which stays."""
        with self.cloud.fork() as future:
            self.take(future, 'a', 2, 'x')
            self.take(future, 'b', 3, 'y')
            answer, found = self.ask(future)
            self.assertEqual('abc', found)
            fitting, full = future.leave_out_full(answer)
            self.assertEqual({'b': ['VCPU']}, full)
            self.assertEqual(['a', 'c'], [*fitting.summaries])
            self.assertEqual(
                [['a'], ['c']],
                [[*one['allocations']] for one in fitting.requests],
            )
            self.assertEqual(3, len(answer.requests))
            self.assertEqual(3, len(answer.summaries))

    def test_a_host_with_another_candidate(self):
        answer = types.SimpleNamespace(
            requests=[
                clouds.make_request(**{uuid: {'VCPU': number}})
                for uuid, number in (('a', 3), ('a', 1))
            ],
            summaries={'a': clouds.make_summary(VCPU=(4, 0))},
        )
        with self.cloud.fork() as future:
            self.take(future, 'a', 2)
            fitting, full = future.leave_out_full(answer)
            self.assertEqual(({}, ['a']), (full, [*fitting.summaries]))
            self.assertEqual(answer.requests[1:], fitting.requests)

    def test_the_room_of_a_host_that_is_in_no_answer(self):
        with self.cloud.fork() as future:
            self.assertEqual(0, future.ledger.get_free('d', 'VCPU'))
            self.assertEqual(0, future.ledger.get_free('d', 'PGPU'))
