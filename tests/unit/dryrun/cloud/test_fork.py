# SPDX-License-Identifier: Apache-2.0

"""What would be if, and that nothing is left of it; nova is in functional."""

import contextlib
import types
from unittest import mock

from nova import objects
from nova.objects import aggregate
import testtools

from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.queries import sources
from tests.unit.dryrun.cloud import clouds

BEFORE = dict.fromkeys(('one', 'new', 'old'), frozenset(['before']))


class ForkTestCase(testtools.TestCase):
    """Hosts a to d of four CPUs; ``one`` is on a, and x, y and z fill d.

    What happens in forks is a text. A step is a verb, a server and perhaps a
    host, how many CPUs of it and how much of the shared disks the server
    takes; ``not`` begins one whose claim fails. ``(`` opens a fork on top of
    the last, ``)`` ends it, and ``keep`` lets the one below go on with it.
    """

    def setUp(self):
        super().setUp()
        sleep = mock.patch('time.sleep', side_effect=AssertionError)
        self.enterContext(sleep)
        self.build()

    def build(self):
        self.cloud = clouds.Cloud('abcd')
        self.server = self.cloud.server
        self.servers = {'one': self.cloud.stand('one', 'a')}
        for uuid, cpus in (('x', 1), ('y', 1), ('z', 2)):
            taken = {'VCPU': cpus}
            self.servers[uuid] = self.cloud.stand(uuid, 'd', d=taken)
        self.spec = clouds.make_spec()

    def describe(self):
        """Return all that a fork may change, of the process too."""
        return (
            self.cloud.describe(),
            self.cloud.open_fork,
            self.cloud.client.ledger,
            sources.current,
            dict(vars(aggregate)),
            sources.current.place(BEFORE),
        )

    @contextlib.contextmanager
    def forks(self, text):
        """Yield the fork that is open after some steps."""
        before = self.describe()
        with contextlib.ExitStack() as stack:
            opened = []
            for step in ['(', *filter(None, text.split(', '))]:
                if step == '(':
                    ends = stack.enter_context(contextlib.ExitStack())
                    future = ends.enter_context(self.cloud.fork())
                    opened.append((future, ends))
                elif step in (')', 'keep'):
                    future, ends = opened.pop()
                    if step == 'keep':
                        future.keep()
                    ends.close()
                else:
                    words = step.removeprefix('not ').split()
                    done = self.go(opened[-1][0], *words)
                    self.assertIsNot(step.startswith('not '), done, step)
            future, _ = opened[-1]
            self.assertIs(future, self.cloud.future)
            yield future
        self.assertEqual(before, self.describe(), text)

    def go(self, future, verb, uuid, host='', cpus=1, disks=0):
        """Take a step; return whether its claim did not fail."""
        server, node, spec = self.servers.get(uuid), None, self.spec
        if host:
            taken = {host: {'VCPU': int(cpus), 'MEMORY_MB': 64}}
            if disks:
                taken['disks'] = {'DISK_GB': int(disks)}
            target = self.cloud.find_target(host, **taken)
        if server:
            node = self.cloud.find_node(server.host, server.node)
            mine = claims.read_taken(server)
        if verb == 'come':
            return future.come(uuid, spec, target)
        if verb == 'claim':
            return future.allocate(uuid, spec, target.allocation_candidates[0])
        if verb == 'move':
            return future.move(uuid, spec, target, node, mine)
        if verb == 'evacuate':
            return future.evacuate(uuid, spec, target, node)
        if verb == 'leave':
            return future.leave(uuid, spec, node, mine) is None
        self.cloud.under_way = {uuid: {'hosta', 'hostb', 'gone'}}
        return future.count_under_way() is None

    def tell(self, future):
        """Return what has changed, as :data:`STEPS`."""
        client, hosts, held = self.cloud.client, [], []
        for uuid in sorted(future.touched):
            servers, *numbers = self.cloud.describe()[uuid][:3]
            free = client.ledger.get_free(uuid, 'VCPU')
            hosts.append(f'{uuid} {"+".join(servers) or "-"}')
            hosts[-1] += ' {} {} {}'.format(*numbers, free)
        for uuid in BEFORE:
            found = client.get_allocs_for_consumer(process.context(), uuid)
            if names := ' '.join(sorted(found['allocations'])):
                held.append(f'{uuid}: {names}')
        hosts, held = ', '.join(hosts), ', '.join(held)
        return f'{hosts} | {held} | {"".join(sorted(future.vacated))}'.strip()


