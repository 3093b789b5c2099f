# SPDX-License-Identifier: Apache-2.0

"""The share of select_destinations that is ours, with every policy on.

A real nova and placement: 20 hosts in 5 racks, 200 aggregates that are
isolated and reserved, a server group of 8, and a ninth server again and again.
In processor time. A larger cloud makes the rest of select_destinations longer:
placement's answer, and nova's reading of host states and its weighers.
"""

import collections
import functools
import statistics
import time

import fixtures
from nova.scheduler import manager
from nova.scheduler import request_filter as nova_request_filter

from nova_ext_sched.filters import aggregate_instance_type
from nova_ext_sched.filters import anti_affinity as anti_affinity_filter
from nova_ext_sched.filters import failure_domain
from nova_ext_sched.filters import isolation as isolation_filter
from nova_ext_sched.request_filters import (
    failure_domain as failure_domain_request_filter,
)
from nova_ext_sched.request_filters import (
    isolation as isolation_request_filter,
)
from nova_ext_sched.request_filters import (
    reservation as reservation_request_filter,
)
from tests.functional import base

REQUEST_FILTERS = (
    isolation_request_filter.isolate_aggregates,
    reservation_request_filter.reserved_aggregates,
    failure_domain_request_filter.failure_domains,
)
HOST_FILTERS = (
    aggregate_instance_type.AggregateInstanceTypeFilter,
    failure_domain.FailureDomainFilter,
    isolation_filter.IsolatedAggregatesFilter,
    anti_affinity_filter.ServerGroupAntiAffinityFilter,
)
WHOLE = 'select_destinations'


def timed(fn, times):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        start = time.process_time()
        try:
            return fn(*args, **kwargs)
        finally:
            times.append(time.process_time() - start)

    return wrapper


class SelectDestinationsTest(base.CloudTestCase):
    host_filters = tuple(
        cls.__name__
        for cls in HOST_FILTERS
        # In nova's default of enabled_filters.
        if cls.__name__ != 'ServerGroupAntiAffinityFilter'
    )
    options = {
        'enable_isolated_aggregate_filtering': True,
        'placement_req_required_member_prefix': ['reservation:'],
        'placement_req_default_forbidden_member_prefix': ['reservation:'],
        'max_server_per_failure_domain': 2,
    }
    weights = {f'host{i}': 100 - i for i in range(20)}

    def setUp(self):
        self.spent = collections.defaultdict(list)
        # Before the services start: their RPC server keeps what it calls.
        self._time(manager.SchedulerManager, WHOLE)
        for cls in HOST_FILTERS:
            self._time(cls, 'filter_all', cls.__name__)
        super().setUp()
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.scheduler.request_filter.ALL_REQUEST_FILTERS',
                [
                    timed(fn, self.spent[fn.__name__])
                    if fn in REQUEST_FILTERS
                    else fn
                    for fn in nova_request_filter.ALL_REQUEST_FILTERS
                ],
            )
        )

    def _time(self, owner, name, label=None):
        wrapped = timed(getattr(owner, name), self.spent[label or name])
        self.useFixture(fixtures.MockPatchObject(owner, name, wrapped))

    def test_share(self):
        for i in range(200):
            self.aggregate(
                f'closed {i}',
                metadata={
                    f'trait:CUSTOM_T{i}': 'required',
                    f'reservation:{i}': 'true',
                },
            )
        for rack in range(5):
            self.aggregate(
                f'rack {rack}',
                [f'host{4 * rack + i}' for i in range(4)],
                failure_domain=f'r{rack}',
                ssd='true',
            )
        group = self.create_group()
        flavor = self.flavor(ssd='true')

        def boot():
            return self.boot(flavor=flavor, hints={'group': group})

        for _ in range(8):
            boot()
        for times in self.spent.values():
            times.clear()
        for _ in range(10):
            self._delete_server(boot())
        medians = {
            name: statistics.median(times)
            for name, times in self.spent.items()
        }
        self.assertEqual(
            1 + len(REQUEST_FILTERS) + len(HOST_FILTERS), len(medians)
        )
        whole = medians.pop(WHOLE)
        for name, median in [(WHOLE, whole), *sorted(medians.items())]:
            print(f'{name}: {median * 1000:.1f} ms, {median / whole:.1%}')
        print(f'ours: {sum(medians.values()) / whole:.0%}')
        self.assertLess(sum(medians.values()), whole / 2)
