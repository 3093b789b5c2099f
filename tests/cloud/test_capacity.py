# SPDX-License-Identifier: Apache-2.0

"""What ``nova-ext-sched capacity`` promises, nova keeps, and no more.

Blazar's situation is in ``test_blazar``, which has a cloud of its own.
"""

from openstack import exceptions

from tests.cloud import capacity
from tests.cloud import world

#: Where plain servers may stand; the others are isolated or reserved. Of two
#: cells, and of the racks 3, 2 and 3.
PLAIN = ('compute3', 'compute5', 'compute6')
LICENSES = 'CUSTOM_LICENSES'


class CapacityTestCase(capacity.TruthMixin, world.WorldTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, extra_specs in world.FLAVORS.items():
            cls.world.create_flavor(
                f'half-{name}', capacity.HALF_A_HOST_MB, extra_specs
            )

    def group(self, **rules):
        policy = {'policy': 'anti-affinity', 'rules': rules}
        group = self.world.create_group(**policy)
        return ('--server-group', group), {'group': group}

    def test_plain_in_two_cells(self):
        self.assertEqual(
            {'cell1', 'cell2'}, {self.world.cell_of[host] for host in PLAIN}
        )
        self.assertTruth(dict.fromkeys(PLAIN, 2), 'half-plain')

    def test_isolated(self):
        self.assertTruth({'compute1': 2, 'compute2': 2}, 'half-windows')

    def test_reserved(self):
        self.assertTruth({'compute4': 2}, 'half-lease')

    def test_reserved_for_another_project(self):
        self.assertTruth({}, 'half-lease', user='other')

    def test_flavor_and_aggregate(self):
        self.assertTruth({'compute6': 2}, 'half-ssd')

    def test_no_such_aggregate(self):
        self.assertTruth({'compute3': 2, 'compute5': 2}, 'half-no-ssd')

    def test_group_with_rule_2(self):
        arguments, hints = self.group(max_server_per_host=2)
        self.assertTruth(
            dict.fromkeys(PLAIN, 2), 'plain', *arguments, hints=hints
        )

    def test_group_with_rule_1_and_a_member(self):
        arguments, hints = self.group(max_server_per_host=1)
        (member,) = self.world.boot('plain', hints=hints)
        self.addCleanup(self.world.delete, member.id)
        rooms = dict.fromkeys(PLAIN, 1)
        del rooms[member.hypervisor_hostname]
        self.assertTruth(rooms, 'half-plain', *arguments, hints=hints)

    def test_racks(self):
        arguments, hints = self.group(max_server_per_host=9)
        hints['max_server_per_failure_domain'] = '3'
        arguments += ('--hint', 'max_server_per_failure_domain=3')
        found, _ = self.capacity('half-plain', *arguments)
        # Two of the three hosts share a rack, with room for three in all.
        self.assertEqual(5, found['servers'])
        rooms = {room['host']: room['servers'] for room in found['rooms']}
        self.assertTruth(
            {host: rooms[host] for host in PLAIN},
            'half-plain',
            *arguments,
            hints=hints,
        )

    def test_zone(self):
        compute = self.world.admin.compute
        zone = compute.create_aggregate(name='far', availability_zone='far')
        self.addCleanup(compute.delete_aggregate, zone)
        compute.add_host_to_aggregate(zone, 'compute5')
        self.addCleanup(compute.remove_host_from_aggregate, zone, 'compute5')
        self.assertTruth(
            {'compute5': 2},
            'half-plain',
            '--availability-zone',
            'far',
            availability_zone='far',
        )

    def test_disabled_and_down(self):
        self._set_service('compute3', status='disabled')
        self._set_service('compute5', forced_down=True)
        self.assertTruth({'compute6': 2}, 'half-plain')

    def test_uneven_hosts(self):
        (other,) = self.world.boot('half-plain', user='admin', host='compute3')
        self.addCleanup(self.world.delete, other.id)
        self.assertTruth(
            {'compute3': 1, 'compute5': 2, 'compute6': 2}, 'half-plain'
        )

    def test_max_unit_below_the_capacity(self):
        """Of licenses that a server takes one by one, of a child provider."""
        for host, total, max_unit in (
            ('compute3', 3, 2),
            ('compute5', 9, 1),
        ):
            self._add_licenses(host, total, max_unit)
        for number in (1, 2):
            self._create_flavor(f'licenses-{number}', number)
        found, _ = self.capacity('licenses-1')
        self.assertEqual(12, found['servers'])
        self.assertTruth({'compute3': 1}, 'licenses-2')

    def _create_flavor(self, name, licenses):
        flavor = self.world.create_flavor(
            name, 64, {f'resources:{LICENSES}': str(licenses)}
        )
        self.addCleanup(self.world.admin.compute.delete_flavor, flavor)

    def _add_licenses(self, host, total, max_unit):
        placement = self.world.admin.placement
        (node,) = (
            provider for provider in placement.resource_providers(name=host)
        )
        headers = {'OpenStack-API-Version': 'placement 1.20'}

        def call(method, url, **arguments):
            answer = placement.request(
                url, method, headers=headers, **arguments
            )
            exceptions.raise_from_response(answer)
            return answer

        call('PUT', f'/resource_classes/{LICENSES}')
        child = call(
            'POST',
            '/resource_providers',
            json={
                'name': f'{host} licenses',
                'parent_provider_uuid': node.id,
            },
        ).json()
        url = f'/resource_providers/{child["uuid"]}'
        self.addCleanup(call, 'DELETE', url)
        call(
            'PUT',
            f'{url}/inventories',
            json={
                'resource_provider_generation': child['generation'],
                'inventories': {
                    LICENSES: {'total': total, 'max_unit': max_unit}
                },
            },
        )

    def _set_service(self, host, **body):
        before = {'status': 'enabled', 'forced_down': False}
        self.addCleanup(
            self.world.set_service,
            host,
            **{name: before[name] for name in body},
        )
        self.world.set_service(host, **body)
