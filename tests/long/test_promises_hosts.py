# SPDX-License-Identifier: Apache-2.0

"""The five promises of clouds whose hosts are not all alike, or not there.

See :mod:`tests.functional.promises`.
"""

import typing

from nova import context
from nova import objects
from nova.virt import fake

from tests.functional import base
from tests.functional import capacity_driver
from tests.functional import explain
from tests.functional import nodes
from tests.functional import promises


class BareMetalDriver(fake.MediumFakeDriver):
    """Each node is one server's, as ironic reports it."""

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        one = capacity_driver.inventory(1)
        provider_tree.update_inventory(nodename, {'CUSTOM_BAREMETAL': one})


class BareMetalRow(nodes.NodesMixin, promises.CloudRow):
    """Bare metal: three nodes of one nova-compute."""

    meaningless = {
        'moves': 'ironic moves no server',
        'survive': 'ironic evacuates no server',
    }
    driver = BareMetalDriver
    weights = {'host1': 100}
    ties = True
    # nova-api shows the host of a server, and not its node.
    says_where = False
    room = 'CUSTOM_BAREMETAL:1'
    promise_isolation = promises.isolates('host1')

    def build(self):
        self.add_nodes('host1', 2)
        self.metal = self.flavor(
            specs={
                'resources:CUSTOM_BAREMETAL': '1',
                **{
                    f'resources:{one}': '0'
                    for one in ('VCPU', 'MEMORY_MB', 'DISK_GB')
                },
            }
        )

    def promise_explain(self):
        self.assertExplained(flavor=self.metal)
        self.assertRefused()

    def promise_capacity(self):
        self.assertCounted(flavor=self.metal)


class ReservedDriver(fake.MediumFakeDriver):
    """Hosts of which nova-compute reserves something."""

    reserved: typing.ClassVar[dict[str, dict[str, int]]] = {}

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        super().update_provider_tree(provider_tree, nodename, allocations)
        inventory = provider_tree.data(nodename).inventory
        for name, amount in self.reserved.get(nodename, {}).items():
            inventory[name]['reserved'] = amount
        provider_tree.update_inventory(nodename, inventory)


class ReservedRow(promises.CloudRow):
    """Inventories that are reserved, as of bare metal in maintenance."""

    driver = ReservedDriver
    promise_isolation = promises.isolates('host1', 'host3')
    promise_survive = promises.fails('--host', 'host2')
    promise_capacity = promises.counts(vcpu=2, memory_mb=100)

    def build(self):
        two = self.flavor(vcpu=2)
        self.boot_each_on('host1', 'host2', 'host3', 'host3', flavor=two)
        reserved = {
            # All of it, and all but a little.
            'host1': {'VCPU': 10},
            'host2': {'MEMORY_MB': 7000},
        }
        self.patch(ReservedDriver, 'reserved', reserved)
        for host in reserved:
            self.computes[host].manager.update_available_resource(
                context.get_admin_context()
            )

    def promise_explain(self):
        self.assertExplained()
        self.assertRefused(host='host1')
        self.assertExplained(flavor=self.flavor(memory_mb=2000))
        self.assertRefused(flavor=self.flavor(memory_mb=2000), host='host2')

    def promise_moves(self):
        self.assertDrained('host1')
        large = self.flavor(vcpu=9, memory_mb=2000)
        plan, made = self.assertRoom(3, flavor=large)
        self.assertEqual(['host4', 'host3'], plan['room_on'])
        self.assertEqual(
            [('host3', 'host2')] * 2,
            [(one['host'], one['to']) for one in plan['moves']],
        )
        for server in made:
            self._delete_server(server)


class DownRow(promises.CloudRow):
    """Hosts that are down or disabled."""

    weights = {**promises.CloudRow.weights, 'host5': 50, 'host6': 10}
    promise_isolation = promises.isolates('host1', 'host2', 'host3')
    promise_moves = promises.drains('host1')
    promise_capacity = promises.counts(vcpu=4)

    def build(self):
        self.boot_each_on('host1', 'host2', 'host3')
        self.set_service('host1', status='disabled')
        self.set_service('host2', forced_down=True)
        self.set_service('host4', status='disabled', forced_down=True)

    def promise_explain(self):
        self.assertExplained()
        self.assertRefused(host='host1')
        self.assertRefused(flavor=self.flavor(vcpu=10), host='host3')

    def promise_survive(self):
        self.assertFails('--host', 'host2')
        self.assertFails('--host', 'host3')


