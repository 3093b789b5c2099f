# SPDX-License-Identifier: Apache-2.0

"""member_of in every form, against a real placement."""

import unittest.mock

import ddt
from oslotest import base as test_base

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
    'numa1_1': {'parent': 'cn1', 'aggregates': [C], 'inventory': {'VCPU': 8}},
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
    (A, ['cn2', 'numa2_1', 'numa2_2', 'ss1', 'ss2'],
     ['cn2', 'numa1_1', 'numa1_2', 'numa2_1', 'numa2_2', 'ss1', 'ss2']),
    (B, ['cn1', 'numa1_1', 'numa1_2', 'ss2'],
     ['cn1', 'numa1_1', 'numa1_2', 'numa2_1', 'numa2_2', 'ss2']),
    (C, ['cn1', 'cn2', 'numa1_2', 'numa2_1', 'numa2_2', 'ss1'],
     ['cn1', 'cn2', 'numa1_2', 'numa2_1', 'numa2_2', 'ss1']),
]  # fmt: skip


class FigureTest(base.ReadTestCase):
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

    def test_survivors(self):
        for suffix in ('', '1', '_NET'):
            self.assertEqual(EVERYTHING, self.survivors(suffix=suffix))
            for aggregate, unsuffixed, granular in STATEMENTS:
                self.assertEqual(
                    granular if suffix else unsuffixed,
                    self.survivors(
                        suffix=suffix, forbidden_aggregates={aggregate}
                    ),
                    (suffix, aggregate),
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


# The newest microversion of a placement; what it cannot be asked for, and the
# microversion that could.
AGES = [
    ('1.23', {'two sets': '1.24', 'forbidden': '1.32'}),
    ('1.24', {'forbidden': '1.32'}),
    ('1.31', {'forbidden': '1.32'}),
    ('1.32', {}),
]
GROUPS = {
    'one set': ({'required_aggregates': [[A, B]]}, FORMS[2][-1]),
    'two sets': ({'required_aggregates': [[A, B], [C]]}, FORMS[3][-1]),
    'forbidden': ({'forbidden_aggregates': {D}}, FORMS[5][-1]),
}


def create_hosts(server):
    """Create the hosts in a placement; return their names by UUID."""
    return {
        server.create_provider(
            name, inventory={'VCPU': 8}, aggregates=aggregates
        ): name
        for name, aggregates in HOSTS.items()
    }


class FormsTest(base.ReadTestCase):
    def test_forms(self):
        names = create_hosts(self.server)
        for required, forbidden, survivors in FORMS:
            group = objects.RequestGroup(
                resources={'VCPU': 1},
                required_aggregates=required,
                forbidden_aggregates=set(forbidden),
            )
            what = group.to_querystring()
            found = self.client.resource_providers(group)
            self.assertCountEqual(
                survivors, [one['name'] for one in found], what
            )
            for group.suffix in ('', '1'):
                found = self.server.find_candidates(group)
                self.assertCountEqual(
                    survivors, [names[uuid] for uuid in found], what
                )


@ddt.ddt
class AgesTest(test_base.BaseTestCase):
    """A server of one age: what it takes, and what we refuse to send it."""

    @ddt.idata(AGES)
    @ddt.unpack
    def test_age(self, maximum, refused):
        server = self.useFixture(base.Placement(maximum))
        names = create_hosts(server)
        # Asked once, and here.
        self.assertEqual((1, 0), server.client._transport.microversions[0])
        for name, (asked, survivors) in GROUPS.items():
            group = objects.RequestGroup(resources={'VCPU': 1}, **asked)
            if name in refused:
                self.assert_nothing_is_sent(server, group, refused[name])
                continue
            self.assertCountEqual(
                survivors,
                [names[uuid] for uuid in server.find_candidates(group)],
            )
            self.assertCountEqual(
                survivors,
                [
                    one['name']
                    for one in server.client.resource_providers(group)
                ],
            )

    def assert_nothing_is_sent(self, server, group, needed):
        for query in (
            server.find_candidates,
            server.client.resource_providers,
        ):
            with unittest.mock.patch.object(
                server.raw.session, 'request'
            ) as send:
                error = self.assertRaises(
                    errors.MicroversionUnsupported, query, group
                )
            send.assert_not_called()
            self.assertEqual(needed, error.needed)
            self.assertEqual(server.maximum, error.maximum)
            self.assertIn(f'needs microversion {needed} ', str(error))
            self.assertIn(
                f'the server has 1.0 to {server.maximum}; nothing was sent '
                f'(GET {server.raw.get_endpoint()}/',
                str(error),
            )