# What happens; of each host that is another then its servers, their number,
# what is free of memory and CPUs; what servers hold; which hosts they left.
STEPS = """
come new b
    b new 1 936 3 | one: a, new: b |
move one b
    a - 0 1064 4, b one 1 936 3 | one: b | a
# It leaves where it came to, with what it got there.
move one b, move one c
    a - 0 1064 4, b - 0 1000 4, c one 1 936 3 | one: c | ab
move one b, move one a
    a one 1 1000 3, b - 0 1000 4 | one: a | ab
# It keeps what it has of its host.
evacuate one b
    b one 1 936 3 | one: a b |
leave one
    a - 0 1064 4 |  | a
move one b, leave one
    a - 0 1064 4, b - 0 1000 4 |  | ab
# In placement alone.
claim new b 3, not claim old b 3
    | one: a, new: b |
# It is on both hosts, and claims nothing.
migrate one
    b one 0 1000 4 | one: a |
# Where a claim fails nothing has changed, and it may go elsewhere.
come old b 4, not come new b
    b old 1 936 0 | one: a, old: b |
come old b 4, not evacuate one b
    b old 1 936 0 | one: a, old: b |
come old b 4, not move one b
    b old 1 936 0 | one: a, old: b |
come old b 4, not move one b, move one c
    a - 0 1064 4, b old 1 936 0, c one 1 936 3 | one: c, old: b | a
# In a fork on top of another what came before counts.
come new b 3, (, not move one b 2
    | one: a, new: b |
come new b 3, (, move one c, )
    b new 1 936 1 | one: a, new: b |
come new b 3, (, migrate one, )
    b new 1 936 1 | one: a, new: b |
come new b 3, (, not move one b 2, move one c, keep
    a - 0 1064 4, b new 1 936 1, c one 1 936 3 | one: c, new: b | a
# It goes on from there, and another trial leaves nothing.
come new b 3, (, move one c, keep, (, move one a, ), move one a
    a one 1 1000 3, b new 1 936 1, c - 0 1000 4 | one: a, new: b | ac
# One that is kept in one that is open, and in one that is not.
come new b 3, (, move one c, (, move one a, keep
    a one 1 1000 3, c - 0 1000 4 | one: a, new: b | ac
come new b 3, (, move one c, (, move one a, keep, ), move one c
    a - 0 1064 4, b new 1 936 1, c one 1 936 3 | one: c, new: b | a
"""


