# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import ddt
from keystoneauth1 import exceptions as ks_exc
from nova import objects
from nova.scheduler.client import report
import testtools

from nova_ext_sched import waiting
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import query
from tests.unit.dryrun.cloud import clouds
from tests.unit.dryrun.cloud.test_query import Form

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


@ddt.ddt
class ReportClientTestCase(testtools.TestCase):
    def get(self, answer, *further, url='/traits'):
        client = object.__new__(placement.ReportClient)
        with mock.patch(NOVA_GET, side_effect=[answer, *further]):
            return client, client.get(url)

    @ddt.data('post', 'put', 'delete')
    def test_it_writes_nothing(self, method):
        client = object.__new__(placement.ReportClient)
        nova = 'nova.scheduler.client.report.SchedulerReportClient'
        with mock.patch(f'{nova}.{method}') as write:
            error = self.assertRaises(
                RuntimeError, getattr(client, method), '/traits/X', {}
            )
        self.assertIn('got a write to /traits/X', str(error))
        write.assert_not_called()

    def test_it_has_every_way_to_write(self):
        """Of nova's client, and of the adapter that it hands on."""
        ways = {
            name
            for name in vars(report.SchedulerReportClient)
            if name in ('post', 'put', 'patch', 'delete')
        }
        self.assertEqual({'post', 'put', 'delete'}, ways)
        self.assertLessEqual(ways, {*vars(placement.ReportClient)})

    def test_a_query_that_placement_refuses(self):
        """Of whatever length: it is of no use to ask again."""
        for url in ('/traits', LONG):
            answer = response(400, own(' no\n'))
            client, found = self.get(answer, url=url)
            self.assertIs(answer, found)
            self.assertEqual('400 no', client.refusal)

    @ddt.data(
        ('/traits', response(414, {}, '<html>')),
        ('/traits', response(431, ValueError('no JSON'), '<html>')),
        (LONG, response(413, own('too long <html>'))),
        # A server may answer these to a long one, if not to a short one.
        (LONG, response(400, {}, '<html>'), response(200, {})),
        (LONG, response(500, [], '<html>'), response(200, {})),
        (LONG, response(502, {}, '<html>'), response(200, {})),
        (LONG, ks_exc.ConnectFailure('closed'), response(200, {})),
    )
    @ddt.unpack
    def test_a_query_that_is_too_long(self, url, *answers):
        error = self.assertRaises(
            placement.QueryTooLong, self.get, *answers, url=url
        )
        self.assertEqual('query length', error.kind)
        self.assertIn(f'{len(url)} characters are too many', error.reason)
        said = 'closed' if error.__cause__ else '<html>'
        self.assertIn(said, error.detail)

    @ddt.data('/traits', LONG)
    def test_a_query_that_placement_fails(self, url):
        """As MariaDB does with a join of more than 61 tables."""
        answer = response(500, own('(1116, "Too many tables")\n[SQL: SELE'))
        error = self.assertRaises(
            placement.QueryRefused,
            self.get,
            answer,
            response(200, {}),
            url=url,
        )
        self.assertEqual(
            ('query refused', 'placement answers 500 (1116, "Too many tables"'
             ')', ''),
            (error.kind, error.reason, error.detail),
        )  # fmt: skip

    @ddt.data(
        (response(503, {}, '<html>'), response(503, {})),
        (response(502, {}, '<html>'), response(503, {})),
        (response(500, own('gone')), response(500, own('gone'))),
        # It says what is wrong with a query before it reads anything.
        (response(500, own('gone')), response(400, own('no'))),
        (ks_exc.ConnectFailure('x'), ks_exc.ConnectFailure('x')),
        # What no server says of the length.
        (response(504, {}, '<html>'),),
        (response(401, {}, '<html>'),),
        (ks_exc.ConnectTimeout('slow'),),
    )
    @ddt.unpack
    def test_a_long_query_while_placement_is_away(self, *answers):
        error = self.assertRaises(
            placement.PlacementFailed, self.get, *answers, url=LONG
        )
        self.assertIs(placement.PlacementFailed, type(error))

    @ddt.data(
        (response(503, ValueError('no JSON'), 'busy'), '503 busy'),
        (response(400, {}, 'no JSON'), '400 no JSON'),
        (ks_exc.ConnectFailure('no route'), 'ConnectFailure: no route'),
    )
    @ddt.unpack
    def test_a_fault(self, answer, cause):
        error = self.assertRaises(placement.PlacementFailed, self.get, answer)
        self.assertEqual(
            f'[placement] in nova.conf: expected an answer to GET /traits, '
            f'got: {cause}',
            str(error),
        )


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
        found = self.ask(
            ks_exc.ConnectFailure('refused'),
            ks_exc.ConnectFailure('refused'),
            response(503, ValueError('no JSON'), 'busy'),
            response(200, {'traits': []}),
        )
        self.assertEqual({'traits': []}, found)
        self.assertEqual(2, len(self.said))

    def test_what_is_an_answer(self):
        for answer in (
            response(401, {}, '<html>'),
            response(400, ValueError('no JSON'), 'no'),
            ks_exc.Unauthorized('who'),
        ):
            self.assertRaises(placement.PlacementFailed, self.ask, answer)
            self.assertEqual([], self.said)


