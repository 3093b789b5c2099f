# SPDX-License-Identifier: Apache-2.0

"""A request of a large server group, beside plain nova's.

A group of 200 on 8 hosts in 4 racks, with everything of ours on: its limit for
failure domains asks where each member stands. In processor time, without that
of placement, which is a process of its own.
"""

import gc
import logging
import statistics
import time

import fixtures
from nova import context
from nova import objects
from nova.scheduler import manager
from nova.scheduler import request_filter
from oslo_utils import uuidutils
from placement import handler

from nova_ext_sched import conf
from tests.benchmarks import many_hosts
from tests.benchmarks import rows

ROUNDS = 60
#: What is allowed of plain nova's time. It was 1.6 with four selects over the
#: members, and 1.24 to 1.28 in five runs with the one that is left: that takes
#: 1.8 of the 5 ms that are more than nova's. With failure domains alone it is
#: 1.16 to 1.21.
SHARE = 1.35


class ServerGroupTest(many_hosts.ManyHostsTestCase):
    hosts = 8
    servers_of_a_host = 25
    racks = 4
    host_filters = (
        'AggregateInstanceTypeFilter',
        'FailureDomainFilter',
        'IsolatedAggregatesFilter',
    )
    options = {
        'enable_isolated_aggregate_filtering': True,
        'placement_req_required_member_prefix': ['reservation:'],
        'placement_req_default_forbidden_member_prefix': ['reservation:'],
        'max_server_per_failure_domain': 1000,
    }

    def setUp(self):
        self.plain_filters = list(request_filter.ALL_REQUEST_FILTERS)
        self.flags(
            server_group_members=-1,
            instances=-1,
            cores=-1,
            ram=-1,
            group='quota',
        )
        super().setUp()
        logging.getLogger().setLevel(logging.INFO)
        self.in_placement = 0.0
        call = handler.PlacementHandler.__call__

        def timed_call(*args):
            start = time.process_time()
            try:
                return call(*args)
            finally:
                self.in_placement += time.process_time() - start

        self.useFixture(
            fixtures.MockPatchObject(
                handler.PlacementHandler, '__call__', timed_call
            )
        )

    def _manager(self, **options):
        self.flags(group='filter_scheduler', **options)
        made = manager.SchedulerManager()
        known = made.host_manager
        self._wait_for_assert(
            lambda: self.assertLess(self.hosts, len(known._instance_info)),
            max_retries=240,
        )
        # As nova-compute says every two minutes.
        for of_host in known._instance_info.values():
            of_host['updated'] = True
        filters = list(request_filter.ALL_REQUEST_FILTERS)
        return made, options, filters

    def _select(self, made, spec):
        spec = spec.obj_clone()
        spec.instance_uuid = uuidutils.generate_uuid()
        ctxt = context.get_admin_context()
        self.in_placement = 0.0
        gc.collect()
        start = time.process_time()
        made.select_destinations(
            ctxt,
            spec_obj=spec,
            instance_uuids=[spec.instance_uuid],
            return_objects=True,
            return_alternates=True,
        )
        spent = time.process_time() - start - self.in_placement
        made.placement_client.delete_allocation_for_instance(
            ctxt, spec.instance_uuid, force=True
        )
        for of_host in made.host_manager._instance_info.values():
            of_host['instances'].pop(spec.instance_uuid, None)
        return spent

    def test_share(self):
        created = self.create_group(1000)
        groups = rows.read_ids(*self.table('nova_api.instance_groups'))
        members = self.servers[:200]
        rows.insert(
            *self.table('nova_api.instance_group_member'),
            [
                {'group_id': groups[created], 'instance_uuid': one}
                for one in members
            ],
        )
        first = self.boot(hints={'group': created})
        spec = self.stored_spec(first)
        group = objects.InstanceGroup.get_by_uuid(
            context.get_admin_context(), created
        )
        group.hosts = [f'copy{number}' for number in range(self.hosts)]
        spec.instance_group = group
        spec.requested_resources = []
        config = manager.CONF.filter_scheduler
        ours = self._manager(
            available_filters=config.available_filters,
            enabled_filters=config.enabled_filters,
            weight_classes=[
                'nova.scheduler.weights.all_weighers',
                conf.round_robin.ALL_WEIGHERS,
            ],
        )
        request_filter.ALL_REQUEST_FILTERS[:] = self.plain_filters
        plain = self._manager(
            available_filters=['nova.scheduler.filters.all_filters'],
            enabled_filters=[
                one
                for one in config.enabled_filters
                if one not in self.host_filters
            ],
            weight_classes=['nova.scheduler.weights.all_weighers'],
        )
        times = ([], [])
        for round_ in range(ROUNDS + 5):
            for whose, (made, options, filters) in zip(
                times, (ours, plain), strict=True
            ):
                self.flags(group='filter_scheduler', **options)
                request_filter.ALL_REQUEST_FILTERS[:] = filters
                spent = self._select(made, spec)
                if round_ >= 5:
                    whose.append(spent)
        mine, novas = map(statistics.median, times)
        print(
            f'\nGROUP of 200 on 8 hosts: {mine * 1000:.1f} ms, nova '
            f'{novas * 1000:.1f} ms, {mine / novas:.2f}'
        )
        self.assertLessEqual(mine / novas, SHARE)
