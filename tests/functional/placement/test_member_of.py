# SPDX-License-Identifier: Apache-2.0

"""member_of in every form, against a real placement."""

import unittest.mock
from urllib import parse

import ddt

from nova_ext_sched import exception
from nova_ext_sched import objects
from nova_ext_sched.placement import errors
from tests.functional.placement import base

A = 'aaaaaaaa-0000-4000-8000-000000000001'
B = 'bbbbbbbb-0000-4000-8000-000000000002'
C = 'cccccccc-0000-4000-8000-000000000003'
D = 'dddddddd-0000-4000-8000-000000000004'

# The figure of specs/negative-aggregate-membership, section "Nested resource
# providers". A line shares what stands left of it with all of its right.
#
#   ss1     [B] --- cn2     [B]    a sharing storage; a compute node
#                   numa2_1 []     its children
#                   numa2_2 []
#   cn1     [A]
#   numa1_1 [C] --- ss2     [C]    a child of cn1; a sharing storage
#   numa1_2 []                     a child of cn1
FIGURE = {
    'cn1': {'aggregates': [A], 'inventory': {'MEMORY_MB': 64}},
    'numa1_1': {
        'parent': 'cn1',
        'aggregates': [C],
        'inventory': {'VCPU': 8},
    },
    'numa1_2': {'parent': 'cn1', 'inventory': {'VCPU': 8}},
    'cn2': {'aggregates': [B], 'inventory': {'MEMORY_MB': 64}},
    'numa2_1': {'parent': 'cn2', 'inventory': {'VCPU': 8}},
    'numa2_2': {'parent': 'cn2', 'inventory': {'VCPU': 8}},
    'ss1': {'aggregates': [B], 'inventory': {'DISK_GB': 100}},
    'ss2': {'aggregates': [C], 'inventory': {'DISK_GB': 100}},
}
SHARING = ['ss1', 'ss2']

EVERYTHING = sorted(FIGURE)

# The forbidden aggregate; the providers that survive where the group has no
# suffix, and where it has one. The six statements of the specification.
STATEMENTS = [
    (
        'A',
        A,
        ['cn2', 'numa2_1', 'numa2_2', 'ss1', 'ss2'],
        ['cn2', 'numa1_1', 'numa1_2', 'numa2_1', 'numa2_2', 'ss1', 'ss2'],
    ),
    (
        'B',
        B,
        ['cn1', 'numa1_1', 'numa1_2', 'ss2'],
        ['cn1', 'numa1_1', 'numa1_2', 'numa2_1', 'numa2_2', 'ss2'],
    ),
    (
        'C',
        C,
        ['cn1', 'cn2', 'numa1_2', 'numa2_1', 'numa2_2', 'ss1'],
        ['cn1', 'cn2', 'numa1_2', 'numa2_1', 'numa2_2', 'ss1'],
    ),
]