@ddt.ddt
class LedgerTestCase(testtools.TestCase):
    """What nova's client reads and writes while a fork is open."""

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud()
        self.cloud.stand('one', 'a')
        self.client = self.cloud.client
        self.asked = self.cloud.server.asked

    def test_allocations_are_the_ledgers(self):
        body = {'allocations': {}, 'consumer_generation': 1}
        other = {**body, 'consumer_generation': None}
        with self.cloud.fork():
            self.client.put('/allocations/one', body, version='1.36')
            found = self.client.get('/allocations/one', '1.28').json()
            self.assertEqual({}, found['allocations'])
            self.client.post('/allocations', {'two': other}, version='1.28')
            # What placement has is read all the same.
            found = self.client.read_allocations('one')
            self.assertEqual({'a'}, {*found['allocations']})
            number = len(self.asked)
            # And what is no allocation is placement's.
            self.client.get('/resource_providers/a/inventories')
            self.assertEqual(number + 1, len(self.asked))
        found = self.client.get('/allocations/one').json()
        self.assertEqual({'a'}, {*found['allocations']})

    @ddt.data(
        ('put', '/allocations/one'),
        ('post', '/allocations'),
        ('put', '/traits/X'),
        ('put', '/allocations'),
        ('post', '/allocations/one'),
        ('post', '/reshaper'),
        ('delete', '/allocations/one'),
    )
    @ddt.unpack
    def test_nothing_else_is_written(self, method, url):
        write = getattr(self.client, method)
        if (method, url) in WRITTEN:
            self.assertRaises(RuntimeError, write, url, {})
            return
        with self.cloud.fork():
            self.assertRaises(RuntimeError, write, url, {})

    def test_allocations_that_cannot_be_read(self):
        gone = response(404, {}, 'gone')
        with mock.patch(NOVA_GET, return_value=gone):
            error = self.assertRaises(
                placement.PlacementFailed, self.client.read_allocations, 'one'
            )
        self.assertIn('GET /allocations/one, got: gone', str(error))


# In a fork, as nova's client claims.
WRITTEN = {('put', '/allocations/one'), ('post', '/allocations')}