class StepsTestCase(ForkTestCase):
    def test_what_has_changed(self):
        lines = [one for one in STEPS.splitlines() if one and one[0] != '#']
        for steps, expected in zip(lines[::2], lines[1::2], strict=True):
            self.build()
            with self.forks(steps) as future:
                self.assertEqual(expected.strip(), self.tell(future), steps)

    def test_nothing_is_left_after_an_error(self):
        for step in ('come new b', 'evacuate one b', 'migrate one'):
            before = self.describe()
            with contextlib.suppress(ZeroDivisionError), self.forks(step):
                now = self.describe()
                for old, new in zip(before, now, strict=True):
                    self.assertNotEqual(old, new)
                raise ZeroDivisionError
            self.assertEqual(before, self.describe())

    def test_where_servers_are(self):
        """And the hosts of a group with the members ``new`` and ``one``."""
        both = 'come new b, (, move one c'
        under_way = {'hosta', 'hostb', 'gone'}
        for steps, expected, places in (
            ('come new b', ['hosta', 'hostb'], {'new': {'hostb'}}),
            (both, ['hostb', 'hostc'], {'new': {'hostb'}, 'one': {'hostc'}}),
            ('leave one', [], {'one': set()}),
            ('migrate one', ['hosta', 'hostb'], {'one': under_way}),
            # None of its members moved.
            ('come old b', ['there'], {'old': {'hostb'}}),
        ):
            self.build()
            group = self.spec.instance_group = objects.InstanceGroup(
                members=['new', 'one'], hosts=['there']
            )
            with self.forks(steps) as future:
                self.assertEqual(['there'], group.hosts)
                future.correct_group(group)
                self.assertEqual(expected, group.hosts)
                future.correct_group(None)
                found = sources.current.place(BEFORE)
                self.assertEqual(BEFORE | places, found)
                # nova's databases do not know who came in a fork.
                found = sources.current.place({}, ['new', 'nobody'])
                new = {uuid: places[uuid] for uuid in places if uuid == 'new'}
                self.assertEqual(new, found)

    def test_what_is_known_is_not_read(self):
        """What servers hold of a host, in all forks on top, too."""
        get_held = self.cloud.providers.get_held
        held, read = get_held('a'), []
        self.cloud.providers.get_held = lambda node: (
            read.append(node) or get_held(node)
        )
        for told in (held, None):
            with self.cloud.fork() as future:
                if told:
                    future.tell_held('a', told)
                with self.forks('move one b'):
                    self.assertEqual([] if told else ['a'], read)

    def test_shared_disks(self):
        """One that moves takes its 20 GB of 30 twice, for a while."""
        for steps, held, free, vacated in (
            ('not move one b 1 20', 'one: a disks', 10, ''),
            ('move one b 1 10', 'one: b disks', 20, 'a'),
            ('evacuate one b 1 20', 'one: a b disks', 10, ''),
            # Other hosts may give what is given back.
            ('leave one', '', 30, 'abcd'),
        ):
            self.build()
            self.server.add('disks', traits=[clouds.SHARES], DISK_GB=30)
            self.server.hold('one', a={'VCPU': 1}, disks={'DISK_GB': 20})
            with self.forks(steps) as future:
                found = [one.strip() for one in self.tell(future).split('|')]
                self.assertEqual([held, vacated], found[1:])
                ledger = self.cloud.client.ledger
                self.assertEqual(free, ledger.get_free('disks', 'DISK_GB'))
                known = dict.fromkeys('abcd')
                self.assertEqual({*vacated}, future.find_openable(known))

    def test_odd_allocations(self):
        # Placement takes what nova would write of its host for no amount.
        self.server.providers['a'].limits = {'max_unit': 63}
        for step in ('not move one b', 'not evacuate one b'):
            with self.forks(step) as future:
                self.assertEqual('| one: a |', self.tell(future))
        # It has none: nova healed no allocation of it yet.
        del self.server.held['one']
        with self.forks('not move one b 5, move one b') as future:
            self.assertIn('| one: b |', self.tell(future))

    def test_what_placement_is_asked(self):
        """All that a host's servers hold at once, and nothing of new ones."""
        self.servers['two'] = self.cloud.stand('two', 'a')
        asked = self.server.asked
        for steps in (
            'come new b, move one c, move one b, evacuate new c',
            'evacuate one b, (, evacuate two c, keep',
        ):
            asked.clear()
            with self.forks(steps):
                self.assertEqual(1, '\n'.join(asked).count('/a/allocations'))
                each = [one for one in asked if one[:13] == '/allocations/']
                self.assertEqual([], each)
        # Of a host without a compute node each is asked about.
        self.servers['one'] = None
        with self.forks('evacuate one b') as future:
            self.assertIn('/allocations/one', asked)
            self.assertIn('| one: a b |', self.tell(future))

    def test_instances_load_their_fields(self):
        """As nova-scheduler's do; those of a server that comes have none."""
        image = objects.ImageMeta(properties=objects.ImageMetaProps())
        self.spec.image = image
        for steps, host in (
            ('come new b', 'b'),
            # It is the same one.
            ('come new b, evacuate new c', 'c'),
            ('move one b', 'b'),
            ('migrate one', 'b'),
        ):
            uuid = steps.split()[1]
            with self.forks(steps):
                found = self.cloud.states[host].instances[uuid]
                [found] = objects.InstanceList(objects=[found]).objects
                self.assertEqual(uuid, found.uuid)
                self.assertIs(clouds.CCTXT, found._context)
                if uuid == 'new':
                    self.assertIs(image, found.image_meta)

    def test_the_limits_of_the_filters(self):
        """nova consumes NUMA cells by them; they end with the claim."""
        target, limits = self.cloud.find_target('b'), []
        target.limits = {'numa_topology': 'cells'}
        take = mock.Mock(side_effect=lambda one, *_: limits.append(one.limits))
        self.enterContext(mock.patch.object(claims, 'consume', take))
        with self.cloud.fork() as future:
            future.come('new', self.spec, target)
            self.assertEqual({}, self.cloud.states['b'].limits)
        self.assertEqual([target.limits], limits)

    def test_nodes_of_one_nova_compute(self):
        """A server counts for each of them, as nova counts it (ironic)."""
        for uuid, host in (('e', 'hosta'), ('f', 'hostb')):
            self.cloud.add_node(uuid, host)
        self.cloud.states['e'].instances['one'] = objects.Instance(uuid='one')
        for steps, expected in (
            # Of the nodes only one has less room.
            ('move one b',
             'a - 0 1064 4, b one 1 936 3, e - 0 1000 4, f one 0 1000 4'),
            ('move one e', 'a - 0 1064 4, e one 1 936 3'),
            ('leave one', 'a - 0 1064 4, e - 0 1000 4'),
        ):  # fmt: skip
            with self.forks(steps) as future:
                hosts, _, _ = self.tell(future).partition(' |')
                self.assertEqual(expected, hosts)

    def test_versions(self):
        """A number is never another state's, in another fork either."""
        known = []
        for _ in range(2):
            for steps in ('come new b', 'come new b, come old b'):
                with self.forks(steps):
                    known.append(self.cloud.versions['b'])
        self.assertEqual(4, len({*known}))

    def test_version_of_all(self):
        """It is another after each change, and the same where none was."""
        with self.cloud.fork() as future:
            self.assertEqual(0, future.version)
            known = [0]
            for verb, *words in (
                ('come', 'new', 'b'),
                ('claim', 'more', 'b'),
                ('move', 'one', 'b'),
                ('leave', 'x'),
            ):
                self.go(future, verb, *words)
                known.append(future.version)
            self.assertEqual(sorted({*known}), known)
            with self.cloud.fork() as trial:
                self.assertEqual(known[-1], trial.version)
                self.go(trial, 'come', 'other', 'c')
                self.assertLess(known[-1], trial.version)
                self.assertEqual({*'abcd'}, trial.all_touched)
            found = future.version, future.all_touched
            self.assertEqual((known[-1], {*'abd'}), found)
            with self.cloud.fork() as trial:
                self.go(trial, 'come', 'other', 'c')
                trial.keep()
            found = future.version, future.all_touched
            self.assertEqual((trial.version, {*'abcd'}), found)


