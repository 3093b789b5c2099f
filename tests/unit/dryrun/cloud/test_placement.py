# SPDX-License-Identifier: Apache-2.0

from unittest import mock

from keystoneauth1 import exceptions as ks_exc
from nova import objects
from nova.scheduler.client import report
import testtools

from nova_ext_sched import waiting
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import query
from tests.unit.dryrun.cloud import clouds

objects.register_all()

NOVA_GET = 'nova.scheduler.client.report.SchedulerReportClient.get'
LONG = f'/allocation_candidates?{1000 * "x"}'


def response(status, body, text=''):
    return mock.Mock(
        status_code=status, text=text, json=mock.Mock(side_effect=[body])
    )


def own(detail):
    """Return the body of an error that placement answers."""
    return {'errors': [{'detail': detail}]}


OK, TABLES = response(200, {}), 'too many\n[SQL: SELECT'
PAGE, NO_JSON = '<html>', ValueError('no JSON')
FAILED, REFUSED, LENGTH = (
    placement.PlacementFailed,
    placement.QueryRefused,
    placement.QueryTooLong,
)
# What a query is, what comes of it, and what comes back: for it, and for
# another one.
ANSWERS = (
    (LENGTH, PAGE, '/traits', response(414, {}, PAGE)),
    (LENGTH, PAGE, '/traits', response(431, NO_JSON, PAGE)),
    (LENGTH, PAGE, LONG, response(413, own(f'too long {PAGE}'))),
    # A server may answer these to a long one, if not to a short one.
    (LENGTH, PAGE, LONG, response(400, {}, PAGE), OK),
    (LENGTH, PAGE, LONG, response(500, [], PAGE), OK),
    (LENGTH, PAGE, LONG, response(502, {}, PAGE), OK),
    (LENGTH, 'closed', LONG, ks_exc.ConnectFailure('closed'), OK),
    # As MariaDB does with a join of more than 61 tables.
    (REFUSED, '500 too many', '/traits', response(500, own(TABLES)), OK),
    (REFUSED, '500 too many', LONG, response(500, own(TABLES)), OK),
    # While placement is away.
    (FAILED, PAGE, LONG, response(503, {}, PAGE), response(503, {})),
    (FAILED, PAGE, LONG, response(502, {}, PAGE), response(503, {})),
    (FAILED, 'gone', LONG, response(500, own('gone')), response(500, {})),
    # It says what is wrong with a query before it reads anything.
    (FAILED, 'gone', LONG, response(500, own('gone')), response(400, {})),
    (FAILED, 'x', LONG, ks_exc.ConnectFailure('x'), ks_exc.ConnectFailure()),
    # What no server says of the length.
    (FAILED, PAGE, LONG, response(504, {}, PAGE)),
    (FAILED, PAGE, LONG, response(401, {}, PAGE)),
    (FAILED, 'slow', LONG, ks_exc.ConnectTimeout('slow')),
    (FAILED, '503 busy', '/traits', response(503, NO_JSON, 'busy')),
    (FAILED, '400 no JSON', '/traits', response(400, {}, 'no JSON')),
    (FAILED, 'ConnectFailure: x', '/traits', ks_exc.ConnectFailure('x')),
)


class ReportClientTestCase(testtools.TestCase):
    def get(self, url, *answers):
        client = object.__new__(placement.ReportClient)
        with mock.patch(NOVA_GET, side_effect=answers):
            return client, client.get(url)

    def test_it_has_every_way_to_write(self):
        """Of nova's client, and of the adapter that it hands on."""
        writes = {'post', 'put', 'patch', 'delete'}
        ways = {*vars(report.SchedulerReportClient)} & writes
        self.assertEqual({'post', 'put', 'delete'}, ways)
        self.assertLessEqual(ways, {*vars(placement.ReportClient)})

    def test_a_query_that_placement_refuses(self):
        """Of whatever length: it is of no use to ask again."""
        for url in ('/traits', LONG):
            answer = response(400, own(' no\n'))
            client, found = self.get(url, answer)
            self.assertIs(answer, found)
            self.assertEqual('400 no', client.refusal)

    def test_what_is_no_answer(self):
        for cls, said, url, *answers in ANSWERS:
            error = self.assertRaises(FAILED, self.get, url, *answers)
            self.assertIs(cls, type(error), (url[:9], said))
            expected = {
                FAILED: '[placement] in nova.conf: expected an answer to GET '
                f'{url}, got: {error.cause}',
                REFUSED: f'query refused: placement answers {said}',
                LENGTH: f'query length: {len(url)} characters are too many '
                'for placement or a server in front of it',
            }
            self.assertIn(said, error.cause)
            found = str(error)
            if cls is not FAILED:
                found = f'{error.kind}: {error.reason}'
                self.assertEqual(error.cause * (cls is LENGTH), error.detail)
            self.assertEqual(expected[cls], found)


