# SPDX-License-Identifier: Apache-2.0

"""Random clouds: what survive --hold keeps free is enough once all is full.

Hosts differ in size, NUMA cells, devices, traits, reservations and failure
domains. The hosts to keep are marked and emptied, the others filled until
nothing more fits. Then each host fails in turn and nova evacuates its servers
in survive's order: stranded is nobody whom survive does not name, nor of a
kind that ``--hold`` did not name.

NOVA_EXT_SCHED_TEST_HOLD is the number of clouds, 5 by default. With
NOVA_EXT_SCHED_TEST_HOLD_ORDER=random nova evacuates in any order; who is
stranded then is printed.
"""

import os
import random
import typing

import ddt
from nova.tests.functional.api import client

from tests.functional import audits
from tests.functional import explain
from tests.functional import explain_driver
from tests.functional import plans
from tests.long import test_hold

CASES = int(os.environ.get('NOVA_EXT_SCHED_TEST_HOLD', '5'))
IN_ANY_ORDER = os.environ.get('NOVA_EXT_SCHED_TEST_HOLD_ORDER') == 'random'
HOSTS = tuple(f'host{number}' for number in range(1, 6))
# Kinds of hosts: CPUs, whether there are NUMA cells, and devices.
KINDS = ((6, False, 0), (4, False, 0), (6, True, 0), (6, True, 2))
NUMA = {'hw:numa_nodes': '1'}
DEVICE = {'pci_passthrough:alias': 'nic:1'}
WINDOWS = {'trait:CUSTOM_WINDOWS': 'required'}
LEASED = {'reservation:lease': 'true'}
#: Flavors: CPUs and extra specs.
FLAVORS = (
    (1, {}),
    (2, {}),
    (3, {}),
    (1, NUMA),
    (2, NUMA),
    (1, DEVICE),
    (2, WINDOWS),
    (2, LEASED),
)


class SizedDriver(explain_driver.Driver):
    """Hosts of the kinds of a test."""

    kinds: typing.ClassVar[dict[str, tuple[int, bool, int]]] = {}

    def _resize(self, nodename):
        cpus, has_cells, devices = self.kinds[nodename]
        self.vcpus = self.resources.vcpus = cpus
        return has_cells, devices

    def _number(self, nodename):
        # Those of the base: odd ones have cells, from 3 on devices.
        has_cells, devices = self._resize(nodename)
        return (4 if devices else 2) + has_cells

    def get_available_resource(self, nodename):
        number = self._number(nodename)
        found = super().get_available_resource(nodename)
        if number == 3:
            found.pop('pci_passthrough_devices', None)
        return found

    def _cell(self, number):
        cell = super()._cell(number)
        each = self.vcpus // 2
        cpus = set(range(number * each, number * each + each))
        cell.cpuset = cell.pcpuset = cpus
        cell.siblings = [{cpu} for cpu in cpus]
        return cell

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        self._number(nodename)
        super().update_provider_tree(provider_tree, nodename, allocations)


