# SPDX-License-Identifier: Apache-2.0

import ddt
import hypothesis
from hypothesis import strategies as st
import testtools

from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.osc import isolation_findings
from nova_ext_sched.osc import isolation_report
from nova_ext_sched.policy import isolation
from tests.unit.osc import clouds
from tests.unit.osc.clouds import X


def with_metadata(**metadata):
    return isolation_cloud.Aggregate(1, 'uuid1', 'agg1', ('h',), metadata)


@ddt.ddt
class FaultsTestCase(testtools.TestCase):
    def find(self, aggregates, nodes, *declared, metadata=None):
        """Return the faults of the first aggregate, with their hosts."""
        cloud = clouds.read(aggregates, nodes, 'X Y')
        first = cloud.aggregates[0]
        if metadata is not None:
            first = with_metadata(**metadata)
        traits = isolation.DeclaredTraits(declared)
        faults = isolation_findings.find(first, cloud, traits)
        return [(one.fault, *one.hosts) for one in faults]

    @ddt.data(
        ({'trait:CUSTOM_X': 'Required'}, ['misspelt']),
        ({'trait:CUSTOM_X': 'forbidden'}, ['unread-value']),
        # sync passes over what isolates nothing.
        ({'trait:CUSTOM_X': 'forbidden'}, ['unread-value'], 'h X'),
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
    def test_metadata(self, metadata, kinds, node='h X @1'):
        found = self.find('h:', node, metadata=metadata)
        self.assertEqual(kinds, [kind for kind, *_ in found])

    # The aggregates, the nodes, and what is found of the first aggregate.
    @ddt.data(
        ('h1 h2 ironic gone: X',
         'h1 @1; h2 X; ironic/node1 X; ironic/node2 @1',
         ('no-provider', 'gone'),
         ('trait-missing', 'h1', 'ironic (node2)'),
         ('not-mirrored', 'h2', 'ironic (node1)')),
        # One on another provider is not missing.
        ('h1 h2: X', 'h1 @1 X=gpu; h2 @1 Y=gpu', ('trait-missing', 'h2')),
        # Hosts of two aggregates.
        ('h: X; h: Y', 'h X Y @1 @2', ('conflict', 'h')),
        ('h: X; h: X Y', 'h X Y @1 @2', ('conflict', 'h')),
        ('h: X Y; h: X', 'h X Y @1 @2'),
        # A record alone lets no server in.
        (': X', 'h rX'),
        (': X', 'h X'),
        (': X', 'h X rX', ('leftover-trait', 'h')),
        ('h: X', 'h X @1; carrier X; member @1', ('stray-member', 'member')),
    )  # fmt: skip
    def test_hosts(self, row):
        aggregates, nodes, *expected = row
        self.assertEqual(expected, self.find(aggregates, nodes))

    # The traits that forbid_by_trait declares, too.
    @ddt.data(
        ('h: X', 'h X @1; h2 X', X, ('trait-outside', 'h2')),
        # forbid_by_trait asks placement for root_required.
        ('h: X', 'h X @1; h2 X=gpu', X),
        ('h: X', 'h X @1; h2 X', 'CUSTOM_*', ('trait-outside', 'h2')),
        # Its own aggregate requires another trait.
        ('h: X; h2: Y', 'h X @1; h2 X', X, ('trait-outside', 'h2')),
    )
    def test_outside(self, row):
        aggregates, nodes, declared, *expected = row
        self.assertEqual(expected, self.find(aggregates, nodes, declared))

    @ddt.data(('X', True), ('FLAG', False))
    @ddt.unpack
    def test_who_gives_a_trait_that_is_missing(self, trait, by_sync):
        cloud = clouds.read(f'h: {trait}', 'h @1', trait)
        [fault] = isolation_findings.find(
            cloud.aggregates[0], cloud, isolation.DeclaredTraits([])
        )
        found = fault.fault, fault.by_sync
        self.assertEqual(('trait-missing', by_sync), found)

    @hypothesis.given(
        st.lists(
            st.dictionaries(
                st.sampled_from(['force_metadata_check', 'trait:CUSTOM_X'])
                | st.text().map('trait:'.__add__),
                st.just('required') | st.text(),
                max_size=3,
            ),
            min_size=2,
            max_size=2,
        ),
        st.lists(st.text(), min_size=4, max_size=4),
    )
    def test_whatever_people_write_is_one_line(self, metadata, names):
        one, two = (
            isolation_cloud.Aggregate(
                number, f'uuid{number}', name, (names[2],), items
            )
            for number, (items, name) in enumerate(
                zip(metadata, names[:2], strict=True)
            )
        )
        nodes = [
            clouds.node(names[2], name=names[3]),
            clouds.node(names[3], X),
        ]
        cloud = clouds.make([one, two], nodes, [X, clouds.Y])
        for aggregate in (one, two):
            faults = isolation_findings.find(
                aggregate, cloud, isolation.DeclaredTraits(['*'])
            )
            for fault in faults:
                text = isolation_report.say_finding(fault)
                self.assertTrue(text.isprintable(), ascii(text))
                self.assertGreater(5000, len(text))