class PatienceTestCase(testtools.TestCase):
    """A plan of hours is not lost where placement is away for a while."""

    def ask(self, *answers):
        """Return what placement answers, which waits no time."""
        self.said = []
        client = object.__new__(placement.ReportClient)
        client.patience = waiting.Waiting('placement', self.said.append)
        with (
            mock.patch.object(waiting.time, 'sleep'),
            mock.patch(NOVA_GET, side_effect=answers),
        ):
            return client.get('/traits').json()

    def test_it_is_asked_again(self):
        refused, busy = ks_exc.ConnectFailure('x'), response(503, NO_JSON)
        found = response(200, {'traits': []})
        found = self.ask(refused, refused, busy, found)
        self.assertEqual({'traits': []}, found)
        self.assertEqual(2, len(self.said))
        # What is an answer.
        for answer in (
            response(401, {}, PAGE),
            response(400, NO_JSON, 'no'),
            ks_exc.Unauthorized('who'),
        ):
            self.assertRaises(FAILED, self.ask, answer)
            self.assertEqual([], self.said)


class LedgerTestCase(testtools.TestCase):
    """What nova's client reads and writes while a fork is open."""

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud()
        self.cloud.stand('one', 'a')
        self.client = self.cloud.client

    def read(self):
        found = self.client.get('/allocations/one', '1.28').json()
        return ''.join(found['allocations'])

    def test_allocations_are_the_ledgers(self):
        body = {'allocations': {}, 'consumer_generation': 1}
        other = {**body, 'consumer_generation': None}
        with self.cloud.fork():
            self.client.put('/allocations/one', body, version='1.36')
            self.assertEqual('', self.read())
            self.client.post('/allocations', {'two': other}, version='1.28')
            # What placement has is read all the same.
            found = self.client.read_allocations('one')
            self.assertEqual({'a'}, {*found['allocations']})
            # And what is no allocation is placement's.
            url = '/resource_providers/a/inventories'
            self.client.get(url)
            self.assertEqual(url, self.cloud.server.asked[-1])
        self.assertEqual('a', self.read())

    def test_nothing_else_is_written(self):
        for method, url in (
            ('put', '/traits/X'),
            ('put', '/allocations'),
            ('post', '/allocations/one'),
            ('post', '/reshaper'),
            ('delete', '/allocations/one'),
        ):
            write = getattr(self.client, method)
            with self.cloud.fork():
                self.assertRaises(RuntimeError, write, url, {})
        # Nor in no fork.
        urls = {'put': '/allocations/one', 'post': '/allocations'}
        for method, url in urls.items():
            write = getattr(self.client, method)
            self.assertRaises(RuntimeError, write, url, {})

    def test_allocations_that_cannot_be_read(self):
        given = FAILED, self.client.read_allocations, 'one'
        with mock.patch(NOVA_GET, return_value=response(404, {}, 'gone')):
            error = self.assertRaises(*given)
        self.assertIn('GET /allocations/one, got: gone', str(error))


