# SPDX-License-Identifier: Apache-2.0

import ddt
import hypothesis
from hypothesis import strategies as st
import testtools

from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.osc import isolation_findings
from nova_ext_sched.osc import isolation_report
from nova_ext_sched.policy import isolation
from tests.unit.osc.test_isolation_plan import make_aggregate
from tests.unit.osc.test_isolation_plan import make_cloud
from tests.unit.osc.test_isolation_plan import make_node

X, Y = 'CUSTOM_X', 'CUSTOM_Y'
RECORD = isolation.RECORD + X
NONE = isolation.DeclaredTraits([])


def with_metadata(**metadata):
    return isolation_cloud.Aggregate(1, 'uuid1', 'agg1', ('h',), metadata)


@ddt.ddt
class FaultsTestCase(testtools.TestCase):
    def find(self, aggregate, nodes=(), others=(), declared=NONE):
        cloud = make_cloud([aggregate, *others], nodes, known=[X, Y])
        return [
            (fault.fault, *fault.hosts)
            for fault in isolation_findings.find(aggregate, cloud, declared)
        ]

    @ddt.data(
        ({'trait:CUSTOM_X': 'Required'}, ['misspelt']),
        ({'trait:CUSTOM_X': 'forbidden'}, ['unread-value']),
        # sync passes over what isolates nothing.
        ({'trait:CUSTOM_X': 'forbidden'}, ['unread-value'], ()),
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
    def test_metadata(self, metadata, kinds, inside=(1,)):
        found = self.find(
            with_metadata(**metadata), [make_node('h', X, inside=inside)]
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
                    make_node('h1', inside=[1]),
                    make_node('h2', X),
                    make_node('ironic', X, name='node1'),
                    make_node('ironic', inside=[1], name='node2'),
                ],
            ),
        )

    def test_a_trait_on_another_provider_is_not_missing(self):
        aggregate = make_aggregate(1, ['h1', 'h2'], X)
        nodes = [
            make_node('h1', inside=[1], CUSTOM_X=['gpu']),
            make_node('h2', inside=[1], CUSTOM_Y=['gpu']),
        ]
        self.assertEqual(
            [('trait-missing', 'h2')], self.find(aggregate, nodes)
        )

    def test_only_the_root_is_outside(self):
        """forbid_by_trait asks placement for root_required."""
        aggregate = make_aggregate(1, ['h1'], X)
        inside = make_node('h1', X, inside=[1])
        declared = isolation.DeclaredTraits([X])
        for node, expected in (
            (make_node('h2', X), [('trait-outside', 'h2')]),
            (make_node('h2', CUSTOM_X=['gpu']), []),
        ):
            found = self.find(aggregate, [inside, node], declared=declared)
            self.assertEqual(expected, found)

    @ddt.data((X, True), ('HW_CPU_X86_VMX', False))
    @ddt.unpack
    def test_who_gives_a_trait_that_is_missing(self, trait, by_sync):
        aggregate = make_aggregate(1, ['h'], trait)
        node = make_node('h', inside=[1])
        [fault] = isolation_findings.find(
            aggregate, make_cloud([aggregate], [node], known=[trait]), NONE
        )
        self.assertEqual(
            ('trait-missing', by_sync), (fault.fault, fault.by_sync)
        )

    @ddt.data(
        # Traits of this aggregate and of the other; whether it has a fault.
        ([X], [Y], True),
        ([X], [X, Y], True),
        ([X, Y], [X], False),
    )
    @ddt.unpack
    def test_hosts_of_two_aggregates(self, traits, others, conflict):
        found = self.find(
            make_aggregate(1, ['h'], *traits),
            [make_node('h', X, Y, inside=[1, 2])],
            [make_aggregate(2, ['h'], *others)],
        )
        self.assertEqual([('conflict', 'h')] if conflict else [], found)

    def test_outside(self):
        aggregate = make_aggregate(1, ['h'], X)
        nodes = [
            make_node('h', X, inside=[1]),
            make_node('carrier', X),
            make_node('member', inside=[1]),
        ]
        for others, patterns, expected in (
            ([], [], []),
            ([], ['CUSTOM_*'], [('trait-outside', 'carrier')]),
            # Its own aggregate requires another trait.
            (
                [make_aggregate(2, ['carrier'], Y)],
                *([X], [('trait-outside', 'carrier')]),
            ),
        ):
            declared = isolation.DeclaredTraits(patterns)
            found = self.find(aggregate, nodes, others, declared)
            self.assertEqual([('stray-member', 'member'), *expected], found)

    def test_a_record_alone_lets_no_server_in(self):
        aggregate = make_aggregate(1, [], X)
        for traits, found in (
            ([RECORD], []),
            ([X], []),
            ([X, RECORD], [('leftover-trait', 'h')]),
        ):
            node = make_node('h', *traits)
            self.assertEqual(found, self.find(aggregate, [node]))

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
        nodes = [make_node(names[2], name=names[3]), make_node(names[3], X)]
        cloud = make_cloud([one, two], nodes, known=[X, Y])
        for aggregate in (one, two):
            faults = isolation_findings.find(
                aggregate, cloud, isolation.DeclaredTraits(['*'])
            )
            for fault in faults:
                text = isolation_report.say_finding(fault)
                self.assertTrue(text.isprintable(), ascii(text))
                self.assertGreater(5000, len(text))
