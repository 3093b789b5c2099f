# SPDX-License-Identifier: Apache-2.0

"""The share of select_destinations that the policy of failover hosts takes.

A real nova and placement of 20 hosts, two of them held, and no other policy:
what the policy reads, no other has read. In processor time, beside the rest of
the same requests. A larger cloud makes the rest longer.

A boot asks one select of aggregates' metadata; an evacuation one of a cell
more.
"""

import collections
import statistics

import fixtures
from nova.scheduler import manager
from nova.scheduler import request_filter as nova_request_filter

from nova_ext_sched.filters import failover
from nova_ext_sched.request_filters import failover as request_filter
from nova_ext_sched.weighers import failover as weigher
from tests.benchmarks import test_select_destinations
from tests.functional import base

ROUNDS = 60
#: The bound for boots, of what nova takes without the policy.
MOST = 0.02
WHOLE = test_select_destinations.WHOLE
OURS = ('filter_all', 'weigh_objects', 'failover_hosts')


class FailoverTest(base.CloudTestCase):
    host_filters = ('FailoverHostsFilter',)
    weigher_classes = ('nova_ext_sched.weighers.all_weighers',)
    options = {'enable_failover_hosts': True}
    weights = {f'host{i}': 100 - i for i in range(20)}

    def setUp(self):
        self.spent = collections.defaultdict(list)
        # Before the services start: their RPC server keeps what it calls.
        for owner, name in (
            (manager.SchedulerManager, WHOLE),
            (failover.FailoverHostsFilter, 'filter_all'),
            (weigher.FailoverHostsWeigher, 'weigh_objects'),
        ):
            self._time(owner, name)
        super().setUp()
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.scheduler.request_filter.ALL_REQUEST_FILTERS',
                [
                    test_select_destinations.timed(
                        fn, self.spent['failover_hosts']
                    )
                    if fn is request_filter.failover_hosts
                    else fn
                    for fn in nova_request_filter.ALL_REQUEST_FILTERS
                ],
            )
        )

    def _time(self, owner, name):
        wrapped = test_select_destinations.timed(
            getattr(owner, name), self.spent[name]
        )
        self.useFixture(fixtures.MockPatchObject(owner, name, wrapped))

    def test_share(self):
        self.aggregate('spare', ['host0', 'host1'], failover='true')
        for rack in range(5):
            hosts = [f'host{4 * rack + number}' for number in range(4)]
            self.aggregate(f'rack {rack}', hosts, failure_domain=f'r{rack}')
        for number in range(ROUNDS):
            if number == 3:
                # What is read once, and kept, is no request's.
                for taken in self.spent.values():
                    taken.clear()
            self._delete_server(self.boot())
        number = len(self.spent[WHOLE])
        self.assertEqual(ROUNDS - 3, number)
        each = self.spent
        whole = statistics.mean(each[WHOLE])
        ours = {name: sum(each[name]) / number for name in OURS}
        taken = sum(ours.values())
        share = taken / (whole - taken)
        print(
            f'\nFAILOVER {1000 * whole:.2f} ms of CPU a request, '
            + ', '.join(f'{name} {1000 * ours[name]:.3f}' for name in ours)
            + f': {share:.4f}'
        )
        self.assertLessEqual(share, MOST)