class Client:
    """Answers GET /resource_providers from a list; counts the questions."""

    #: UUID of the provider, of its root, and what it has.
    providers = (
        ('r1', 'r1', {'VCPU', 'in:a'}),
        ('n1', 'r1', {'T', 'PGPU'}),
        ('r2', 'r2', {'VCPU', 'T', 'in:s'}),
        ('r3', 'r3', set()),
        # The aggregates of a host are those of its root.
        ('n3', 'r3', {'in:a'}),
        ('s', 's', {'DISK', 'MISC_SHARES_VIA_AGGREGATE', 'in:s'}),
    )

    unknown = None
    aggregates = ('s',)

    def __init__(self):
        self.asked = []

    def get(self, url, version):
        self.asked.append(url)
        if url.endswith('/aggregates'):
            return response(200, {'aggregates': self.aggregates})
        if self.unknown and self.unknown in url:
            return response(400, {'errors': []})
        params = placement.parse.parse_qsl(url.partition('?')[2])
        # Placement's list of providers has no root_required.
        assert {key for key, _ in params} <= {
            'resources',
            'required',
            'member_of',
        }, params
        wanted = {value for _, value in params}
        return response(
            200,
            {
                'resource_providers': [
                    {'uuid': uuid, 'root_provider_uuid': root}
                    for uuid, root, has in self.providers
                    if wanted <= has
                ]
            },
        )


HOSTS = {'r1', 'r2', 'r3', 's'}


