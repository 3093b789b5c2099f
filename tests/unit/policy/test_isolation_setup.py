# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import isolation_setup as setup
from tests.unit.policy.test_isolation_plan import make_aggregate
from tests.unit.policy.test_isolation_plan import make_cloud
from tests.unit.policy.test_isolation_plan import make_node

X, Y = 'CUSTOM_X', 'CUSTOM_Y'
NONE = isolation.DeclaredTraits([])


def with_metadata(**metadata):
    return setup.Aggregate(1, 'uuid1', 'agg1', ('h',), metadata)


@ddt.ddt
class FaultsTestCase(testtools.TestCase):
    def find(self, aggregate, nodes=(), others=(), declared=NONE):
        cloud = make_cloud([aggregate, *others], nodes, known=[X, Y])
        return [
            (fault.kind, *fault.hosts)
            for fault in setup.find_faults(aggregate, cloud, declared)
        ]

    def test_none(self):
        self.assertEqual(
            [],
            self.find(
                make_aggregate(1, ['h'], X),
                [make_node('h', X, aggregates=['uuid1']), make_node('other')],
            ),
        )

    @ddt.data(
        ({'trait:CUSTOM_X': 'Required'}, ['misspelt']),
        ({'trait:CUSTOM_X': 'forbidden'}, ['unread-value']),
        ({'force_metadata_check': 'ja'}, ['force-metadata-check']),
        ({'force_metadata_check': 'no'}, []),
        ({'force_metadata_check': 'yes'}, []),
        (
            {'force_metadata_check': 'yes', 'trait:CUSTOM_X': 'required'},
            ['conflict'],
        ),
        ({'trait:CUSTOM_NEW': 'required'}, ['unknown-trait']),
        ({'trait:custom': 'required'}, ['impossible-trait']),
        ({'trait:HW_NO_SUCH': 'required'}, ['impossible-trait']),
    )
    @ddt.unpack
    def test_metadata(self, metadata, kinds):
        found = self.find(
            with_metadata(**metadata),
            [make_node('h', X, aggregates=['uuid1'])],
        )
        self.assertEqual(kinds, [kind for kind, *_ in found])

    def test_hosts(self):
        self.assertEqual(
            [
                ('no-provider', 'gone'),
                ('trait-missing', 'h1', 'ironic (node2)'),
                ('not-mirrored', 'h2', 'ironic (node1)'),
            ],
            self.find(
                make_aggregate(1, ['h1', 'h2', 'ironic', 'gone'], X),
                [
                    make_node('h1', aggregates=['uuid1']),
                    make_node('h2', X),
                    make_node('ironic', X, name='node1'),
                    make_node('ironic', aggregates=['uuid1'], name='node2'),
                ],
            ),
        )

    @ddt.data(
        # Traits of this aggregate and of the other; whether it has a fault.
        ([X], [X], False),
        ([X], [Y], True),
        ([X], [X, Y], True),
        ([X, Y], [X], False),
        ([X], [], False),
    )
    @ddt.unpack
    def test_hosts_of_two_aggregates(self, traits, others, conflict):
        found = self.find(
            make_aggregate(1, ['h'], *traits),
            [make_node('h', X, Y, aggregates=['uuid1', 'uuid2'])],
            [make_aggregate(2, ['h'], *others)],
        )
        self.assertEqual([('conflict', 'h')] if conflict else [], found)

    def test_outside(self):
        aggregate = make_aggregate(1, ['h'], X)
        nodes = [
            make_node('h', X, aggregates=['uuid1']),
            make_node('carrier', X),
            make_node('member', aggregates=['uuid1']),
        ]
        self.assertEqual(
            [('stray-member', 'member')], self.find(aggregate, nodes)
        )
        self.assertEqual(
            [('stray-member', 'member'), ('trait-outside', 'carrier')],
            self.find(
                aggregate,
                nodes,
                declared=isolation.DeclaredTraits(['CUSTOM_*']),
            ),
        )

    def test_as_text(self):
        self.assertEqual('a problem', str(setup.Fault('kind', 'a problem')))
        self.assertEqual(
            'a problem: h1, h2',
            str(setup.Fault('kind', 'a problem', ('h1', 'h2'))),
        )