class ProvidersTestCase(testtools.TestCase):
    """Hosts r1 to r3; n1 and n3 are within them, s shares with r2."""

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud('')
        self.server, self.providers = self.cloud.server, self.cloud.providers
        self.server.add('r1', VCPU=1)
        self.server.add('n1', 'r1', traits=['T'], PGPU=1)
        self.server.add('r2', traits=['T'], VCPU=1)
        self.server.add('r3')
        self.server.add('n3', 'r3')
        self.server.add('s', traits=[clouds.SHARES], DISK_GB=1)
        self.server.members = {'a': {'r1', 'n3'}, 's': {'r2', 's'}}
        self.server.refused = 'CUSTOM_GONE'

    def test_hosts_that_have_a_part(self):
        for key, value, expected in (
            # A resource or trait may stand anywhere in the tree.
            ('resources', 'VCPU:1', 'r1 r2'),
            ('required', 'T', 'r1 r2'),
            ('group', '1: resources=PGPU:1&required=T', 'r1'),
            # A trait of the root, and aggregates, on the root alone.
            ('root_required', 'T', 'r2'),
            ('member_of', 'in:a', 'r1'),
            # What a sharing provider has, its aggregate's members have.
            ('resources', 'DISK_GB:1', 'r2 s'),
            # What is forbidden is asked of the root.
            ('root_required', '!T', 'r1 r3 s'),
            ('member_of', '!in:a', 'r2 r3 s'),
            # What placement does not know nothing has.
            ('required', 'CUSTOM_GONE', ''),
            ('required', '!CUSTOM_GONE', 'r1 r2 r3 s'),
        ):
            part, hosts = query.Part(key, value), {'r1', 'r2', 'r3', 's'}
            for _ in range(2):
                lacking = self.providers.find_lacking(part, hosts)
                self.assertEqual({*expected.split()}, hosts - lacking, part)
        # Each question is asked once.
        asked = self.server.asked
        self.assertEqual(len({*asked}), len(asked))

    def test_roots(self):
        self.assertEqual({'r1', 'r2', 'r3', 's'}, self.providers.roots())
        # n1 is within r1.
        self.assertEqual({'r2'}, self.providers.roots(('required', 'T')))

    def test_trees_of_many_hosts_are_read_at_once(self):
        expected = {'r1': {'r1', 'n1'}, 'r2': {'r2'}, 'r3': {'r3', 'n3'}}
        with mock.patch.object(placement, '_ALONE', 2):
            # Those that were asked about before are known.
            for host in ('r1', 'r2', 'r1', 'r2', 'r3', 's'):
                found = self.providers.get_tree(host)
                self.assertEqual(expected.get(host, {'s'}), {*found})
        self.assertEqual(
            ['in_tree=r1', 'in_tree=r2', ''],
            [url.partition('?')[2] for url in self.server.asked],
        )

    def test_sharing_provider_without_an_aggregate(self):
        self.server.members['s'].remove('s')
        self.assertEqual({}, self.providers.served)

    def test_what_a_host_has(self):
        """Placement is asked once."""
        self.server.add('h', VCPU=9)
        limits = {'reserved': 1, 'allocation_ratio': 1.5}
        self.server.providers['h'].limits = limits
        for used, expected in ((12, (12, 12)), (0, (12, 12))):
            self.server.hold('one', h={'VCPU': used})
            found = self.providers.get_inventories('h')['VCPU']
            self.assertEqual(expected, (found['capacity'], found['used']))
            self.assertEqual(9, found['max_unit'])


