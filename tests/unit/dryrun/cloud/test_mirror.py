# SPDX-License-Identifier: Apache-2.0

import types
from unittest import mock
from urllib import parse

import testtools

from nova_ext_sched.dryrun.cloud import mirror
from nova_ext_sched.dryrun.cloud import placement

# Providers of each aggregate. Disk is of a tree of its own, and pf of host1's.
MEMBERS = {'a': {'host1', 'host2'}, 'b': {'host3'}, 'disks': {'disk'}}
ROOTS = {name: name for name in ('host1', 'host2', 'host3', 'disk')}
ROOTS['pf'] = 'host1'


class ReportClientTestCase(testtools.TestCase):
    def get(self, path, *asked, **changes):
        """Ask with a placement that has the aggregates above."""
        self.queries = []
        client = object.__new__(mirror.MirroringClient)
        with (
            mock.patch.object(placement.ReportClient, 'get', self.answer),
            mirror.used(changes),
        ):
            return client.get(f'{path}?{parse.urlencode(asked)}', version='1')

    def answer(self, url, version=None):
        path, _, text = url.partition('?')
        asked = parse.parse_qsl(text)
        self.queries.append(asked)
        found = {*ROOTS}
        for key, value in asked:
            uuids = value.removeprefix('!').removeprefix('in:').split(',')
            if key == 'name':
                found &= {value}
            if key == 'member_of':
                members = set().union(*(MEMBERS.get(u, ()) for u in uuids))
                found &= {*ROOTS} - members if value[0] == '!' else members
        body = {'resource_providers': [{'uuid': one} for one in found]}
        if path == '/allocation_candidates':
            made_of = ('host1', 'pf'), ('host2',), ('host3',)
            requests = [{'allocations': dict.fromkeys(u)} for u in made_of]
            roots = {u: {'root_provider_uuid': ROOTS[u]} for u in ROOTS}
            del roots['disk']
            body = {'allocation_requests': requests}
            body['provider_summaries'] = roots
        return types.SimpleNamespace(status_code=200, json=lambda: body)

    def test_providers(self):
        for value, changes, expected in (
            ('in:a', {'a': {'host3': True}}, {'host1', 'host2', 'host3'}),
            ('in:a', {'a': {'host1': False}}, {'host2'}),
            ('in:a', {'a': {'host3': True, 'host1': False}},
             {'host2', 'host3'}),
            ('in:a,b', {'a': {'host1': False}}, {'host2', 'host3'}),
            ('in:a,b', {'b': {'host3': False}}, {'host1', 'host2'}),
            # It stays in the other one.
            ('in:a,b', {'b': {'host1': True}}, {'host1', 'host2', 'host3'}),
            ('in:a', {'b': {'host1': True}}, {'host1', 'host2'}),
            ('in:new', {'new': {'host1': True}}, {'host1'}),
            # nova-api mirrors no host that placement does not know.
            ('in:a', {'a': {'host9': True}}, {'host1', 'host2'}),
            ('!in:a', {'a': {'host1': False}},
             {'host1', 'host3', 'disk', 'pf'}),
            ('!in:a,disks', {'a': {'host3': True}}, {'pf'}),
        ):  # fmt: skip
            asked = [('member_of', value)]
            found = self.get('/resource_providers', *asked, **changes)
            found = found.json()['resource_providers']
            self.assertEqual(expected, {one['uuid'] for one in found})

    def test_candidates(self):
        for value, changes, expected in (
            ('in:a', {'a': {'host1': False, 'host3': True}},
             ['host2', 'host3']),
            # The provider inside is of its host's tree.
            ('in:b', {'b': {'host1': True}}, ['host1', 'host3', 'pf']),
            ('!in:a', {'a': {'host1': False}}, ['host1', 'host3', 'pf']),
        ):  # fmt: skip
            for limit, asked in (
                (9, [('member_of', value)]),
                (1, [('member_of', value), ('limit', '1')]),
            ):
                found = self.get('/allocation_candidates', *asked, **changes)
                body = found.json()
                requests = body['allocation_requests']
                uuids = [u for one in requests for u in one['allocations']]
                self.assertEqual({*uuids}, {*body['provider_summaries']})
                self.assertLessEqual(len(requests), limit)
                if limit > 1:
                    self.assertEqual(expected, sorted(uuids))
            self.assertNotIn('limit', dict(self.queries[0]))

    def test_each_parameter_counts(self):
        asked = ('member_of', 'in:a,b'), ('member_of', '!in:a')
        found = self.get('/resource_providers', *asked, a={'host1': False})
        found = found.json()['resource_providers']
        self.assertEqual([{'uuid': 'host3'}], found)

    def test_other_queries(self):
        """They go to placement as they are, and only once."""
        asked = [('member_of', 'in:a'), ('limit', '1'), ('resources', 'x')]
        for changes in ({}, {'b': {'host1': True}}):
            self.get('/allocation_candidates', *asked, **changes)
            self.assertEqual([asked], self.queries)

    def test_placement_refuses(self):
        response = types.SimpleNamespace(status_code=400)
        asked = '/resource_providers', ('member_of', 'in:a')
        with mock.patch.object(self, 'answer', return_value=response):
            found = self.get(*asked, a={'host1': True})
        self.assertIs(response, found)


