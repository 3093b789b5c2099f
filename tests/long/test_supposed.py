# SPDX-License-Identifier: Apache-2.0

"""Hosts and amounts that are supposed first, and then are really there."""

import json

from nova import context as nova_context

from nova_ext_sched.cmd import capacity
from nova_ext_sched.cmd import drain
from nova_ext_sched.cmd import maintain
from nova_ext_sched.cmd import make_room
from nova_ext_sched.cmd import mend
from nova_ext_sched.cmd import survive
from tests.benchmarks import many_hosts
from tests.benchmarks import process
from tests.functional import base
from tests.functional import explain
from tests.functional import plans
from tests.functional import saved
from tests.long import devices

COMMANDS = {
    'capacity': capacity.Capacity,
    'maintain': maintain.Maintain,
    'make-room': make_room.MakeRoom,
    'mend': mend.Mend,
    'survive': survive.Survive,
}


class SupposedMixin(plans.MovesMixin):
    def ask_saved(self, *commands):
        """Return what commands answer for the cloud as it is in a file."""
        file = self.useFixture(saved.Saved())
        asked = file.ask(*([*one, '-f', 'json'] for one in commands))
        for one in asked:
            self.assertIn(one.status, (0, 3), one)
        return [json.loads(one.out) for one in asked]

    def ask(self, name, *args):
        out, err, status = explain.ask(COMMANDS[name], name, *args)
        self.assertIn(status, (0, 3), err)
        return json.loads(out)

    def count(self, document):
        return {one['name']: one['servers'] for one in document['flavors']}

    def compare(self, name, supposed, real):
        """Compare documents of a supposed cloud and of a real one."""
        if name == 'capacity':
            self.assertEqual(self.count(real), self.count(supposed))
            return
        keys = {'survive': 'failures', 'maintain': 'rounds'}
        key = keys.get(name, 'moves')
        self.assertNotEqual([], real[key])
        self.assertEqual(real[key], supposed[key])

    def take_away(self, host):
        """Take a host away; its servers move as the drain command plans it."""
        self.set_service(host, status='disabled')
        found = explain.ask(drain.Drain, 'drain', host)
        self.assertEqual(0, found.status, found)
        self.carry_out(found.plan)
        self.computes.pop(host).stop()
        [service] = self.admin_api.get_services(host=host)
        self.admin_api.api_delete(f'/os-services/{service["id"]}')
        for compute in self.computes.values():
            compute.manager.update_available_resource(
                nova_context.get_admin_context()
            )
        self.sync_instances()