@ddt.ddt
class RandomHoldTestCase(test_hold.HoldMixin, plans.PlanTestCase):
    host_filters = (
        *test_hold.HoldMixin.host_filters,
        'NUMATopologyFilter',
        'PciPassthroughFilter',
    )
    driver = SizedDriver
    weights = {host: 100 * n for n, host in enumerate(HOSTS, 1)}
    started = ()
    options = {
        **audits.AuditTestCase.options,
        'max_server_per_failure_domain': 0,
    }

    def setUp(self):
        explain_driver.name_devices(self)
        super().setUp()
        self.flavors = [
            (self.flavor(vcpu=cpus, specs=specs), specs)
            for cpus, specs in FLAVORS
        ]

    def begin(self, rng):
        """Start hosts, and let servers stand."""
        kinds = rng.sample(KINDS, 2)
        self.patch(
            SizedDriver,
            'kinds',
            dict(
                zip(
                    rng.sample(HOSTS, len(HOSTS)),
                    (*kinds, *kinds, kinds[0]),
                    strict=True,
                )
            ),
        )
        for host in HOSTS:
            self._start_compute(host)
        trouble = rng.choice(['', 'windows', 'lease', 'racks'])
        some = rng.sample(HOSTS, 2)
        if trouble == 'windows':
            self.isolate(trouble, some, 'CUSTOM_WINDOWS')
        elif trouble == 'lease':
            self.aggregate(trouble, some, metadata=LEASED)
        elif trouble:
            for number, rack in enumerate('ab'):
                self.aggregate(rack, HOSTS[number::2], failure_domain=rack)
        self.hints = [
            {},
            {},
            {},
            {'group': self.create_group(policy='affinity')},
            {'group': self.create_group(policy='anti-affinity')},
        ]
        servers = [self.boot_some(rng) for _ in range(5)]
        standing = [one for one in servers if one['status'] == 'ACTIVE']
        if rng.random() < 0.5:
            self.act(rng.choice(standing), 'pause', 'PAUSED')

    def boot_some(self, rng):
        flavor, _ = rng.choice(self.flavors)
        return self.boot_any(flavor, hints=rng.choice(self.hints))

    def fill(self, rng):
        """Boot until no flavor fits; some of them in groups."""
        left = [flavor for flavor, _ in self.flavors]
        count = 0
        while left:
            flavor = rng.choice(left)
            hints = rng.choice(self.hints) if rng.random() < 0.3 else {}
            if self.boot_any(flavor, hints=hints)['status'] != 'ACTIVE':
                if not hints:
                    left.remove(flavor)
            else:
                count += 1
        return count

    @ddt.data(*range(CASES))
    def test_cloud(self, seed):
        rng = random.Random(seed)
        self.begin(rng)
        found = explain.ask(test_hold.survive.Survive, 'survive', '--hold')
        self.assertIn(found.status, (0, 3), found.err)
        document = found.plan
        self.assertEqual([], document['faults'])
        print('HOLD', seed, document['answer']['sentence'])
        for one in document['not_emptied']:
            for stuck in one['without_place']:
                print('KEPT', one['host'], stuck['reason'])
        for one in document['alone']:
            print('ALONE', one['host'], one['reason'])
        self.follow(document)
        filled = self.fill(rng)
        lost = evacuated = 0
        for host in rng.sample(HOSTS, len(HOSTS)):
            failures = self.survive('--host', host)['failures']
            if not failures:
                continue
            [failure] = failures
            stuck = failure['without_place']
            for one in stuck:
                self.assertNamed(one, host, document)
            lost += len(stuck)
            evacuated += len(failure['moves'])
            if IN_ANY_ORDER:
                self.fail_in_any_order(rng, failure, seed)
            else:
                self.fail_hosts(failure)
            self.come_home(failure)
        print('FAILED', seed, filled, evacuated, lost)

    def assertNamed(self, one, host, document):
        """Check that ``--hold`` named a server's host or kind."""
        kinds = {kind['kind'] for kind in document['kinds']}
        server = self.admin_api.get_server(one['server'])
        flavor = server['flavor']['extra_specs']
        alone = {other['host'] for other in document['alone']}
        group = [
            found['policy']
            for found in self.admin_api.api_get('/os-server-groups').body[
                'server_groups'
            ]
            if one['server'] in found['members']
        ]
        named = {
            'alone': host in alone,
            'state': one['cause'] in ('state', 'never evacuated'),
            'affinity': group == ['affinity'],
            'NUMA': 'hw:numa_nodes' in flavor and 'NUMA' in kinds,
        }
        print('STUCK', host, one['cause'], [k for k in named if named[k]])
        self.assertTrue(any(named.values()), (one, server, document))

    def fail_in_any_order(self, rng, failure, seed):
        self.lose(failure['failure'])
        going = [one['server'] for one in failure['moves']]
        for uuid in rng.sample(going, len(going)):
            try:
                self.evacuate(uuid)
            except client.OpenStackApiException:
                pass
            server = {'id': uuid}
            self._wait_for_migration_status(server, ['done', 'error'])
            self.wait_until_idle(server)
            if self.host_of(server) == failure['failure']:
                shown = self.admin_api.get_server(uuid)
                print(
                    *('STRANDED', seed, failure['failure']),
                    shown['flavor']['vcpus'],
                    shown['flavor']['extra_specs'],
                    shown.get('fault', {}).get('message'),
                )

    def come_home(self, failure):
        """Let the failed host start again, and its servers come back."""
        host = failure['failure']
        self.computes[host] = self.restart_compute_service(self.computes[host])
        self.set_service(host, forced_down=False)
        # nova-scheduler still counts members of groups where they were.
        self.sync_instances()
        for one in failure['moves']:
            server = {'id': one['server']}
            if self.host_of(server) != host:
                self.act(server, 'migrate', 'VERIFY_RESIZE', host=host)
                # nova leaves one stopped that it has evacuated.
                self.act(server, 'confirmResize', 'SHUTOFF')
        self.sync_instances()