# The providers that have a trait: pf is below host1.
HAVING = {'A': {'host1'}, 'B': {'host2', 'pf'}}


class TraitsTestCase(testtools.TestCase):
    """What placement answers where providers would have other traits."""

    def get(self, path, traits, *asked):
        client = object.__new__(mirror.MirroringClient)
        with (
            mock.patch.object(placement.ReportClient, 'get', self.answer),
            mirror.used({}, traits),
        ):
            return client.get(f'{path}?{parse.urlencode(asked)}').json()

    def answer(self, url, version=None):
        path, _, text = url.partition('?')
        found = {*ROOTS}
        for key, value in parse.parse_qsl(text):
            self.assertEqual('required', key)
            for one in value.split(','):
                having = HAVING.get(one.lstrip('!'), set())
                found = found - having if one[0] == '!' else found & having
        body = {'resource_providers': [{'uuid': one} for one in found]}
        if path == '/allocation_candidates':
            made_of = ('host1', 'pf'), ('host2',), ('host3',)
            body = {
                'allocation_requests': [
                    {
                        'allocations': dict.fromkeys(one),
                        'mappings': {'': [one[0]], '1': [one[-1]]},
                    }
                    for one in made_of
                ],
                'provider_summaries': {
                    u: {'root_provider_uuid': ROOTS[u]} for u in ROOTS
                },
            }
        return types.SimpleNamespace(status_code=200, json=lambda: body)

    def test_providers(self):
        for value, traits, expected in (
            ('A', {'A': {'host3': True}}, {'host1', 'host3'}),
            ('A', {'A': {'host1': False}}, set()),
            ('NEW', {'NEW': {'host3': True}}, {'host3'}),
            (
                '!B',
                {'B': {'host2': False}},
                {'host1', 'host2', 'host3', 'disk'},
            ),
            # Beside one that does not change.
            ('B,A', {'A': {'host2': True}}, {'host2'}),
        ):
            asked = '/resource_providers', traits, ('required', value)
            found = self.get(*asked)['resource_providers']
            self.assertEqual(expected, {one['uuid'] for one in found})

    def test_candidates(self):
        for key, value, traits, expected in (
            # Of the providers of the group; or of the roots alone.
            ('required', 'A', {'A': {'host3': True}}, ['host1', 'host3']),
            ('required1', 'A', {'A': {'pf': True}}, ['host1']),
            ('required1', 'A', {'A': {'host3': True}}, ['host3']),
            ('root_required', 'A', {'A': {'host2': True}}, ['host1', 'host2']),
            ('root_required', '!B', {'B': {'host2': False}},
             ['host1', 'host2', 'host3']),
            ('root_required', '!B', {'B': {'host3': True}}, ['host1']),
        ):  # fmt: skip
            asked = '/allocation_candidates', traits, (key, value)
            body = self.get(*asked)
            found = [
                [*one['allocations']][0] for one in body['allocation_requests']
            ]
            self.assertEqual(expected, found)
            self.assertEqual(
                {ROOTS[one] for one in found},
                {ROOTS[one] for one in body['provider_summaries']},
            )

    def test_a_limit(self):
        asked = ('required', 'A'), ('limit', '1')
        traits = {'A': {'host3': True}}
        body = self.get('/allocation_candidates', traits, *asked)
        self.assertEqual(1, len(body['allocation_requests']))