class LeftTraitRow(promises.CloudRow):
    """Hosts that are disabled in placement, and not in nova."""

    promise_isolation = promises.isolates('host3', 'host4')
    promise_moves = promises.drains('host2')
    promise_survive = promises.fails('--host', 'host3')
    promise_capacity = promises.counts(vcpu=4)

    def build(self):
        self.boot_each_on('host2', 'host3')
        # nova-compute was not there when its service was enabled.
        self.add_traits('host1', 'COMPUTE_STATUS_DISABLED')
        self.set_service(
            'host2', status='disabled', disabled_reason='OPS-1234'
        )

    def promise_explain(self):
        self.assertExplained()
        answer = explain.read('--flavor', self.plain_flavor, '--hosts')
        self.assertIn(
            '1 is enabled in nova, but disabled in placement (trait '
            'COMPUTE_STATUS_DISABLED): restart nova-compute there, 1 is '
            'disabled (OPS-1234).',
            answer.sentence,
        )
        said = {
            one['host']: {
                answer.rows[verdict['constraint']]['stage']: verdict['reason']
                for verdict in one['verdicts']
                if verdict['reason']
            }
            for one in answer.document['hosts']
        }
        self.assertEqual(['request filter'], [*said['host1']])
        self.assertEqual(
            dict.fromkeys(
                ('request filter', 'host filter'), 'is disabled (OPS-1234)'
            ),
            said['host2'],
        )
        self.assertRefused(host='host1')


class GoneMixin:
    """A host one of whose rows is gone."""

    def mark_deleted(self, table, host):
        self.execute(
            f'UPDATE {table} SET deleted = id WHERE host = :host', host=host
        )


class RenamedRow(GoneMixin, promises.CloudRow):
    """A host without a compute node (renamed)."""

    promise_isolation = promises.isolates('host1', 'host2', without=['host2'])
    promise_moves = promises.drains('host1')
    promise_capacity = promises.counts(vcpu=4)

    def build(self):
        self.boot_each_on('host1', 'host2', 'host2')
        # nova-api takes no host without a compute node.
        self.join('host2')
        self.computes['host2'].stop()
        self.mark_deleted('compute_nodes', 'host2')

    def promise_explain(self):
        self.assertExplained()
        self.assertRefused(flavor=self.flavor(vcpu=11))

    def promise_survive(self):
        self.assertFailure('host2')


class NoServiceRow(GoneMixin, promises.CloudRow):
    """A host without a service record."""

    promise_isolation = promises.isolates('host1', 'host3')
    promise_moves = promises.drains('host1')
    promise_survive = promises.fails('--host', 'host3')
    promise_capacity = promises.counts(vcpu=4)

    def build(self):
        self.boot_each_on('host1', 'host2', 'host3')
        self.computes['host2'].stop()
        self.mark_deleted('services', 'host2')

    def promise_explain(self):
        self.assertExplained()
        self.assertRefused(flavor=self.flavor(vcpu=11))
        answer = explain.read('--flavor', self.plain_flavor)
        self.assertIn(
            '1 has no nova-compute service record (restart nova-compute '
            'there).',
            answer.sentence,
        )


