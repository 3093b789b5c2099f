# SPDX-License-Identifier: Apache-2.0

"""simulate of a cloud as export writes it: 300 hosts and 200 requests.

Each host is in a rack of 30. 160 are in isolated aggregates of four, 40 in
reserved ones of five, 20 in a zone of their own. In each of these parts the
first host has more room than the others, so that a request lands there. One
request in five is of a member of an anti-affinity group that fills its part,
so that it has one host left. The servers of some requests stand on the second
host of their part: they land elsewhere now.
"""

import collections
import json
import pathlib
import tempfile
import unittest
from uuid import NAMESPACE_URL
from uuid import uuid5

import os_traits

from nova_ext_sched.cmd.export import text
from nova_ext_sched.cmd.export import unsaid
from tests.benchmarks import process

HOSTS, REQUESTS = 300, 200
ISOLATED, RESERVED, RACKS = 40, 8, 10
#: Anti-affinity groups, each with as many members as hosts.
GROUPS, MEMBERS = 10, 4
PROJECTS = ('6f70656e737461636b20342065766572', 'c0ffee00' * 4)

#: How many servers stand elsewhere than now; those of groups do not.
FEW, MANY = 6, REQUESTS - GROUPS * MEMBERS
#: Seconds of processor time until a cloud is ready, and for its requests: a
#: minute and three, and half as much again, by which other work on the machine
#: lengthens them.
READY, RUN = 90, 270

NOVA_CONF = {
    'scheduler': {'limit_tenants_to_placement_aggregate': 'True'},
    'filter_scheduler': {
        'available_filters': [
            'nova.scheduler.filters.all_filters',
            'nova_ext_sched.filters.all_filters',
        ],
        'enabled_filters': [
            'ComputeFilter',
            'ComputeCapabilitiesFilter',
            'ImagePropertiesFilter',
            'ServerGroupAntiAffinityFilter',
            'ServerGroupAffinityFilter',
            'DifferentHostFilter',
            'IsolatedAggregatesFilter',
            'AggregateInstanceTypeFilter',
            'FailureDomainFilter',
        ],
        'weight_classes': [
            'nova.scheduler.weights.all_weighers',
            'nova_ext_sched.weighers.all_weighers',
        ],
    },
    'nova_ext_sched': {
        'enable_isolated_aggregate_filtering': 'True',
        'placement_req_required_member_prefix': ['reservation:'],
        'placement_req_default_forbidden_member_prefix': ['reservation:'],
        'failure_domain_key': 'rack',
    },
}
#: What nova-compute reports of a libvirt host.
TRAITS = [
    os_traits.COMPUTE_NODE,
    os_traits.OWNER_NOVA,
    *sorted(os_traits.get_traits('COMPUTE_IMAGE_TYPE_')),
    *sorted(os_traits.get_traits('COMPUTE_VOLUME_')),
    *sorted(os_traits.get_traits('HW_CPU_X86_'))[:50],
]


def inventories(times):
    """Return what a host has that is as large as some."""
    return {
        'DISK_GB': {
            'total': 4000 * times,
            'allocation_ratio': 1.0,
            'max_unit': 4000 * times,
        },
        'MEMORY_MB': {
            'total': 262144 * times,
            'reserved': 4096,
            'allocation_ratio': 1.0,
            'max_unit': 262144 * times,
        },
        'VCPU': {
            'total': 64 * times,
            'allocation_ratio': 4.0,
            'max_unit': 64 * times,
        },
    }


class Parts:
    """The hosts, and the part of the cloud that each is in.

    :ivar isolated: hosts of each isolated aggregate
    :ivar reserved: hosts of each reserved one
    :ivar zone: hosts of the zone
    :ivar general: all others
    """

    def __init__(self):
        self.hosts = [f'compute-{number:03}' for number in range(HOSTS)]
        left = [*self.hosts]

        def take(number):
            taken, left[:number] = left[:number], []
            return taken

        self.isolated = [take(MEMBERS) for _ in range(ISOLATED)]
        self.reserved = [take(5) for _ in range(RESERVED)]
        self.zone = take(20)
        self.general = left
        #: What the best host of each part is larger by. Requests of no part
        #: land in the zone too.
        self.sizes = {
            part[0]: 1 for part in (*self.isolated, *self.reserved, self.zone)
        } | {self.general[0]: 2}


def aggregates(parts):
    found = {
        f'licence {number}': {
            'hosts': hosts,
            'metadata': {f'trait:CUSTOM_LICENCE_{number}': 'required'},
        }
        for number, hosts in enumerate(parts.isolated)
    }
    found |= {
        f'pool {number}': {
            'hosts': hosts,
            'metadata': {f'reservation:{number}': 'true'},
        }
        for number, hosts in enumerate(parts.reserved)
    }
    found |= {
        f'rack {number}': {
            'hosts': parts.hosts[number::RACKS],
            'metadata': {'rack': f'r{number}'},
        }
        for number in range(RACKS)
    }
    found['branch'] = {'hosts': parts.zone, 'availability_zone': 'edge'}
    found['fast disks'] = {
        'hosts': parts.general[:30],
        'metadata': {'storage': 'fast'},
    }
    return found


