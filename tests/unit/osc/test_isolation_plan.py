# SPDX-License-Identifier: Apache-2.0

import dataclasses

import ddt
import hypothesis
from hypothesis import strategies as st
import testtools

from nova_ext_sched.osc import isolation_plan as plan
from nova_ext_sched.osc import isolation_step
from nova_ext_sched.policy import isolation
from tests.unit.osc import clouds
from tests.unit.osc.clouds import FLAG
from tests.unit.osc.clouds import record
from tests.unit.osc.clouds import X
from tests.unit.osc.clouds import Y
from tests.unit.osc.clouds import Z


def rows(steps):
    return [(str(step.change), list(step.names), step.host) for step in steps]


class Placement:
    """A client of a placement that has a cloud's traits and providers."""

    def __init__(self, cloud):
        self.known = set(cloud.traits)
        self.nodes = {node.uuid: node for node in cloud.nodes}

    def ensure_traits(self, names):
        self.known |= set(names)

    def update_traits(self, uuid, decide):
        traits = decide(self.nodes[uuid].traits)
        # Placement answers 400 to a trait that it does not know.
        assert traits <= self.known
        self._replace(uuid, traits=traits)

    def update_aggregates(self, uuid, decide):
        self._replace(uuid, aggregates=decide(self.nodes[uuid].aggregates))

    def _replace(self, uuid, **change):
        self.nodes[uuid] = dataclasses.replace(self.nodes[uuid], **change)


def carry_out(cloud, steps):
    """Return the cloud as it is after the steps."""
    placement = Placement(cloud)
    for step in steps:
        if not step.reason:
            step.write(placement)
    nodes = placement.nodes.values()
    return clouds.make(cloud.aggregates, nodes, placement.known)


@ddt.ddt
class TableTestCase(testtools.TestCase):
    """Each line of the table in the docstring of isolation_step."""

    @ddt.data(
        # required, traits; added or removed
        (True, '', ['add traits', record(X), X]),
        (True, 'rX', ['add traits', X]),
        (True, 'X', None),
        (True, 'X rX', None),
        (False, 'X rX', ['remove traits', record(X), X]),
        (False, 'X', None),
        (False, 'rX', ['remove traits', record(X)]),
        (False, '', None),
    )
    @ddt.unpack
    def test_line(self, required, traits, expected):
        cloud = clouds.read(f'{"h" * required}: X', f'h {traits} @1')
        got = [
            [str(step.change), *step.names]
            for step in plan.make(cloud, prune=True)
            if step.host == 'h'
        ]
        self.assertEqual([] if expected is None else [expected], got)
        # Without pruning nothing is removed.
        for step in plan.make(cloud):
            self.assertNotEqual('remove traits', str(step.change))


class PlanTestCase(testtools.TestCase):
    def assertPlanned(self, expected, *cloud):
        """Check change, names and host of each step."""
        steps = plan.make(clouds.read(*cloud))
        self.assertEqual(expected, rows(steps))
        return steps

    def test_every_node_of_an_ironic_host(self):
        steps = self.assertPlanned(
            [
                ('add to aggregates', ['agg1'], 'h'),
                ('add traits', [record(X), X], 'h'),
            ],
            # One without a trait is not mirrored.
            *('h: X; h:', 'h/node2 @1; h/node1 X'),
        )
        self.assertEqual(['node1', 'node2'], [one.provider for one in steps])

    def test_pruning_is_bounded_to_the_selected_aggregates(self):
        cloud = clouds.read(
            'h1 ironic: Y; h2: Z',
            'h1 X rX Y @1; h2 X rX Z @2; left X rX; member X rX @1; '
            'ironic/n X rX Y @1',
            'X rX Y Z',
        )
        for selected, hosts in (
            (cloud.aggregates[:1], ['h1', 'ironic', 'member']),
            (cloud.aggregates[1:], ['h2']),
            (cloud.aggregates, ['h1', 'h2', 'ironic', 'member']),
            ([], ['h1', 'h2', 'ironic', 'left', 'member']),
        ):
            self.assertEqual(
                [('remove traits', [record(X), X], host) for host in hosts],
                rows(plan.make(cloud, selected, prune=True)),
            )
            self.assertEqual([], plan.make(cloud, selected))

    def test_pruning_reaches_a_host_that_is_not_mirrored(self):
        cloud = clouds.read('h: Z', 'h X rX Z')
        self.assertEqual(
            [
                ('add to aggregates', ['agg1'], 'h'),
                ('remove traits', [record(X), X], 'h'),
            ],
            rows(plan.make(cloud, cloud.aggregates, prune=True)),
        )

    def test_what_nova_compute_alone_can_give_is_a_step_of_its_own(self):
        steps = self.assertPlanned(
            [('add traits', [record(X), X], 'h'), ('add traits', [FLAG], 'h')],
            *('h: FLAG X', 'h @1'),
        )
        results = [one.result.split()[0] for one in steps]
        self.assertEqual(['planned', 'not'], results)

    def test_what_cannot_be_done(self):
        steps = self.assertPlanned(
            [
                ('create trait', ['lower'], ''),
                ('add traits', [FLAG, 'lower'], 'gone'),
                ('add traits', [FLAG], 'h'),
            ],
            *('h gone: FLAG lower', 'h @1'),
        )
        for step in steps:
            self.assertNotEqual('', step.reason)

    def test_what_a_device_has_is_not_given_to_its_host(self):
        *_, step = plan.make(clouds.read('h: X Z', 'h @1 X=h_gpu'))
        self.assertEqual([record(Z), Z], step.names)

    def test_one_write_for_two_aggregates_of_a_host(self):
        """Both traits and memberships, and what has no provider."""
        self.assertPlanned(
            [
                ('add to aggregates', ['agg1', 'agg2'], 'h'),
                ('add traits', [X, Z], 'gone'),
                ('add traits', [record(Z), X, Z], 'h'),
            ],
            *('h gone: X; h gone: Z', 'h rX', 'X Z rX rZ'),
        )

    def test_a_host_that_nova_does_not_list_is_not_pruned(self):
        # Its cell is down, so that nobody knows what it is in.
        [step] = plan.make(clouds.read('h: X'), prune=True)
        self.assertEqual('add traits', str(step.change))

    def test_a_trait_too_long_for_a_record(self):
        long = 'CUSTOM_' + 'A' * 248
        given = f'h: {long}', 'h @1', long
        self.assertPlanned([('add traits', [long], 'h')], *given)
        cloud = clouds.read(f': {long}', f'h {long}', long)
        self.assertEqual([], plan.make(cloud, prune=True))

    def test_what_another_changed_meanwhile(self):
        """What is there gets no record; what lost its record stays."""
        found = isolation_step.add_traits(frozenset([X]), [X, Y])
        self.assertEqual({X, Y, record(Y)}, found)
        before = frozenset([X, Y, record(Y)])
        self.assertEqual({X}, isolation_step.remove_traits(before, [X, Y]))


