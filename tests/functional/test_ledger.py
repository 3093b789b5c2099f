# SPDX-License-Identifier: Apache-2.0

"""Claims in a ledger are what placement makes of them.

nova's own client claims, moves and gives back, once in a real placement and
once in a ledger that has what placement had before.
"""

import fixtures
import hypothesis
from hypothesis import strategies as st
from nova import context
from nova.scheduler.client import report
from oslo_utils.fixture import uuidsentinel as uuids

from nova_ext_sched.dryrun.cloud import ledger
from nova_ext_sched.dryrun.cloud import placement as cloud_placement
from tests.functional.placement import base

# Hosts, and disks that they share: of each class the total.
PROVIDERS = {
    'a': {'VCPU': 6, 'MEMORY_MB': 6},
    'b': {'VCPU': 4, 'MEMORY_MB': 9},
    'disks': {'DISK_GB': 8},
}
CONSUMERS = ('one', 'two', 'migration')

AMOUNTS = st.integers(1, 5)
REQUESTS = st.dictionaries(st.sampled_from('ab'), AMOUNTS, min_size=1)
STEPS = st.one_of(
    st.tuples(
        st.just('claim'),
        st.sampled_from(CONSUMERS),
        REQUESTS,
        st.none() | AMOUNTS,
    ),
    st.tuples(
        st.just('move'), st.sampled_from(CONSUMERS), st.sampled_from(CONSUMERS)
    ),
    st.tuples(st.just('leave'), st.sampled_from(CONSUMERS)),
)


class LedgerTest(base.PlacementTestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.ctxt = context.get_admin_context()
        self.uuids = {
            name: self.server.create_provider(name, inventory=inventory)
            for name, inventory in PROVIDERS.items()
        }
        self.real = report.SchedulerReportClient(adapter=self.raw)
        self.dry = cloud_placement.ReportClient(adapter=self.raw)

    def shrink(self, total, most=6):
        """Let a host have less than what consumers hold of it.

        :param most: max_unit; no candidate gives more
        """
        self.most = most
        url = f'/resource_providers/{self.uuids["a"]}/inventories'
        found = self.raw.get(url, microversion='1.26').json()
        found['inventories'] = {
            name: {'total': total, 'max_unit': most}
            for name in found['inventories']
        }
        self.raw.put(url, json=found, microversion='1.26').raise_for_status()

    def claim(self, client, consumer, hosts, disk):
        most = {'a': self.most, 'b': 9}
        request = {
            'allocations': {
                self.uuids[host]: {
                    'resources': dict.fromkeys(
                        ('VCPU', 'MEMORY_MB'), min(amount, most[host])
                    )
                }
                for host, amount in hosts.items()
            }
        }
        if disk:
            request['allocations'][self.uuids['disks']] = {
                'resources': {'DISK_GB': disk}
            }
        return client.claim_resources(
            self.ctxt,
            getattr(uuids, consumer),
            request,
            'project',
            'user',
            report.SAME_SUBTREE_VERSION,
        )

    def move(self, client, source, target):
        return client.move_allocations(
            self.ctxt, getattr(uuids, source), getattr(uuids, target)
        )

    def leave(self, client, consumer):
        return client.delete_allocation_for_instance(
            self.ctxt, getattr(uuids, consumer)
        )

    def run_steps(self, client, steps):
        """Return what comes of each step, and what consumers hold then."""
        outcomes = []
        for name, *args in steps:
            try:
                outcomes.append(getattr(self, name)(client, *args))
            except KeyError as exc:
                # nova hands on the project of a consumer that has nothing.
                outcomes.append(str(exc))
        return outcomes, {
            consumer: {
                provider: one['resources']
                for provider, one in client.get_allocs_for_consumer(
                    self.ctxt, getattr(uuids, consumer)
                )['allocations'].items()
            }
            for consumer in CONSUMERS
        }

    @hypothesis.settings(max_examples=15, deadline=None)
    @hypothesis.given(
        st.lists(STEPS, max_size=3),
        st.sampled_from([(6, 6), (3, 6), (1, 6), (6, 2)]),
        st.lists(STEPS, min_size=1, max_size=4),
    )
    # What is held in units that a provider does not give any more.
    @hypothesis.example(
        [('claim', 'one', {'a': 4}, None)],
        (6, 2),
        [('claim', 'one', {'b': 1}, None), ('move', 'one', 'two')],
    )
    def test_any_steps(self, before, limits, steps):
        for consumer in CONSUMERS:
            self.raw.delete(f'/allocations/{getattr(uuids, consumer)}')
        self.shrink(6)
        self.run_steps(self.real, before)
        # It may be over full then; what comes after that is in the ledger.
        if limits != (6, 6):
            self.shrink(*limits)
        # It remembers what it has read.
        providers = cloud_placement.Providers(self.dry)
        rooms = {
            uuid: providers.get_inventories(uuid)
            for uuid in self.uuids.values()
        }
        known = {
            uuid: self.dry.read_allocations(uuid)
            for uuid in (getattr(uuids, name) for name in CONSUMERS)
        }
        self.dry.ledger = ledger.Ledger(known.get, rooms.get, rooms.get)
        expected = self.run_steps(self.dry, steps)
        self.dry.ledger = None
        self.assertEqual(expected, self.run_steps(self.real, steps))