class HostsTestCase(SupposedMixin, base.CloudTestCase):
    weights = {'host1': 400, 'host2': 300, 'host3': 200}
    host_filters = ('FailureDomainFilter',)
    options = {
        'request_filters': ['failure_domains'],
        'max_server_per_failure_domain': 1,
    }
    allocation_ratio = 1.0

    def test_more_hosts(self):
        self.aggregate('z', ['host1', 'host2', 'host3'], zone='west')
        for rack, hosts in (('a', ['host1']), ('b', ['host2', 'host3'])):
            self.aggregate(rack, hosts, metadata={'failure_domain': rack})
        flavor = self.flavor(name='four', vcpu=4)
        for host in ('host1', 'host1', 'host2', 'host3'):
            self.boot(az=f'west:{host}', flavor=flavor)
        added = ['--add-host', 'host1:3']
        commands = [
            ['capacity', '--flavor', flavor],
            ['capacity', '--flavor', flavor, '--availability-zone', 'west'],
            ['survive', '--lose', 'domain'],
            ['maintain', 'host1', 'host2'],
        ]
        supposed = self.ask_saved(*([*one, *added] for one in commands))
        for number, rack in enumerate('aba', 1):
            name = f'host1-new{number}'
            self._start_compute(name)
            self.add_host('z', name)
            self.add_host(rack, name)
        for (name, *args), one in zip(commands, supposed, strict=True):
            self.compare(name, one, self.ask(name, *args))
        [sentence] = {one['answer']['sentence'] for one in supposed[:1]}
        self.assertIn('If there were 3 more hosts like host1: ', sentence)

    def test_a_host_that_is_taken_away(self):
        self._start_compute('host4')
        self.aggregate('z', [*self.computes], zone='west')
        for rack, host in zip('abca', self.computes, strict=True):
            self.aggregate(f'{rack}{host}', [host], failure_domain=rack)
        flavors = [self.flavor(vcpu=number) for number in (2, 5)]
        hints = {'group': self.create_group()}
        for number, host in enumerate(self.computes):
            self.boot(az=f'west:{host}', flavor=flavors[number == 3])
        self.boot(az='west:host4', hints=hints, flavor=flavors[0])
        self.boot(az='west:host3', hints=hints, flavor=flavors[0])
        commands = [
            ['capacity', *(f'--flavor={one}' for one in flavors)],
            ['survive'],
            ['survive', '--lose', 'domain', '--flavor', flavors[0]],
            ['maintain', 'host1', 'host2'],
        ]
        away = ['--without-host', 'host4']
        supposed = self.ask_saved(*([*one, *away] for one in commands))
        self.take_away('host4')
        for (name, *args), one in zip(commands, supposed, strict=True):
            self.compare(name, one, self.ask(name, *args))
            self.assertEqual(
                [{'option': '--without-host', 'value': 'host4'}],
                one['supposed'],
            )

    def test_plans_without_a_host(self):
        """mend and make-room; with the host, they answer otherwise."""
        self._start_compute('host4')
        self.aggregate('z', [*self.computes], zone='west')
        for rack, host in zip('abcd', self.computes, strict=True):
            self.aggregate(rack, [host], failure_domain=rack)
        for host in ('host1', 'host2', 'host3'):
            for vcpu in (3, 2):
                self.boot(az=f'west:{host}', flavor=self.flavor(vcpu=vcpu))
        hints = {'group': self.create_group()}
        for host in ('host1', 'host2'):
            self.boot(az=f'west:{host}', hints=hints)
        self.set_metadata('b', {'failure_domain': 'a'})
        large = self.flavor(name='large', vcpu=8)
        commands = [
            ['mend', '--policy', 'failure-domain'],
            ['make-room', '--flavor', large],
        ]
        away = ['--without-host', 'host4']
        supposed = self.ask_saved(*([*one, *away] for one in commands))
        before = [self.ask(*one) for one in commands]
        fit = [one[1]['fit_now'] for one in (before, supposed)]
        self.assertEqual([1, 0], fit)
        self.take_away('host4')
        for (name, *args), one in zip(commands, supposed, strict=True):
            self.compare(name, one, self.ask(name, *args))

    def test_servers_without_a_place(self):
        large = self.flavor(vcpu=9)
        for host in self.computes:
            self.boot(az=f'nova:{host}', flavor=large, name=f'on-{host}')
        small = self.flavor(name='one', vcpu=1)
        file = self.useFixture(saved.Saved())
        away = ('--without-host', 'host1', '--without-host', 'host3')
        [found] = file.ask(
            ['capacity', '--flavor', small, *away, '-f', 'json']
        )
        self.assertEqual(3, found.status, found)
        document = json.loads(found.out)
        self.assertEqual({'one': 1}, self.count(document))
        [*_, said] = document['origin']['notes']
        self.assertEqual(
            'on-host1 on host1, on-host3 on host3 have no place, and are '
            'left out: 0 of 3 hosts can take it. 1 is full (VCPU), 2 are '
            'excluded by the request.',
            said,
        )

    def test_a_host_that_is_enabled(self):
        flavor = self.flavor(name='four', vcpu=4)
        self.set_service('host1', status='disabled')
        self.set_service('host2', forced_down=True)
        args = ('--flavor', flavor)
        enabled = ('--enable-host', 'host1', '--enable-host', 'host2')
        [supposed] = self.ask_saved(['capacity', *args, *enabled])
        live = self.ask('capacity', *args, *enabled)
        self.set_service('host1', status='enabled')
        self.set_service('host2', forced_down=False)
        real = self.ask('capacity', *args)
        self.assertEqual({'four': 6}, self.count(real))
        self.compare('capacity', supposed, real)
        self.compare('capacity', live, real)

    def test_ratios(self):
        flavor = self.flavor(name='four', vcpu=4)
        large = self.flavor(name='large', memory_mb=5000)
        self.boot(flavor=flavor)
        args = ('--flavor', flavor, '--flavor', large)
        options = {
            'cpu_allocation_ratio': 4.0,
            'ram_allocation_ratio': 1.5,
            'reserved_host_memory_mb': 2500,
        }
        given = [f'--option={name}={one}' for name, one in options.items()]
        supposed, refused = self.ask_saved(
            ['capacity', *args, *given],
            ['capacity', *args, '--option=initial_cpu_allocation_ratio=9.0'],
        )
        self.compare('capacity', refused, self.ask('capacity', *args))
        self.flags(**options)
        for compute in self.computes.values():
            compute.manager.update_available_resource(
                nova_context.get_admin_context()
            )
        real = self.ask('capacity', *args)
        self.assertEqual({'four': 29, 'large': 3}, self.count(real))
        self.compare('capacity', supposed, real)