HOSTS = ['h1', 'h2', 'h3']
TRAITS = st.sampled_from([X, Y, Z, FLAG, 'lower'])
CARRIED = st.sampled_from([X, Y, Z, record(X), record(Y), record(Z)])
KNOWN = frozenset([X, Y, Z, record(X), record(Y), record(Z)])


@st.composite
def random_clouds(draw):
    aggregates = [
        clouds.aggregate(
            number,
            draw(st.lists(st.sampled_from([*HOSTS, 'gone']), unique=True)),
            *draw(st.lists(TRAITS, unique=True)),
        )
        for number in range(draw(st.integers(0, 3)))
    ]
    numbers = st.sets(st.integers(0, max(0, len(aggregates) - 1)))
    nodes = [
        clouds.node(host, *draw(st.sets(CARRIED)), inside=draw(numbers))
        for host in HOSTS
    ]
    carried = frozenset().union(*(node.traits for node in nodes))
    known = carried | draw(st.sets(st.sampled_from(sorted(KNOWN))))
    return clouds.make(aggregates, nodes, known)


class PropertyTestCase(testtools.TestCase):
    @hypothesis.given(random_clouds(), st.booleans(), st.data())
    def test_interrupted_anywhere_and_run_again(self, cloud, prune, data):
        steps = plan.make(cloud, prune=prune)
        whole = carry_out(cloud, steps)
        # What was done in part and then planned anew ends in the same.
        done = data.draw(st.integers(0, len(steps)))
        begun = carry_out(cloud, steps[:done])
        again = carry_out(begun, plan.make(begun, prune=prune))
        self.assertEqual(whole, again)
        # And then nothing is left but what cannot be done.
        left = plan.make(whole, prune=prune)
        self.assertEqual([], [step for step in left if not step.reason])

    @hypothesis.given(random_clouds())
    def test_pruning_takes_nothing_without_a_record(self, cloud):
        after = carry_out(cloud, plan.make(cloud, prune=True))
        for old, new in zip(cloud.nodes, after.nodes, strict=True):
            for trait in old.traits - new.traits:
                self.assertTrue(
                    trait.startswith(isolation.RECORD)
                    or record(trait) in old.traits
                )
                self.assertNotIn(trait, cloud.get_required_traits(old.host))

    @hypothesis.given(random_clouds())
    def test_what_sync_gave_is_what_pruning_takes(self, cloud):
        before = carry_out(cloud, plan.make(cloud, prune=True))
        given = carry_out(before, plan.make(before))
        # Every aggregate is deleted.
        empty = dataclasses.replace(given, aggregates=())
        after = carry_out(empty, plan.make(empty, prune=True))
        for old, new in zip(before.nodes, after.nodes, strict=True):
            ours = {t for t in old.traits if record(t) in old.traits}
            left = {
                trait
                for trait in old.traits - ours
                if not trait.startswith(isolation.RECORD)
            }
            self.assertEqual(left, new.traits)
