# SPDX-License-Identifier: Apache-2.0

"""The share of the round-robin weigher in what nova-scheduler does.

10,000 hosts in 100 racks, three aggregates each, and a server group of 5,000.
The rest is nova's own code: compute nodes from the database, host states,
nova's default filters and all its weighers. What select_destinations does
besides, placement's answer above all, is not counted, so that the real share
is less.
"""

import statistics
import time
from unittest import mock

from nova import context
from nova import objects
import nova.conf
from nova.db.main import api as main_db
from nova.db.main import models
from nova.scheduler import host_manager
from oslo_utils import timeutils
from oslo_utils import uuidutils
import pytest
import sqlalchemy as sa

from nova_ext_sched import conf
from nova_ext_sched import filters
from nova_ext_sched import request_state
from nova_ext_sched.weighers import round_robin
from tests.benchmarks import test_failure_domains
from tests.unit.request_filters import base

CONF = nova.conf.CONF
RACKS, HOSTS_OF_RACK, MEMBERS = 100, 100, 5000
ROUNDS = 5
#: The share that is allowed.
SHARE = 0.02


def seconds(function):
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


class Cloud:
    def __init__(self, engine):
        self.ctxt = context.get_admin_context()
        self.hosts = [
            f'r{rack}h{number}'
            for rack in range(RACKS)
            for number in range(HOSTS_OF_RACK)
        ]
        with engine.begin() as connection:
            connection.execute(
                sa.insert(models.ComputeNode),
                [
                    self.node(number, host)
                    for number, host in enumerate(self.hosts)
                ],
            )
        now = timeutils.utcnow(with_timezone=True)
        self.services = {
            host: objects.Service(
                id=number,
                host=host,
                binary='nova-compute',
                disabled=False,
                forced_down=False,
                last_seen_up=now,
                created_at=now,
                updated_at=now,
                report_count=1,
            )
            for number, host in enumerate(self.hosts)
        }
        self.members = [uuidutils.generate_uuid() for _ in range(MEMBERS)]
        with (
            mock.patch.object(
                host_manager.HostManager, 'refresh_cells_caches'
            ),
            mock.patch.object(host_manager.HostManager, '_init_aggregates'),
            mock.patch.object(host_manager.HostManager, '_init_instance_info'),
        ):
            self.manager = host_manager.HostManager()
        [self.ours] = [
            weigher
            for weigher in self.manager.weighers
            if isinstance(weigher, round_robin.ServerGroupRoundRobinWeigher)
        ]
        self.fill_memory()

    @staticmethod
    def node(number, host):
        return {
            'uuid': uuidutils.generate_uuid(),
            'host': host,
            'hypervisor_hostname': host,
            'service_id': number,
            'vcpus': 64,
            'vcpus_used': number % 64,
            'memory_mb': 262144,
            'memory_mb_used': 1024 * (number % 200),
            'free_ram_mb': 262144 - 1024 * (number % 200),
            'local_gb': 2000,
            'local_gb_used': number % 900,
            'free_disk_gb': 2000 - number % 900,
            'disk_available_least': 2000 - number % 900,
            'hypervisor_type': 'QEMU',
            'hypervisor_version': 8002000,
            'cpu_info': '{}',
            'running_vms': number % 20,
            'current_workload': 0,
            'cpu_allocation_ratio': 4.0,
            'ram_allocation_ratio': 1.0,
            'disk_allocation_ratio': 1.0,
            'mapped': 1,
            'metrics': '[]',
            'numa_topology': None,
            'supported_instances': '[["x86_64", "kvm", "hvm"]]',
            'stats': '{"failed_builds": "0"}',
            'deleted': 0,
        }

    def fill_memory(self):
        manager = self.manager

        def aggregate(number, **metadata):
            manager.aggs_by_id[number] = objects.Aggregate(
                id=number,
                uuid=uuidutils.generate_uuid(),
                name=f'aggregate {number}',
                hosts=[],
                metadata=metadata,
            )

        for rack in range(RACKS):
            aggregate(rack, failure_domain=f'rack {rack}')
        aggregate(RACKS, availability_zone='nova')
        aggregate(RACKS + 1, ssd='true')
        for number, host in enumerate(self.hosts):
            manager.host_aggregates_map[host] = {
                number // HOSTS_OF_RACK,
                RACKS,
                RACKS + 1,
            }
            # A member on every second host, and others.
            uuids = [uuidutils.generate_uuid() for _ in range(20)]
            if number % 2:
                uuids[7] = self.members[number // 2]
            manager._instance_info[host] = {
                'instances': dict.fromkeys(uuids),
                'updated': True,
            }

    def spec(self, **hints):
        return base.request_spec(
            instance_uuid=self.members[-1],
            scheduler_hints=hints,
            ignore_hosts=None,
            pci_requests=None,
            numa_topology=None,
            requested_destination=None,
            instance_group=objects.InstanceGroup(
                uuid=uuidutils.generate_uuid(),
                policy='anti-affinity',
                policies=['anti-affinity'],
                members=self.members,
                hosts=[],
                _rules={'max_server_per_host': '3'},
            ),
        )

    def get_states(self):
        nodes = objects.ComputeNodeList.get_all(self.ctxt)
        return list(
            self.manager._get_host_states(
                self.ctxt, {'cell': nodes}, self.services
            )
        )

    def weigh(self, weighers, states, spec):
        return self.manager.weight_handler.get_weighed_objects(
            weighers, states, spec
        )


@pytest.fixture(scope='module')
def cloud(tmp_path_factory):
    conf.register_opts(CONF)
    CONF([], project='nova', default_config_files=[])
    objects.register_all()
    made, engine = test_failure_domains.facade(
        tmp_path_factory.mktemp('databases') / 'cell.db',
        models.BASE,
        [models.ComputeNode],
    )
    reset = main_db.context_manager.patch_factory(made)
    overrides = {
        'available_filters': [
            'nova.scheduler.filters.all_filters',
            filters.ALL_FILTERS,
        ],
        'weight_classes': [
            'nova.scheduler.weights.all_weighers',
            conf.round_robin.ALL_WEIGHERS,
        ],
    }
    # The heartbeats are of the time when the services were made.
    CONF.set_override('service_down_time', 86400)
    for name, value in overrides.items():
        CONF.set_override(name, value, 'filter_scheduler')
    yield Cloud(engine)
    CONF.clear_override('service_down_time')
    for name in overrides:
        CONF.clear_override(name, 'filter_scheduler')
    reset()
    engine.dispose()


@pytest.mark.parametrize(
    'hints', [{}, {'max_server_per_failure_domain': ['60']}]
)
def test_share(cloud, hints):
    weighers = cloud.manager.weighers
    # What our weigher adds is measured alone: of a second, a difference of
    # milliseconds is noise.
    alone, none, every, rest, theirs = [], [], [], [], []
    for _ in range(ROUNDS):
        reading, states = seconds(cloud.get_states)
        spec = cloud.spec(**hints)
        filtering, left = seconds(
            lambda: list(
                cloud.manager.get_filtered_hosts(states, spec)  # noqa: B023
            )
        )
        assert len(left) == len(cloud.hosts)
        rest.append(reading + filtering)
        for chosen, taken in (
            ([], none),
            ([cloud.ours], alone),
            (weighers, every),
            *(([one], theirs) for one in weighers if one is not cloud.ours),
        ):
            # As a request that was not weighed yet.
            request_state.forget(spec)
            taken.append(
                seconds(lambda: cloud.weigh(chosen, left, spec))[0]  # noqa: B023
            )
    ours = statistics.median(alone) - statistics.median(none)
    one_of_nova = statistics.median(theirs) - statistics.median(none)
    whole = statistics.median(rest) + statistics.median(every)
    print(
        f'\n{hints}: the weigher {ours * 1000:.0f} ms of '
        f'{whole * 1000:.0f} ms, {ours / whole:.1%}; all weighers '
        f'{statistics.median(every) * 1000:.0f} ms, one of nova '
        f'{one_of_nova * 1000:.0f} ms, ratio {ours / one_of_nova:.2f}'
    )
    assert ours / whole <= SHARE