class FigureTestCase(base.ReadTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.uuids = {}
        for name, kwargs in FIGURE.items():
            kwargs = dict(kwargs)
            if 'parent' in kwargs:
                kwargs['parent'] = cls.uuids[kwargs['parent']]
            if name in SHARING:
                kwargs['traits'] = ['MISC_SHARES_VIA_AGGREGATE']
            cls.uuids[name] = cls.server.create_provider(name, **kwargs)
        cls.names = {uuid: name for name, uuid in cls.uuids.items()}

    def survivors(self, **asked):
        """Return the names of the providers that each class is found on.

        One query for each resource class, because no one provider of the
        figure has them all.
        """
        found = set()
        for resource_class in ('MEMORY_MB', 'VCPU', 'DISK_GB'):
            group = objects.RequestGroup(
                resources={resource_class: 1}, **asked
            )
            found |= self.server.find_candidates(group)
        return sorted(self.names[uuid] for uuid in found)


@ddt.ddt
class FigureTest(FigureTestCase):
    def test_everything_without_a_constraint(self):
        self.assertEqual(EVERYTHING, self.survivors())
        self.assertEqual(EVERYTHING, self.survivors(suffix='1'))

    @ddt.idata(STATEMENTS)
    @ddt.unpack
    def test_unsuffixed(self, name, aggregate, survivors, granular):
        self.assertEqual(
            survivors, self.survivors(forbidden_aggregates={aggregate})
        )

    @ddt.idata(STATEMENTS)
    @ddt.unpack
    def test_granular(self, name, aggregate, survivors, granular):
        for suffix in ('1', '_NET'):
            self.assertEqual(
                granular,
                self.survivors(
                    suffix=suffix, forbidden_aggregates={aggregate}
                ),
            )


# Flat hosts, and the aggregates of each.
#
#   a [A]   b [B]   ac [A, C]   bc [B, C]   abcd [A, B, C, D]   none []
HOSTS = {
    'a': [A],
    'b': [B],
    'ac': [A, C],
    'bc': [B, C],
    'abcd': [A, B, C, D],
    'none': [],
}

# Required OR sets and forbidden aggregates; the hosts that survive.
FORMS = [
    ([], [], ['a', 'abcd', 'ac', 'b', 'bc', 'none']),
    ([[A]], [], ['a', 'abcd', 'ac']),
    ([[A, B]], [], ['a', 'abcd', 'ac', 'b', 'bc']),
    ([[A, B], [C]], [], ['abcd', 'ac', 'bc']),
    ([[A], [B]], [], ['abcd']),
    ([], [D], ['a', 'ac', 'b', 'bc', 'none']),
    ([], [A, B], ['none']),
    # specs/negative-aggregate-membership, "Proposed change".
    ([[A, B], [C]], [D], ['ac', 'bc']),
    ([[A, B]], [C], ['a', 'b']),
    # The same aggregate on both sides.
    ([[A]], [A], []),
    ([[A, B]], [A], ['b', 'bc']),
]


class FlatTestCase(base.ReadTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.uuids = {
            name: cls.server.create_provider(
                name, inventory={'VCPU': 8}, aggregates=aggregates
            )
            for name, aggregates in HOSTS.items()
        }
        cls.names = {uuid: name for name, uuid in cls.uuids.items()}

    def candidates(self, group):
        found = self.server.find_candidates(group)
        return sorted(self.names[uuid] for uuid in found)

    def providers(self, group):
        found = self.client.resource_providers(group)
        return sorted(provider['name'] for provider in found)

    def query(self, microversion, *values, path='/allocation_candidates'):
        """Ask as written, past our client; return status and host names."""
        params = [('resources', 'VCPU:1')]
        params += [('member_of', value) for value in values]
        response = self.raw.get(
            f'{path}?{parse.urlencode(params)}', microversion=microversion
        )
        body = response.json()
        if response.status_code != 200:
            return response.status_code, body['errors'][0]['detail']
        found = body.get('provider_summaries') or [
            provider['uuid'] for provider in body.get('resource_providers', ())
        ]
        return 200, sorted(self.names[uuid] for uuid in found)


@ddt.ddt
class FormsTest(FlatTestCase):
    @ddt.idata(FORMS)
    @ddt.unpack
    def test_form(self, required, forbidden, survivors):
        group = objects.RequestGroup(
            resources={'VCPU': 1},
            required_aggregates=required,
            forbidden_aggregates=set(forbidden),
        )
        self.assertEqual(survivors, self.candidates(group))
        self.assertEqual(survivors, self.providers(group))
        group.suffix = '1'
        self.assertEqual(survivors, self.candidates(group))

    def test_what_we_send_is_what_the_specification_writes(self):
        self.assertEqual(
            self.query('1.32', f'in:{A},{B}', C, f'!{D}'),
            (200, ['ac', 'bc']),
        )
        self.assertEqual(
            self.query('1.32', f'in:{A},{B}', f'in:{C}', f'!in:{D}'),
            (200, ['ac', 'bc']),
        )

    def test_a_list_of_forbidden_equals_repeated_forbidden(self):
        for path in ('/allocation_candidates', '/resource_providers'):
            listed = self.query('1.32', f'!in:{A},{D}', path=path)
            self.assertEqual((200, ['b', 'bc', 'none']), listed)
            self.assertEqual(
                listed, self.query('1.32', f'!{A}', f'!{D}', path=path)
            )

    def test_the_same_aggregate_on_both_sides_is_200_and_nothing(self):
        self.assertEqual((200, []), self.query('1.32', A, f'!{A}'))

    def test_exclamation_mark_inside_of_in(self):
        value = f'in:{A},!{B}'
        status, detail = self.query('1.32', value)
        self.assertEqual(400, status)
        self.assertIn(f'!{B}', detail)
        with self.assert_nothing_is_sent():
            self.assertRaises(
                exception.InvalidValue,
                objects.RequestGroup.from_queryparams,
                [('member_of', value)],
            )
            self.assertRaises(
                exception.InvalidValue,
                objects.RequestGroup,
                required_aggregates=[[A, f'!{B}']],
            )

    def assert_nothing_is_sent(self):
        return unittest.mock.patch.object(
            self.raw.session,
            'request',
            side_effect=AssertionError('a request was sent'),
        )


class BothSidesTestCase(FlatTestCase):
    """A server of one age: what it takes, and what we refuse to send it."""

    refused = ()
    taken = ()
    groups = {
        'two sets': (
            {'required_aggregates': [[A, B], [C]]},
            ['abcd', 'ac', 'bc'],
        ),
        'forbidden': (
            {'forbidden_aggregates': {D}},
            ['a', 'ac', 'b', 'bc', 'none'],
        ),
    }

    def test_refused_before_anything_is_sent(self):
        # Asked once, and here.
        self.assertEqual((1, 0), self.client._transport.microversions[0])
        for name, needed in self.refused:
            asked, _ = self.groups[name]
            group = objects.RequestGroup(resources={'VCPU': 1}, **asked)
            for query in (self.candidates, self.providers):
                with (
                    unittest.mock.patch.object(
                        self.raw.session, 'request'
                    ) as send,
                    self.assertRaises(
                        errors.MicroversionUnsupported
                    ) as caught,
                ):
                    query(group)
                send.assert_not_called()
                self.assertEqual(needed, caught.exception.needed)
                self.assertEqual(self.maximum, caught.exception.maximum)
                self.assertIn(
                    f'needs microversion {needed} ', str(caught.exception)
                )
                self.assertIn(
                    f'the server has 1.0 to {self.maximum}; nothing was sent '
                    f'(GET {self.raw.get_endpoint()}/',
                    str(caught.exception),
                )

    def test_taken(self):
        for name in self.taken:
            asked, survivors = self.groups[name]
            group = objects.RequestGroup(resources={'VCPU': 1}, **asked)
            self.assertEqual(survivors, self.candidates(group))
            self.assertEqual(survivors, self.providers(group))


class Microversion123Test(BothSidesTestCase):
    maximum = '1.23'
    refused = [('two sets', '1.24'), ('forbidden', '1.32')]

    def test_placement_refuses_two_member_of(self):
        status, detail = self.query('1.23', f'in:{A},{B}', C)
        self.assertEqual(400, status)
        self.assertIn('Multiple member_of', detail)

    def test_one_set_is_taken(self):
        group = objects.RequestGroup(
            resources={'VCPU': 1}, required_aggregates=[[A, B]]
        )
        self.assertEqual(
            ['a', 'abcd', 'ac', 'b', 'bc'], self.candidates(group)
        )


class Microversion124Test(BothSidesTestCase):
    maximum = '1.24'
    refused = [('forbidden', '1.32')]
    taken = ['two sets']

    def test_placement_takes_two_member_of(self):
        self.assertEqual(
            (200, ['abcd', 'ac', 'bc']), self.query('1.24', f'in:{A},{B}', C)
        )


class Microversion131Test(BothSidesTestCase):
    maximum = '1.31'
    refused = [('forbidden', '1.32')]
    taken = ['two sets']

    def test_placement_refuses_forbidden(self):
        for value in (f'!{D}', f'!in:{D}'):
            status, detail = self.query('1.31', value)
            self.assertEqual(400, status)
            self.assertIn('Forbidden member_of', detail)


class Microversion132Test(BothSidesTestCase):
    maximum = '1.32'
    taken = ['two sets', 'forbidden']

    def test_placement_takes_forbidden(self):
        for value in (f'!{D}', f'!in:{D}'):
            self.assertEqual(
                (200, ['a', 'ac', 'b', 'bc', 'none']),
                self.query('1.32', value),
            )


del FigureTestCase, FlatTestCase, BothSidesTestCase
