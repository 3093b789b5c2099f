# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import ddt
import fixtures
from nova import exception as nova_exception
from nova import objects
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched.cmd.explain import query

objects.register_all()

A, B = 'a' * 8, 'b' * 8


@ddt.ddt
class SplitTestCase(testtools.TestCase):
    @ddt.data(
        ('limit=1000&group_policy=none&same_subtree=_a%2C_b', []),
        (
            'resources=VCPU%3A1%2CMEMORY_MB%3A64',
            ['resources=VCPU:1', 'resources=MEMORY_MB:64'],
        ),
        (
            'required=T%2C%21U&root_required=V%2C%21W',
            ['required=T', 'required=!U', 'root_required=V']
            + ['root_required=!W'],
        ),
        (
            f'member_of=in%3A{A}%2C{B}&member_of=%21in%3A{A}%2C{B}',
            [f'member_of=in:{A},{B}', f'member_of=!in:{A}']
            + [f'member_of=!in:{B}'],
        ),
        ('in_tree=x', ['in_tree=x']),
        (
            'resources1=PGPU%3A1&required1=T&resources_port=NET%3A2',
            ['1: resources=PGPU:1&required=T', '_port: resources=NET:2'],
        ),
    )
    @ddt.unpack
    def test_split(self, text, expected):
        self.assertEqual(expected, [str(one) for one in query.split(text)])

    def test_forbidden_aggregates_are_asked_for_at_once(self):
        parts = query.split(f'member_of=%21in%3A{A}%2C{B}&resources=VCPU%3A1')
        self.assertEqual(
            ['resources=VCPU:1', f'member_of=!in:{A},{B}'],
            [str(one) for one in query.merge(parts)],
        )

    def test_required_aggregates_are_parts_of_their_own(self):
        parts = query.split(f'member_of=in%3A{A}&member_of=in%3A{B}')
        self.assertEqual(parts, query.merge(parts))


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
            return Response({'aggregates': self.aggregates})
        if self.unknown and self.unknown in url:
            return Response({'errors': []}, 400)
        params = query.parse.parse_qsl(url.partition('?')[2])
        # Placement's list of providers has no root_required.
        assert {key for key, _ in params} <= {
            'resources',
            'required',
            'member_of',
        }, params
        wanted = {value for _, value in params}
        return Response(
            {
                'resource_providers': [
                    {'uuid': uuid, 'root_provider_uuid': root}
                    for uuid, root, has in self.providers
                    if wanted <= has
                ]
            }
        )