@ddt.ddt
class ProvidersTestCase(testtools.TestCase):
    @ddt.data(
        # A resource or trait may stand anywhere in the tree.
        ('resources', 'VCPU', {'r1', 'r2'}),
        ('required', 'T', {'r1', 'r2'}),
        ('group', '1: resources=PGPU&required=T', {'r1'}),
        # A trait of the root, and aggregates, on the root alone.
        ('root_required', 'T', {'r2'}),
        ('member_of', 'in:a', {'r1'}),
        # What a sharing provider has, its aggregate's members have.
        ('resources', 'DISK', {'r2', 's'}),
        # What is forbidden is asked of the root.
        ('root_required', '!T', HOSTS - {'r2'}),
        ('member_of', '!in:a', HOSTS - {'r1'}),
    )
    @ddt.unpack
    def test_lacking(self, key, value, satisfying):
        providers = placement.Providers(Client())
        self.assertEqual(
            HOSTS - satisfying,
            providers.find_lacking(query.Part(key, value), HOSTS),
        )

    def test_roots(self):
        providers = placement.Providers(Client())
        self.assertEqual(HOSTS, providers.roots())
        # n1 is within r1.
        self.assertEqual({'r2'}, providers.roots(('required', 'T')))

    def test_what_placement_does_not_know_nothing_has(self):
        client = Client()
        client.unknown = 'CUSTOM_GONE'
        providers = placement.Providers(client)
        self.assertEqual(
            HOSTS,
            providers.find_lacking(
                query.Part('required', 'CUSTOM_GONE'), HOSTS
            ),
        )
        self.assertEqual(
            set(),
            providers.find_lacking(
                query.Part('required', '!CUSTOM_GONE'), HOSTS
            ),
        )

    def test_sharing_provider_without_an_aggregate(self):
        client = Client()
        client.aggregates = []
        self.assertEqual({}, placement.Providers(client).served)

    def test_each_question_is_asked_once(self):
        client = Client()
        providers = placement.Providers(client)
        for _ in range(3):
            providers.find_lacking(query.Part('resources', 'VCPU'), HOSTS)
        self.assertEqual(len(set(client.asked)), len(client.asked))

    def test_what_a_host_has(self):
        """Placement is asked once; a provider that is gone has nothing."""
        inventory = {
            'total': 9,
            'reserved': 1,
            'allocation_ratio': 1.5,
            'max_unit': 9,
        }
        client = mock.Mock()
        client.get.side_effect = [
            response(200, {'inventories': {'VCPU': inventory}}),
            response(200, {'usages': {'VCPU': 12}}),
            response(404, {}),
            response(404, {}),
        ]
        providers = placement.Providers(client)
        for _ in range(2):
            found = providers.get_inventories('h1')['VCPU']
            self.assertEqual((12, 12), (found['capacity'], found['used']))
            self.assertEqual(9, found['max_unit'])
        self.assertEqual({}, providers.get_inventories('gone'))

    def test_equal_queries_are_asked_once(self):
        client = mock.Mock()
        client.get_allocation_candidates.return_value = ([], {}, '1.36')
        providers = placement.Providers(client)
        count = client.get_allocation_candidates
        for number, text in enumerate('aabab', 1):
            providers.get_candidates(mock.sentinel.ctxt, [Form(text)])
            self.assertEqual(min(number, 2) - (number == 2), count.call_count)

    @ddt.data(
        # Allocation requests in each answer, and how many answers are kept.
        (1, 7),
        (placement._MOST_REQUESTS // 2, 2),
        (placement._MOST_REQUESTS // 2 + 1, 2),
        (placement._MOST_REQUESTS, 1),
    )
    @ddt.unpack
    def test_answers_that_are_kept(self, requests, kept):
        client = mock.Mock()
        client.get_allocation_candidates.return_value = (
            [mock.sentinel.request] * requests,
            {},
            '1.36',
        )
        providers = placement.Providers(client)
        most = 0
        for number in range(7):
            providers.get_candidates(mock.sentinel.ctxt, [Form(str(number))])
            most = max(most, len(providers._answers))
        self.assertEqual(kept, most)


class CandidatesTestCase(testtools.TestCase):
    """Placement's answers to one form, or two."""

    def candidates(self, *answers, limit=None):
        client = mock.Mock(refusal='400 no')
        client.get_allocation_candidates.side_effect = answers
        return placement.Candidates(
            mock.sentinel.ctxt, client, [Form(limit=limit) for _ in answers]
        )

    def test_both_forms_count(self):
        found = self.candidates(
            (['a'], {'h1': 1}, '1.36'), (['b'], {'h2': 2}, '1.36')
        )
        self.assertEqual(['a', 'b'], found.requests)
        self.assertEqual({'h1': 1, 'h2': 2}, found.summaries)
        self.assertEqual([], found.refusals)
        self.assertFalse(found.is_full)

    def test_one_is_refused(self):
        found = self.candidates((None, None, None), (['b'], {'h2': 2}, '1.36'))
        self.assertEqual(['400 no'], found.refusals)
        self.assertEqual(['b'], found.requests)

    def test_as_many_as_the_limit_may_be_cut(self):
        for limit, expected in ((1, True), (2, True), (3, False)):
            found = self.candidates(([1, 2], {}, ''), limit=limit)
            self.assertIs(expected, found.is_full)


class RoomTestCase(testtools.TestCase):
    """Host a with a device, and disks that all hosts share."""

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud()
        self.server = self.cloud.server
        self.server.add('nic', 'a', NET=9)
        self.server.add('disks', traits=[clouds.SHARES], DISK_GB=30)
        self.providers = self.cloud.providers

    def test_what_it_said_last(self):
        """An answer's summaries, or else the provider itself, once."""
        one = self.providers.get_room('a')['VCPU']
        self.assertEqual((4, 0), (one['capacity'], one['used']))
        self.server.hold('one', a={'VCPU': 1})
        self.assertEqual(0, self.providers.get_room('a')['VCPU']['used'])
        form = mock.Mock(_limit=None)
        form.to_querystring.return_value = 'resources=VCPU:1'
        client, answer = self.cloud.client, self.server.get
        client.get_allocation_candidates = lambda _, form: (
            *answer(f'/allocation_candidates?{form.to_querystring()}')
            .json()
            .values(),
            None,
        )
        self.providers.get_candidates(None, [form])
        self.assertEqual(1, self.providers.get_room('a')['VCPU']['used'])

    def test_what_the_servers_of_a_host_hold(self):
        """And what they hold of what others share, which is read once."""
        self.server.hold('one', a={'VCPU': 1}, disks={'DISK_GB': 1})
        self.server.hold('two', nic={'NET': 1})
        self.server.hold('three', b={'VCPU': 1}, disks={'DISK_GB': 2})
        for host, expected in (
            ('a', {'one': {'a', 'disks'}, 'two': {'nic'}}),
            ('b', {'three': {'b', 'disks'}}),
            ('c', {}),
        ):
            held = self.providers.get_held(host)
            self.assertEqual(
                expected,
                {uuid: {*one['allocations']} for uuid, one in held.items()},
            )
        url = '/resource_providers/disks/allocations'
        self.assertEqual(1, self.server.asked.count(url))