class CandidatesTestCase(testtools.TestCase):
    """Placement's answers to a request for some CPUs."""

    def build(self, hosts):
        self.cloud = clouds.Cloud(hosts)
        self.asked = self.cloud.server.asked

    def ask(self, cpus=1, limit=None):
        spec, ctxt = clouds.make_spec(cpus), process.context()
        forms = query.forms(ctxt, spec, self.cloud)
        forms[0]._limit = limit
        return self.cloud.providers.get_candidates(ctxt, forms)

    def test_answers_that_are_kept(self):
        """Equal queries are asked once, unless too much is kept."""
        self.enterContext(mock.patch.object(placement, '_MOST_REQUESTS', 6))
        self.enterContext(mock.patch.object(placement, '_MOST_PACKED', 0))
        # The hosts of each answer; how many are kept.
        for hosts, kept in (('a', 6), ('abc', 2), ('abcd', 2), ('abcdef', 1)):
            for number in (kept, kept + 1):
                self.build(hosts)
                for limit in range(number):
                    found = len(self.ask(1, 10 + limit).requests)
                    self.assertEqual(len(hosts), found)
                before = len(self.asked)
                self.ask(1, 10)
                self.assertEqual(number > kept, len(self.asked) > before)

    def test_answers_that_are_packed(self):
        """What is kept no more is not asked again, and is what it was."""
        self.enterContext(mock.patch.object(placement, '_MOST_REQUESTS', 1))
        self.build('abc')
        first = [vars(self.ask(1, 10 + limit)) for limit in range(5)]
        before = len(self.asked)
        again = [vars(self.ask(1, 10 + limit)) for limit in range(5)]
        self.assertEqual(first, again)
        self.assertEqual(before, len(self.asked))

    def test_the_oldest_packed_answer_goes_first(self):
        self.build('abc')
        size = len(self.ask(1, 10).pack()) + 9
        for name, value in ('_MOST_REQUESTS', 1), ('_MOST_PACKED', 2 * size):
            self.enterContext(mock.patch.object(placement, name, value))
        self.build('abc')
        for limit in (10, 11, 12, 13):
            self.ask(1, limit)
        for limit, more in ((12, 0), (13, 0), (11, 1), (10, 1)):
            before = len(self.asked)
            self.ask(1, limit)
            self.assertEqual(more, len(self.asked) - before, limit)

    def test_as_many_as_the_limit_may_be_cut(self):
        for limit, expected in ((1, True), (2, True), (3, False)):
            self.build('ab')
            self.assertIs(expected, self.ask(limit=limit).is_full)

    def test_two_forms(self):
        """Both count; what placement says where it refuses one is kept."""
        refused, one = (None, None, None), (['a'], {'h1': 1}, '')
        other, forms = (['b'], {'h2': 2}, ''), [mock.Mock(_limit=None)] * 2
        for first, requests, refusals in (
            (one, ['a', 'b'], []),
            (refused, ['b'], ['400 no']),
        ):
            client = mock.Mock(refusal='400 no')
            client.get_allocation_candidates.side_effect = [first, other]
            found = placement.Candidates(None, client, forms)
            expected = requests, {**(first[1] or {}), 'h2': 2}, refusals
            found = found.requests, found.summaries, found.refusals
            self.assertEqual(expected, found)

    def test_the_room_that_a_provider_said_last(self):
        """An answer's summaries, or else the provider itself, once."""
        self.build('a')
        steps = (0, False, 0), (1, False, 0), (1, True, 1)
        for hold, answered, used in steps:
            self.cloud.server.hold('one', a={'VCPU': hold})
            if answered:
                self.ask()
            found = self.cloud.providers.get_room('a')['VCPU']
            self.assertEqual((4, used), (found['capacity'], found['used']))

    def test_what_the_servers_of_a_host_hold(self):
        """And what they hold of what others share, which is read once."""
        self.build('abc')
        server = self.cloud.server
        server.add('nic', 'a', NET=9)
        server.add('disks', traits=[clouds.SHARES], DISK_GB=30)
        server.hold('one', a={'VCPU': 1}, disks={'DISK_GB': 1})
        server.hold('two', nic={'NET': 1})
        server.hold('three', b={'VCPU': 1}, disks={'DISK_GB': 2})
        for host, expected in (
            ('a', {'one': {'a', 'disks'}, 'two': {'nic'}}),
            ('b', {'three': {'b', 'disks'}}),
            ('c', {}),
        ):
            held = self.cloud.providers.get_held(host)
            found = {uuid: {*one['allocations']} for uuid, one in held.items()}
            self.assertEqual(expected, found)
        url = '/resource_providers/disks/allocations'
        self.assertEqual(1, self.asked.count(url))

    def test_all_hosts_are_read_at_once(self):
        """What they say is what each says alone, in as few questions."""
        self.build('abcd')
        server, used = self.cloud.server, {'VCPU': 4}
        server.add('nic', 'a', NET=9)
        # d has nothing free of either class.
        for host, more in ('b', {}), ('c', {}), ('d', {'MEMORY_MB': 4096}):
            server.hold(f'on {host}', **{host: {**used, **more}})
        uuids = 'a', 'b', 'c', 'd', 'nic'

        def read(providers):
            return {
                uuid: (
                    {*providers.get_tree(uuid)},
                    {
                        name: (one['capacity'], one['used'])
                        for name, one in providers.get_room(uuid).items()
                    },
                )
                for uuid in uuids[:4]
            }

        alone = read(placement.Providers(self.cloud.client))
        del self.asked[:]
        self.cloud.providers.read_all(['VCPU', 'MEMORY_MB'])
        self.assertEqual(3, len(self.asked), self.asked)
        self.assertEqual(alone, read(self.cloud.providers))
        of_d = [one for one in self.asked[3:] if '/d/' not in one]
        self.assertEqual([], of_d)
        # No question twice.
        del self.asked[:]
        self.cloud.providers.read_all(['VCPU', 'MEMORY_MB'])
        self.assertEqual([], self.asked)
