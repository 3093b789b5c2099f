# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.cmd.explain import query

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
        ('s', 's', {'DISK', 'MISC_SHARES_VIA_AGGREGATE', 'in:s'}),
    )

    def __init__(self):
        self.asked = []

    def get(self, url, version):
        self.asked.append(url)
        if url.endswith('/aggregates'):
            return Response({'aggregates': ['s']})
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
    status_code = 200

    def __init__(self, body):
        self._body = body

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

    def test_each_question_is_asked_once(self):
        client = Client()
        providers = query.Providers(client)
        for _ in range(3):
            providers.find_lacking(query.Part('resources', 'VCPU'), HOSTS)
        self.assertEqual(len(set(client.asked)), len(client.asked))