class FewestTestCase(SupposedMixin, base.CloudTestCase):
    started = ('host1', 'host2')
    allocation_ratio = 1.0

    def test_fewest(self):
        """A server, three new ones, and a host that may fail: five hosts."""
        flavor = self.flavor(name='ten', vcpu=10)
        self.boot(flavor=flavor)
        args = ['--flavor', flavor, '--count', '3']
        found, others = self.ask_saved(
            ['survive', *args, '--add-host', 'host1:min'],
            ['survive', *args, '--add-host', 'host1:2'],
        )
        self.assertEqual(
            [{'option': '--add-host', 'value': 'host1:3'}], found['supposed']
        )
        self.assertIn(
            '3 more hosts are the fewest that are enough.',
            found['origin']['notes'],
        )
        spare = [one['flavors'][0]['spare'] for one in (found, others)]
        self.assertEqual([3, 2], spare)


class DevicesTestCase(SupposedMixin, devices.DevicesBase):
    """Pinned CPUs, NUMA nodes and PCI devices of one more host."""

    dedicated = '0-11'
    hosts = ('host1',)

    def test_one_more_host(self):
        nic = {'pci_passthrough:alias': 'nic:1'}
        flavors = [
            self.large(2, **devices.PINNED, **nic),
            self.large(6, **devices.PINNED),
        ]
        self.boot(flavors[0])
        args = [f'--flavor={one}' for one in flavors]
        [supposed] = self.ask_saved(['capacity', *args, '--add-host', 'host1'])
        self.hosts = ('host1-new1',)
        self.start()
        self.compare('capacity', supposed, self.ask('capacity', *args))

    def test_one_less(self):
        self.hosts = ('host2', 'host3')
        self.start()
        nic = {'pci_passthrough:alias': 'nic:1'}
        flavors = [
            self.large(2, **devices.PINNED, **nic),
            self.large(4, **devices.PINNED),
            # Of either cell: both are of the socket that the devices are of.
            self.large(
                2,
                **devices.PINNED,
                **nic,
                **{'hw:pci_numa_affinity_policy': 'socket'},
            ),
        ]
        for host, flavor in ((1, 0), (1, 1), (2, 0), (3, 0)):
            # nova's fake of libvirt migrates none that runs.
            self.boot_stopped(flavor=flavors[flavor], host=f'host{host}')
        commands = [
            ['capacity', *(f'--flavor={one}' for one in flavors)],
            ['survive'],
            ['maintain', 'host2'],
        ]
        supposed = self.ask_saved(
            *([*one, '--without-host', 'host1'] for one in commands)
        )
        self.take_away('host1')
        for (name, *args), one in zip(commands, supposed, strict=True):
            self.compare(name, one, self.ask(name, *args))


class CellsTestCase(SupposedMixin, devices.DevicesBase):
    """NUMA cells of hosts whose CPUs are given to more than one server."""

    hosts = ('host1', 'host2')

    def test_ratio(self):
        """Two cells of six CPUs: 9 may be used of each."""
        flavor = self.large(4, **{'hw:numa_nodes': '1'})
        args = ('--flavor', flavor)
        [supposed] = self.ask_saved(
            ['capacity', *args, '--option=cpu_allocation_ratio=1.5']
        )
        self.flags(cpu_allocation_ratio=1.5)
        for host in self.hosts:
            self.restart_compute_service(host)
        real = self.ask('capacity', *args)
        self.assertEqual([8], [*self.count(real).values()])
        self.compare('capacity', supposed, real)


class LiveTestCase(SupposedMixin, base.CloudTestCase):
    """The cloud itself, copied by a command in a process of its own."""

    started = ('host1', 'host2')
    hosts = 2
    allocation_ratio = 1.0
    engine = many_hosts.ManyHostsTestCase.engine

    def run_command(self, *args, status=0):
        found = self.processes.run(*args, '-f', 'json')
        self.assertEqual(status, found.status, found)
        return json.loads(found.out)

    def test_hosts_of_the_cloud_itself(self):
        flavor = self.flavor(name='four', vcpu=4)
        server = self.boot(az='nova:host1', flavor=flavor)
        self.processes = self.useFixture(process.Processes(self))
        args = ('capacity', '--flavor', flavor)
        more = self.run_command(*args, '--add-host', 'host1:2')
        less = self.run_command(*args, '--without-host', 'host1')
        for document, option, value in (
            (more, '--add-host', 'host1:2'),
            (less, '--without-host', 'host1'),
        ):
            self.assertEqual(
                [{'option': option, 'value': value}], document['supposed']
            )
            self.assertNotIn('origin', document)
        # What nova has is as it was.
        self.assertEqual('host1', self.host_of(server))
        for host in ('host1-new1', 'host1-new2'):
            self._start_compute(host)
        self.compare('capacity', more, self.ask(*args))
        for host in ('host1-new1', 'host1-new2', 'host1'):
            self.take_away(host)
        self.compare('capacity', less, self.ask(*args))