def flavors():
    small = {'vcpus': 1, 'memory_mb': 512, 'disk_gb': 5}
    specs = {
        'small': {},
        'fast': {'storage': 'fast'},
        **{
            f'licensed {number}': {
                f'trait:CUSTOM_LICENCE_{number}': 'required'
            }
            for number in range(30)
        },
        **{
            f'reserved {number}': {f'reservation:{number}': 'true'}
            for number in range(RESERVED)
        },
    }
    return {
        name: {**small, 'extra_specs': of} if of else small
        for name, of in specs.items()
    }


def requests(parts):
    """Yield a step's keys, and the hosts of its part, the best one first."""
    for number in range(REQUESTS):
        turn, kind = divmod(number, 10)
        match kind:
            case 0 | 1:
                member, index = divmod(2 * turn + kind, GROUPS)
                step = {
                    'flavor': f'licensed {index}',
                    'group': f'group {index}',
                }
                yield step, parts.isolated[index][member:]
            case 2 | 3 | 4:
                index = GROUPS + (3 * turn + kind) % 20
                yield {'flavor': f'licensed {index}'}, parts.isolated[index]
            case 5:
                index = turn % RESERVED
                yield {'flavor': f'reserved {index}'}, parts.reserved[index]
            case 6:
                step = {'flavor': 'small', 'availability_zone': 'edge'}
                yield step, parts.zone
            case 7:
                yield {'flavor': 'fast'}, parts.general
            case _:
                yield {'flavor': 'small'}, parts.general


def describe(elsewhere):
    """Return a document as export writes it.

    :param elsewhere: how many servers stand on the second host of their part
    """
    parts = Parts()
    servers, steps = {}, []
    for number, (step, hosts) in enumerate(requests(parts)):
        uuid = str(uuid5(NAMESPACE_URL, str(number)))
        moved = 'group' not in step and elsewhere > 0
        elsewhere -= moved
        project = PROJECTS[number % 2]
        servers[uuid] = {
            'host': hosts[moved],
            'flavor': step['flavor'],
            'project': project,
        }
        if group := step.get('group'):
            # A group is of one project.
            project = servers[uuid]['project'] = PROJECTS[0]
            servers[uuid]['group'] = group
        steps.append(
            {
                'boot': uuid,
                'image': 'linux',
                'project': project,
                **step,
                'expect': hosts[moved],
            }
        )
    shared = [inventories(1), inventories(2), inventories(3)]
    return {
        'nova_conf': NOVA_CONF,
        'projects': PROJECTS,
        'hosts': [
            {
                'name': host,
                'inventories': shared[parts.sizes.get(host, 0)],
                'traits': [*TRAITS, *licences],
                'used': {
                    'DISK_GB': 100,
                    'MEMORY_MB': 16384,
                    'VCPU': 16 + number % 16,
                },
                'compute_node': {
                    'disk_available_least': 3000,
                    'num_instances': 8,
                    'hypervisor_type': 'QEMU',
                    'hypervisor_version': 8002000,
                    'supported_instances': [['x86_64', 'kvm', 'hvm']],
                },
            }
            for number, host in enumerate(parts.hosts)
            for licences in [
                [
                    f'CUSTOM_LICENCE_{index}'
                    for index, hosts in enumerate(parts.isolated)
                    if host in hosts
                ]
            ]
        ],
        'imply_traits': False,
        'aggregates': aggregates(parts),
        'flavors': flavors(),
        'images': {'linux': {'properties': {'hw_machine_type': 'q35'}}},
        'server_groups': {
            f'group {number}': {
                'policy': 'anti-affinity',
                'project': PROJECTS[0],
                'uuid': str(uuid5(NAMESPACE_URL, f'group {number}')),
            }
            for number in range(GROUPS)
        },
        'servers': servers,
        'independent': True,
        'steps': steps,
    }


def run(described):
    """Run a document as a file; return the command's answer."""
    missing = unsaid.Unsaid()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, 'cloud.yaml')
        file.write_text(text.write(described, missing))
        answer = process.run('simulate', file, '-f', 'json')
    # The simulator takes the document as it is.
    assert not [*missing], [*missing]
    return answer


class LargeCloudTest(unittest.TestCase):
    def show(self, what, answer):
        print(
            f'SIMULATE {HOSTS} hosts, {what}: {answer.seconds:.1f} s, '
            f'{answer.cpu:.1f} s of CPU; at most {answer.memory:.0f} MiB',
            flush=True,
        )

    def test_requests(self):
        """Few requests land elsewhere, then all but those of groups."""
        ready = run({**describe(0), 'steps': []})
        self.show('no request', ready)
        self.assertEqual(0, ready.status, ready.err)
        for elsewhere in (FEW, MANY):
            answer = run(describe(elsewhere))
            self.show(f'{REQUESTS} requests, {elsewhere} elsewhere', answer)
            self.assertEqual(3, answer.status, answer.err)
            results = collections.Counter(
                row['Result'] for row in json.loads(answer.out)
            )
            self.assertEqual(
                {'ok': REQUESTS - elsewhere, 'DIFFERS': elsewhere}, results
            )
            self.assertLess(answer.cpu - ready.cpu, RUN)
        self.assertLess(ready.cpu, READY)
