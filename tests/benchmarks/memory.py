# SPDX-License-Identifier: Apache-2.0

"""What a nova-scheduler holds after thousands of requests, beside plain nova.

``python -m tests.benchmarks.memory [REQUESTS]`` prints a table: the resident
memory of the process, and what Python has allocated by tracemalloc, for this
package with every policy on, for its stages alone and for plain nova. Each run
has a process of its own. Twenty minutes for 5,000 requests.

The requests are nova's own RequestSpecs to a real SchedulerManager, with a
real placement. Each differs from those before it in all that a cloud changes
and a member writes: flavor, project, image, hints, and a server group with
members that are gone; and after every tenth an aggregate has new metadata. So
everything that is remembered is filled as fast as it can be. What is placed is
deleted again, as by a member and nova-compute.
"""

import collections
import functools
import gc
import logging
import os
import pathlib
import random
import re
import subprocess
import sys
import tracemalloc
import unittest

import cachetools
import fixtures
from nova import context
from nova import exception
from nova import objects
from nova.scheduler import request_filter
from oslo_utils import uuidutils

import nova_ext_sched
from nova_ext_sched import log_once
from nova_ext_sched import request_state
from tests.benchmarks import test_select_destinations
from tests.functional import base
from tests.unit.request_filters import base as specs

AFTER = (500, 1_000, 2_000, 5_000)
HOSTS = int(os.environ.get('NOVA_EXT_SCHED_TEST_HOSTS', '20'))
FORMER = 60
#: Where what we keep is allocated. More frames would make it crawl.
OURS = [
    tracemalloc.Filter(True, str(pathlib.Path(module.__file__).parent / '*'))
    for module in (nova_ext_sched, cachetools)
]


class NoPlugin(fixtures.Fixture):
    """In place of base.Plugin, for plain nova."""

    def __init__(self, *args, **options):
        super().__init__()


class OursTest(base.CloudTestCase):
    """Every policy is on.

    :cvar requests: how many
    :cvar traced: whether tracemalloc runs, which changes the resident memory
    """

    requests = AFTER[-1]
    traced = False
    host_filters = test_select_destinations.SelectDestinationsTest.host_filters
    options = {
        **test_select_destinations.SelectDestinationsTest.options,
        'member_sources': ['flavor', 'hint'],
    }
    weigher_classes = ('nova_ext_sched.weighers.all_weighers',)
    weights = {f'host{i}': 0 for i in range(HOSTS)}

    def setUp(self):
        super().setUp()
        self.random = random.Random(57)
        self.manager = self.scheduler_service.manager
        self.ctxt = context.get_admin_context()
        for rack in range(5):
            self.aggregate(
                f'rack {rack}',
                [f'host{number}' for number in range(rack, HOSTS, 5)],
                failure_domain=f'r{rack}',
                ssd='true',
            )
        for i in range(200):
            self.aggregate(
                f'closed {i}',
                metadata={
                    f'trait:CUSTOM_T{i}': 'required',
                    f'reservation:{i}': 'true',
                },
            )
        # The harness keeps every line of the log, and every notification.
        self.flags(notification_format='unversioned', group='notifications')
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    def request_spec(self, number):
        """Return a request like none before."""
        flavor = specs.flavor(
            id=number,
            flavorid=str(number),
            extra_specs={
                'ssd': self.random.choice(['true', '<or> true <or> ~', '*']),
                # Malformed, each in another way.
                f'other:key{number}': f'>= x{number}',
            },
        )
        hints = self.random.choice(
            [
                {},
                {'different_failure_domain': ['true']},
                {'max_server_per_failure_domain': [str(number % 9 + 1)]},
                {'different_failure_domain': [f'value {number}']},
                {'reservation': [f'{number % 400}']},
            ]
        )
        policy = self.random.choice(['anti-affinity', 'soft-anti-affinity'])
        server = uuidutils.generate_uuid()
        return specs.request_spec(
            flavor=flavor,
            image=objects.ImageMeta(
                id=uuidutils.generate_uuid(),
                properties=objects.ImageMetaProps(
                    os_distro=f'distro {number}'
                ),
            ),
            instance_uuid=server,
            project_id=uuidutils.generate_uuid(dashed=False),
            user_id='user',
            num_instances=1,
            availability_zone=None,
            ignore_hosts=None,
            pci_requests=objects.InstancePCIRequests(requests=[]),
            numa_topology=None,
            security_groups=objects.SecurityGroupList(objects=[]),
            retry=None,
            limits=objects.SchedulerLimits(),
            scheduler_hints=hints,
            instance_group=objects.InstanceGroup(
                uuid=uuidutils.generate_uuid(),
                policy=policy,
                policies=[policy],
                rules={},
                members=[
                    server,
                    *(uuidutils.generate_uuid() for _ in range(FORMER)),
                ],
                hosts=[],
            ),
        )

    def ask(self, number):
        """Make a request, and delete what it placed; whether it did."""
        if number % 10 == 0:
            self.set_metadata(
                f'closed {number % 200}',
                {
                    'note': f'value {number}',
                    f'trait:CUSTOM_T{number % 200}': f'Required{number}',
                    'force_metadata_check': f'perhaps {number}',
                },
            )
        return self.select(self.request_spec(number))

    def select(self, spec):
        """Ask for a host as nova does; return whether there is one."""
        server = spec.instance_uuid
        try:
            [[chosen, *_]] = self.manager.select_destinations(
                self.ctxt,
                spec_obj=spec,
                instance_uuids=[server],
                return_objects=True,
                return_alternates=True,
            )
        except Exception as exc:
            # Of oslo.messaging, around nova's NoValidHost.
            if getattr(exc, 'exc_info', [None])[0] is not (
                exception.NoValidHost
            ):
                raise
            return False
        self.manager.placement_client.delete_allocation_for_instance(
            self.ctxt, server, force=True
        )
        self.manager.delete_instance_info(
            self.ctxt, chosen.service_host, server
        )
        return True

    def forget(self):
        """Forget what the harness alone keeps."""
        self.notifier.reset()
        self.queries.clear()

    def test_memory(self):
        placed = 0
        if self.traced:
            tracemalloc.start()
        for number in range(1, self.requests + 1):
            placed += self.ask(number)
            self.forget()
            if number in AFTER or number == self.requests:
                gc.collect()
                print(number, placed, *self.measure(), flush=True)
        for name, size in sorted(self.kept()):
            print(f'# {name}: {size}')

    def measure(self):
        """Yield MiB: resident, or allocated in all and by our code."""
        if self.traced:
            ours = tracemalloc.take_snapshot().filter_traces(OURS)
            yield f'{tracemalloc.get_traced_memory()[0] / 2**20:.2f}'
            yield f'{sum(one.size for one in ours.traces) / 2**20:.2f}'
        else:
            status = pathlib.Path('/proc/self/status').read_text()
            [kib] = re.findall(r'(?m)^VmRSS:\s+(\d+) kB', status)
            yield f'{int(kib) / 1024:.1f}'

    @staticmethod
    def kept():
        """Yield each thing of ours that remembers, and how much it holds."""
        inner = collections.defaultdict(list)
        for one in gc.get_objects():
            if isinstance(one, cachetools.Cache):
                inner[f'{type(one).__name__} of {one.maxsize}'].append(
                    one.currsize
                )
            elif isinstance(one, log_once.LogOnce):
                held = len(one._seen), len(one._more)
                yield f'log {one._logger.logger.name}', held
            elif isinstance(one, functools._lru_cache_wrapper):
                if one.__module__.startswith(nova_ext_sched.__name__):
                    yield one.__qualname__, one.cache_info()
        yield 'states of requests', len(request_state.states)
        for name, sizes in inner.items():
            yield name, f'{len(sizes)} of them, {max(sizes)} in the largest'