class UnmappedRow(promises.CloudRow):
    """A host in no cell mapping, the first choice."""

    promise_survive = promises.fails('--host', 'host3')

    def build(self):
        self.boot_each_on('host2', 'host3')
        self.mapping = objects.HostMapping.get_by_host(
            context.get_admin_context(), 'host1'
        )
        self.mapping.destroy()

    def promise_explain(self):
        """nova-scheduler takes it, and nova-conductor does not."""
        args = ('--flavor', self.plain_flavor, '-f', 'json')
        answer = explain.run(*args)
        self.assertEqual(['host2', 'host3', 'host4'], answer.order)
        self.assertIn(
            '3 of 4 hosts can take it. The scheduler prefers host2, then '
            'host3, host4. Without HostNameWeigher it would be host3. 1 is in '
            'no cell mapping (run nova-manage cell_v2 discover_hosts). No '
            'cell mapping has host1. nova-scheduler can still choose such a '
            'host, and the server then ends in ERROR: run ',
            answer.sentence,
        )
        server = self.boot(expected_state='ERROR')
        self.assertIn('not mapped to any cell', server['fault']['message'])
        answer = explain.read('--server', server['id'])
        self.assertIn(
            'nova-conductor gave up the build before it began. At ',
            answer.remarks[-1],
        )
        self.assertEqual(2, len(answer.remarks))

    def promise_isolation(self):
        # nova-api adds no other to an aggregate.
        self.assertIsolates('host2', 'host3')

    def promise_moves(self):
        plan = self.assertDrained('host2')
        self.assertEqual({'host1'}, {one['to'] for one in plan['moves']})

    def promise_capacity(self):
        """As if nova-scheduler left it out too."""
        flavor = self.flavor(vcpu=4)
        [one] = self.capacity('--flavor', flavor).flavors
        self.assertIn(one['servers'], range(1, 12))
        self.set_service('host1', status='disabled')
        self.assertTruth(one['servers'], flavor)


class CellsRow(promises.CloudRow):
    """Two cells."""

    NUMBER_OF_CELLS = 2
    cells = dict.fromkeys(('host2', 'host4'), 'cell2')
    promise_isolation = promises.isolates('host1', 'host2')
    promise_survive = promises.fails('--host', 'host3')
    promise_capacity = promises.counts(vcpu=4)

    def build(self):
        self.boot_each_on('host1', 'host1', 'host2')
        self.boot(flavor=self.flavor(vcpu=9), az='nova:host2')

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(flavor=self.flavor(vcpu=5))
        self.assertRefused(flavor=self.flavor(vcpu=11))

    def promise_moves(self):
        self.boot_stopped(az='nova:host1')
        self.assertDrained('host1', kinds=('cold', 'live'))


class SilentCellRow(promises.CloudRow):
    """Two cells, one of them silent."""

    NUMBER_OF_CELLS = 2
    cells = dict.fromkeys(('host2', 'host4'), 'cell2')
    statuses = (1, 1)
    meaningless = {
        'isolation': 'nova-api lists no hypervisors of the other cell either'
    }
    promise_moves = promises.drains('host1')
    promise_survive = promises.fails('--host', 'host3')
    promise_capacity = promises.counts(vcpu=4)

    def build(self):
        self.boot_each_on('host1', 'host1', 'host3')
        away = base.table_away(self.cell_engine('cell2'), 'compute_nodes')
        away.__enter__()
        self.addCleanup(away.__exit__, None, None, None)

    def promise_explain(self):
        self.assertExplained()


class VersionsDriver(fake.MediumFakeDriver):
    """host1 and host2 are newer than host3; host4 has another hypervisor."""

    def get_available_resource(self, nodename):
        found = super().get_available_resource(nodename)
        found['hypervisor_version'] = 1000 if nodename == 'host3' else 2000
        if nodename == 'host4':
            found['hypervisor_type'] = 'other'
        return found


class VersionsRow(promises.CloudRow):
    """Hypervisors of two versions and types."""

    driver = VersionsDriver
    weights = {'host3': 300, 'host4': 250, 'host1': 200, 'host2': 100}
    promise_isolation = promises.isolates('host1', 'host4')
    promise_survive = promises.fails('--host', 'host3')
    promise_capacity = promises.counts(vcpu=4)

    def build(self):
        self.boot_each_on('host1', 'host3', 'host4')

    def promise_explain(self):
        self.assertExplained()
        typed = self.image(img_hv_type='kvm')
        self.assertRefused(image=typed)

    def promise_moves(self):
        self.boot_stopped(az='nova:host1')
        self.assertDrained('host1', kinds=('cold', 'live'))
        # No other has its hypervisor.
        plan = self.assertDrained('host4', kinds=(), stuck=['hypervisor'])
        [stuck] = plan['without_place']
        self.assertRegex(
            stuck['reason'],
            '^the hypervisors of all hosts left are of another type than '
            r'other \(host\d: fake, host\d: fake, host\d: fake\)$',
        )