class Response:
    def __init__(self, body, status_code=200):
        self._body = body
        self.status_code = status_code

    def json(self):
        return self._body


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
        providers = query.Providers(Client())
        self.assertEqual(
            HOSTS - satisfying,
            providers.find_lacking(query.Part(key, value), HOSTS),
        )

    def test_roots(self):
        providers = query.Providers(Client())
        self.assertEqual(HOSTS, providers.roots())
        # n1 is within r1.
        self.assertEqual({'r2'}, providers.roots(('required', 'T')))

    def test_what_placement_does_not_know_nothing_has(self):
        client = Client()
        client.unknown = 'CUSTOM_GONE'
        providers = query.Providers(client)
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
        self.assertEqual({}, query.Providers(client).served)

    def test_each_question_is_asked_once(self):
        client = Client()
        providers = query.Providers(client)
        for _ in range(3):
            providers.find_lacking(query.Part('resources', 'VCPU'), HOSTS)
        self.assertEqual(len(set(client.asked)), len(client.asked))

    def test_what_a_host_has(self):
        """Placement is asked once; a provider that is gone has nothing."""
        client = mock.Mock()
        client.get.side_effect = [
            mock.Mock(
                status_code=200,
                json=lambda: {
                    'inventories': {
                        'VCPU': {
                            'total': 9,
                            'reserved': 1,
                            'allocation_ratio': 1.5,
                            'max_unit': 9,
                        }
                    }
                },
            ),
            mock.Mock(status_code=200, json=lambda: {'usages': {'VCPU': 12}}),
        ] + [mock.Mock(status_code=404)] * 2
        providers = query.Providers(client)
        for _ in range(2):
            found = providers.get_inventories('h1')['VCPU']
            self.assertEqual((12, 12), (found['capacity'], found['used']))
            self.assertEqual(9, found['max_unit'])
        self.assertEqual({}, providers.get_inventories('gone'))

    def test_equal_queries_are_asked_once(self):
        client = mock.Mock()
        client.get_allocation_candidates.return_value = ([], {}, '1.36')
        providers = query.Providers(client)
        count = client.get_allocation_candidates
        for number, text in enumerate('aabab', 1):
            providers.get_candidates(mock.sentinel.ctxt, [Form(text)])
            self.assertEqual(min(number, 2) - (number == 2), count.call_count)

    @ddt.data(
        # Allocation requests in each answer, and how many answers are kept.
        (1, 7),
        (query._MOST_REQUESTS // 2, 2),
        (query._MOST_REQUESTS // 2 + 1, 2),
        (query._MOST_REQUESTS - 1, 2),
        (query._MOST_REQUESTS, 1),
        (3 * query._MOST_REQUESTS, 1),
    )
    @ddt.unpack
    def test_answers_that_are_kept(self, requests, kept):
        client = mock.Mock()
        client.get_allocation_candidates.return_value = (
            [mock.sentinel.request] * requests,
            {},
            '1.36',
        )
        providers = query.Providers(client)
        most = 0
        for number in range(7):
            providers.get_candidates(mock.sentinel.ctxt, [Form(str(number))])
            most = max(most, len(providers._answers))
        self.assertEqual(kept, most)


class Form:
    """nova's ResourceRequest."""

    def __init__(self, text='', limit=None, pinned=False):
        self.text = text
        self._limit = limit
        self.cpu_pinning_requested = pinned

    def to_querystring(self):
        return self.text


class CandidatesTestCase(testtools.TestCase):
    """Placement's answers to one form, or two."""

    def candidates(self, *answers, limit=None):
        client = mock.Mock(refusal='400 no')
        client.get_allocation_candidates.side_effect = answers
        return query.Candidates(
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


@ddt.ddt
class FormsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.config = self.useFixture(config_fixture.Config(query.CONF))
        self.pinned = False
        self.asked = []
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.scheduler.utils.resources_from_request_spec', self.make
            )
        )

    def make(self, ctxt, spec_obj, manager, enable_pinning_translate):
        if spec_obj.ignore_hosts:
            raise nova_exception.NoValidHost(reason='no such host')
        spec_obj.force_nodes = ['found']
        self.asked.append(enable_pinning_translate)
        return Form('resources=VCPU%3A1', pinned=self.pinned)

    @ddt.data(
        # Whether CPUs are pinned, whether the second form is off; the forms.
        (False, False, [True]),
        (True, False, [True, False]),
        (True, True, [True]),
    )
    @ddt.unpack
    def test_forms(self, pinned, off, expected):
        self.pinned = pinned
        self.config.config(
            group='workarounds', disable_fallback_pcpu_query=off
        )
        found = query.forms(None, objects.RequestSpec(ignore_hosts=[]), None)
        self.assertEqual(expected, self.asked)
        self.assertEqual(len(expected), len(found))

    def test_parts_leave_the_request_as_it_is(self):
        spec = objects.RequestSpec(ignore_hosts=[], force_nodes=None)
        self.assertEqual(
            [query.Part('resources', 'VCPU:1')],
            query.get_parts(None, spec, None),
        )
        self.assertIsNone(spec.force_nodes)

    def test_no_part_of_a_request_that_names_no_host(self):
        spec = objects.RequestSpec(ignore_hosts=['gone'])
        self.assertEqual([], query.get_parts(None, spec, None))