class StagesTest(OursTest):
    """The three stages alone, on one reading of the hosts.

    Placement works in the same process here, and nova reads the hosts for
    each request: what those keep is not ours, and takes most of the time.
    """

    def setUp(self):
        super().setUp()
        # The hosts are read once, and are up for good.
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.servicegroup.api.API.service_is_up', lambda *_: True
            )
        )
        self.known = self.manager.host_manager
        nodes = map(self._get_provider_uuid_by_host, self.weights)
        self.states = list(
            self.known.get_host_states_by_uuids(self.ctxt, [*nodes], None)
        )

    def select(self, spec):
        try:
            request_filter.process_reqspec(self.ctxt, spec)
        except exception.RequestFilterFailed:
            return False
        hosts = self.known.get_filtered_hosts(self.states, spec)
        return bool(hosts and self.known.get_weighed_hosts(hosts, spec))


class PlainTest(OursTest):
    """nova alone, asked the same."""

    weigher_classes = ()

    def setUp(self):
        self.useFixture(
            fixtures.MonkeyPatch('tests.functional.base.Plugin', NoPlugin)
        )
        super().setUp()


def main() -> None:
    if sys.argv[1:2] == ['run']:
        name, requests, traced = sys.argv[2:]
        case = globals()[name]
        case.requests, case.traced = int(requests), traced == 'True'
        result = unittest.TextTestRunner(verbosity=0).run(case('test_memory'))
        sys.exit(not result.wasSuccessful())
    requests = sys.argv[1:] or [str(AFTER[-1])]
    for name in ('OursTest', 'StagesTest', 'PlainTest'):
        for traced in (False, True):
            print(f'{name}, {"tracemalloc" if traced else "resident"}: MiB')
            subprocess.run(
                [
                    *(sys.executable, '-m', 'tests.benchmarks.memory', 'run'),
                    *(name, *requests, str(traced)),
                ],
                check=True,
            )


if __name__ == '__main__':
    main()
