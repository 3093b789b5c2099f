# SPDX-License-Identifier: Apache-2.0

"""What ``nova-ext-sched capacity`` promises, nova keeps, and no more.

Blazar's situation is in ``test_blazar``, which has a cloud of its own.
"""

import ddt

from tests.cloud import capacity
from tests.cloud import world

#: Where plain servers may stand; the others are isolated or reserved. Of two
#: cells, and of the racks 3, 2 and 3.
PLAIN = ('compute3', 'compute5', 'compute6')


@ddt.ddt
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

    @ddt.data(
        ('plain', 'member', PLAIN),
        ('windows', 'member', ('compute1', 'compute2')),
        ('lease', 'member', ('compute4',)),
        ('lease', 'other', ()),
        ('ssd', 'member', ('compute6',)),
        ('no-ssd', 'member', ('compute3', 'compute5')),
    )
    @ddt.unpack
    def test_flavor(self, flavor, user, hosts):
        self.assertTruth(dict.fromkeys(hosts, 2), f'half-{flavor}', user=user)

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
        # Two of the three hosts share a rack, with room for three in all.
        self.assertTruth(5, 'half-plain', *arguments, hints=hints)

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