class CandidatesTestCase(ForkTestCase):
    """Placement does not offer host d, which is full."""

    def ask(self, future, specs=(), cpus=2, memory=0, **destination):
        """Return what each candidate is made of, and the answer."""
        spec = clouds.make_spec(cpus)
        spec.flavor.memory_mb = memory
        spec.flavor.extra_specs = dict(specs)
        if destination:
            wanted = objects.Destination(**destination)
            spec.requested_destination = wanted
        ctxt = process.context()
        forms = query.forms(ctxt, spec, self.cloud)
        answer = future.get_candidates(ctxt, forms)
        self.unknown = ''.join(future.find_unknown(forms))
        found = []
        for one in answer.requests:
            given, made_of = {}, one['allocations']
            for its in made_of.values():
                given |= its['resources']
            if 'resources1:CUSTOM_A' not in specs:
                self.assertEqual(forms[0].merged_resources(), given)
            self.assertEqual({'': [*made_of]}, one['mappings'])
            self.assertLessEqual({*made_of}, {*answer.summaries})
            found.append(' '.join(sorted(made_of)))
        return found, answer

    def test_what_a_fork_opens(self):
        disk, group = {'resources:DISK_GB': '1'}, {'resources1:CUSTOM_A': '1'}
        needs, shuns = (
            {'trait:CUSTOM_T': word} for word in ('required', 'forbidden')
        )
        for steps, cpus, specs, limits, expected, unknown in (
            # What happens, what is asked for, what d gives to one server at
            # most; the candidates, and of whom nobody knows.
            ('', 2, {}, {}, 'abc', ''),
            ('leave z', 2, {}, {}, 'abcd', ''),
            ('leave z, (', 2, {}, {}, 'abcd', ''),
            ('leave x, leave y', 2, {}, {}, 'abcd', ''),
            ('leave x', 2, {}, {}, 'abc', ''),
            ('leave z, come new d', 2, {}, {}, 'abc', ''),
            # Placement offers it anyway, and it is one once.
            ('leave z', 0, {}, {}, 'abcd', ''),
            ('leave z', 2, shuns, {}, 'abcd', ''),
            ('leave z', 2, needs, {}, 'abc', ''),
            # No provider of the host has it.
            ('leave z', 2, disk, {}, 'abc', ''),
            ('leave z', 2, group, {}, 'abc', 'd'),
            ('leave x, leave z', 3, {}, {'max_unit': 2}, 'abc', ''),
            ('leave z', 1, {}, {'min_unit': 2}, 'abc', ''),
            ('leave z', 1, {}, {'step_size': 2}, 'abc', ''),
        ):
            self.build()
            self.server.providers['d'].limits = limits
            for host in 'abc':
                provider = self.server.providers[host]
                provider.inventory['DISK_GB'] = 9
                provider.traits = {'CUSTOM_T'} if specs == needs else set()
            with self.forks(steps) as future:
                found, _ = self.ask(future, specs, cpus, memory=not cpus)
                found = ''.join(found), self.unknown
                self.assertEqual((expected, unknown), found, (steps, specs))

    def test_what_other_providers_give(self):
        """The disks are in aggregate B, all else is in A."""
        disks = {'resources:DISK_GB': '3'}
        both, of_all = ['d gpu1', 'd gpu2'], ['d disks gpu1', 'd disks gpu2']
        for specs, destination, expected in (
            ({}, {}, both),
            ({'trait:CUSTOM_T': 'required'}, {}, both[1:]),
            ({'trait:CUSTOM_T': 'forbidden'}, {}, both[:1]),
            ({}, {'host': 'hostd'}, both),
            ({}, {'forbidden_aggregates': {'A'}}, []),
            (disks, {}, of_all),
            # What hosts share is of no tree.
            (disks, {'host': 'hostd'}, []),
            (disks, {'aggregates': ['A']}, []),
            (disks, {'aggregates': ['A,B']}, of_all),
            (disks, {'forbidden_aggregates': {'B'}}, []),
            ({'resources:DISK_GB': '31'}, {}, []),
        ):
            self.build()
            self.server.add('gpu1', 'd', VGPU=1)
            self.server.add('gpu2', 'd', traits=['CUSTOM_T'], VGPU=1)
            members = {'A': {*self.server.providers}, 'B': {'disks'}}
            self.server.add('disks', traits=[clouds.SHARES], DISK_GB=30)
            members['all'] = {*self.server.providers}
            self.server.members = members
            asked = {'resources:VGPU': '1', **specs}
            with self.forks('leave z') as future:
                found, _ = self.ask(future, asked, **destination)
                self.assertEqual(expected, found, (specs, destination))

    def test_a_host_of_which_placement_offers_another_provider(self):
        """One device was free, and a server gives the other one back."""
        for name in ('gpu1', 'gpu2'):
            self.server.add(name, 'd', VGPU=1)
        self.server.hold('z', d={'VCPU': 1}, gpu2={'VGPU': 1})
        answer = types.SimpleNamespace(
            requests=[clouds.make_request(d={'VCPU': 1}, gpu1={'VGPU': 1})],
            summaries={'d': clouds.make_summary(VCPU=(4, 3)), 'gpu1': None},
        )
        self.cloud.providers.get_candidates = lambda *_: answer
        asked = {'resources:VGPU': '1'}, 1
        with self.forks('') as future:
            found = self.ask(future, *asked)
            self.assertEqual((['d gpu1'], answer), found)
        with self.forks('leave z') as future:
            found, now = self.ask(future, *asked)
            self.assertEqual(['d gpu1', 'd gpu2'], found)
            self.assertEqual('d', now.summaries['gpu2']['root_provider_uuid'])

    def test_what_a_fork_fills(self):
        """Another request may have the same answer, which stays."""
        with self.forks('come new c 2, come old b 3') as future:
            found, answer = self.ask(future)
            fitting, full = future.leave_out_full(answer)
            self.assertEqual({'b': ['VCPU']}, full)
            self.assertEqual([*'ac'], [*fitting.summaries])
            left = [[*one['allocations']] for one in fitting.requests]
            self.assertEqual([['a'], ['c']], left)
            self.assertEqual((found, answer), self.ask(future))
            self.assertEqual(3, len(answer.summaries))
            # A host with another candidate is not full.
            answer.requests[:] = [
                clouds.make_request(b={'VCPU': cpus}) for cpus in (2, 1)
            ]
            fitting, full = future.leave_out_full(answer)
            found = ({}, fitting.requests)
            self.assertEqual((full, answer.requests[1:]), found)
