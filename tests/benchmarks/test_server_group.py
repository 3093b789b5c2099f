# SPDX-License-Identifier: Apache-2.0

"""A request of a large server group, beside plain nova's.

A group of 200 on 8 hosts in 4 racks, with everything of ours on, without and
with a limit of failure domains, which asks where each member stands; with none
and 100 isolated aggregates, beside a nova that isolates nothing; one request,
and 40 at once, in threads as nova-scheduler has them. In processor time,
without that of placement, which is a process of its own::

    OS_NOVA_DISABLE_EVENTLET_PATCHING=1 python -m testtools.run \\
        tests.benchmarks.test_server_group
"""

from concurrent import futures
import gc
import logging
import statistics
import threading
import time

import fixtures
from nova import context
from nova import objects
from nova import utils
from nova.scheduler import manager
from nova.scheduler import request_filter
from oslo_utils import uuidutils
from placement import handler

from nova_ext_sched import conf
from tests.benchmarks import many_hosts
from tests.benchmarks import rows

ROUNDS = 40
AT_ONCE = 40
ISOLATED = 100
#: What is allowed of plain nova's time: by whether the group has a limit of
#: failure domains, how many isolated aggregates there are, and how many
#: requests come at once.
SHARES = {
    (False, 0, 1): 1.25,
    (True, 0, 1): 1.4,
    # Aggregates stay.
    (False, ISOLATED, 1): 1.3,
    (True, ISOLATED, 1): 1.45,
    (False, ISOLATED, AT_ONCE): 1.4,
    (True, ISOLATED, AT_ONCE): 1.4,
}


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
        lock = threading.Lock()
        call = handler.PlacementHandler.__call__

        def timed_call(*args):
            start = time.thread_time()
            try:
                return call(*args)
            finally:
                spent = time.thread_time() - start
                with lock:
                    self.in_placement += spent

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

    def _specs(self, spec, count):
        """Return requests of new members, which have no cell yet."""
        mappings = self.table('nova_api.instance_mappings')
        row = rows.read(*mappings)[0] | {'cell_id': None}
        new = [uuidutils.generate_uuid() for _ in range(count)]
        rows.insert(*mappings, [row | {'instance_uuid': one} for one in new])
        rows.insert(
            *self.table('nova_api.instance_group_member'),
            [{'group_id': self.group_id, 'instance_uuid': one} for one in new],
        )
        specs = []
        for one in new:
            specs.append(spec.obj_clone())
            specs[-1].instance_uuid = one
            specs[-1].instance_group.members += new
        return specs

    def _remove(self, specs):
        new = [spec.instance_uuid for spec in specs]
        for name in (
            'nova_api.instance_mappings',
            'nova_api.instance_group_member',
        ):
            engine, table = self.table(name)
            with engine.begin() as connection:
                connection.execute(
                    table.delete().where(table.c.instance_uuid.in_(new))
                )

    def _select(self, made, spec, count):
        """Return the processor time of each of some requests at once."""
        specs = self._specs(spec, count)

        def select(one):
            return made.select_destinations(
                context.get_admin_context(),
                spec_obj=one,
                instance_uuids=[one.instance_uuid],
                return_objects=True,
                return_alternates=True,
            )

        gc.collect()
        self.in_placement = 0.0
        start = time.process_time()
        if count == 1:
            select(specs[0])
        else:
            with futures.ThreadPoolExecutor(count) as pool:
                list(pool.map(select, specs))
        spent = time.process_time() - start - self.in_placement
        for one in specs:
            made.placement_client.delete_allocation_for_instance(
                context.get_admin_context(), one.instance_uuid, force=True
            )
            for of_host in made.host_manager._instance_info.values():
                of_host['instances'].pop(one.instance_uuid, None)
        self._remove(specs)
        return spent / count

    def _compare(self, spec, limit, isolated, at_once):
        rounds = ROUNDS if at_once == 1 else 6
        warm_up = rounds // 6
        times = ([], [])
        self.flags(
            group='nova_ext_sched',
            max_server_per_failure_domain=1000 if limit else 0,
        )
        for round_ in range(rounds + warm_up):
            for whose, (made, options, filters) in zip(
                times, (self.ours, self.plain), strict=True
            ):
                self.flags(group='filter_scheduler', **options)
                request_filter.ALL_REQUEST_FILTERS[:] = filters
                spent = self._select(made, spec, at_once)
                if round_ >= warm_up:
                    whose.append(spent)
        mine, novas = map(statistics.median, times)
        print(
            f'\nGROUP of 200 on 8 hosts{", a limit" if limit else ""}, '
            f'{isolated} isolated aggregates, {at_once} at once: '
            f'{mine * 1000:.1f} ms, nova {novas * 1000:.1f} ms, '
            f'{mine / novas:.2f}'
        )
        return mine / novas

    def test_share(self):
        created = self.create_group(1000)
        groups = rows.read_ids(*self.table('nova_api.instance_groups'))
        self.group_id = groups[created]
        members = self.servers[:200]
        rows.insert(
            *self.table('nova_api.instance_group_member'),
            [
                {'group_id': self.group_id, 'instance_uuid': one}
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
        self.ours = self._manager(
            available_filters=config.available_filters,
            enabled_filters=config.enabled_filters,
            weight_classes=[
                'nova.scheduler.weights.all_weighers',
                conf.weighers.ALL_WEIGHERS,
            ],
        )
        request_filter.ALL_REQUEST_FILTERS[:] = self.plain_filters
        self.plain = self._manager(
            available_filters=['nova.scheduler.filters.all_filters'],
            enabled_filters=[
                one
                for one in config.enabled_filters
                if one not in self.host_filters
            ],
            weight_classes=['nova.scheduler.weights.all_weighers'],
        )
        created = 0
        shares = {}
        for case in SHARES:
            limit, isolated, at_once = case
            # Green threads tell no processor time of one thread.
            if at_once > 1 and not utils.concurrency_mode_threading():
                continue
            for number in range(created, isolated):
                self.isolate(f'isolated{number}', [], f'CUSTOM_{number}')
            created = max(created, isolated)
            shares[case] = self._compare(spec, *case)
        self.assertEqual(
            {}, {k: v for k, v in shares.items() if v > SHARES[k]}
        )
