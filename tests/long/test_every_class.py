# SPDX-License-Identifier: Apache-2.0

"""The plans with each filter and weigher that nova ships, one at a time."""

from nova import context
from nova.scheduler import filters
from nova.scheduler import host_manager
from nova.scheduler import weights
from testtools import content

from nova_ext_sched.cmd import capacity
from nova_ext_sched.cmd import drain
from nova_ext_sched.cmd import maintain
from nova_ext_sched.cmd import mend
from nova_ext_sched.cmd import survive
from tests.functional import explain
from tests.functional import test_drain

# nova leaves these off.
MULTIPLIERS = {
    'image_props_weight_multiplier': 1.0,
    'num_instances_weight_multiplier': -1.0,
    'hypervisor_version_weight_multiplier': 1.0,
}
CAPACITY = 'schemas/capacity.json'


class TieWeigher(weights.BaseHostWeigher):
    """Prefers hosts with greater numbers, of those that weigh the same."""

    def weight_multiplier(self, host_state):
        return 0.001

    def _weigh_object(self, host_state, _):
        return int(host_state.host[-1])


class EveryClassTestCase(test_drain.DrainTestCase):
    """Three hosts; a migration waits for its owner to confirm it."""

    def setUp(self):
        super().setUp()
        self.flags(group='filter_scheduler', **MULTIPLIERS)
        self.flags(group='scheduler', max_attempts=20)
        self.linux = self.image(hw_machine_type='q35', os_type='linux')
        hints = {'hints': self.group(limit=3), 'image': self.linux}
        self.server = self.boot(host='host1', **hints)
        self.boot(host='host2', **hints)
        self.boot(host='host3')
        resized = self.boot(host='host2', flavor=self.flavor(vcpu=2), **hints)
        self.act(resized, 'migrate', 'VERIFY_RESIZE', host='host3')

    def names_of(self, loader):
        names = sorted(f'{one.__module__}.{one.__name__}' for one in loader())
        self.assertLess(10, len(names))
        return names

    def test_filters(self):
        for name in self.names_of(filters.all_filters):
            self.flags(
                group='filter_scheduler',
                enabled_filters=[name.rpartition('.')[2]],
            )
            self.check(name)

    def test_weighers(self):
        tie = f'{__name__}.{TieWeigher.__name__}'
        for name in self.names_of(weights.all_weighers):
            self.flags(group='filter_scheduler', weight_classes=[name, tie])
            self.check(name, is_carried_out=True)

    def check(self, name, is_carried_out=False):
        """Ask for every plan.

        :param name: of the class in use
        :param is_carried_out: whether nova makes the first move of drain
        """
        # As after a restart of the service.
        manager = self.scheduler_service.manager
        manager.host_manager = host_manager.HostManager()
        self.addDetail('class', content.text_content(name))
        plan = self.ask(drain.Drain, 'drain', self.host_of(self.server))
        self.assertIn(
            self.server['id'], [one['server'] for one in plan['moves']], name
        )
        self.ask(mend.Mend, 'mend')
        rounds = self.ask(maintain.Maintain, 'maintain')['rounds']
        # The others have the server that is resized.
        self.assertEqual([['host1']], [one['hosts'] for one in rounds], name)
        flavor = '--flavor', self.plain_flavor
        self.ask(survive.Survive, 'survive', *flavor)
        for image in ((), ('--image', self.linux)):
            self.ask(
                *(capacity.Capacity, 'capacity', *flavor, *image),
                *('--server-group', self.server['server_groups'][0]),
                schema=CAPACITY,
            )
        if is_carried_out:
            # nova chooses. The next one it would choose by records that
            # nova-compute writes once a minute.
            self.carry_out({'moves': [{**plan['moves'][0], 'to': None}]})
            for compute in self.computes.values():
                compute.manager.update_available_resource(
                    context.get_admin_context()
                )
            self.sync_instances()

    def ask(self, class_, name, *argv, schema='schemas/plan.json'):
        """Return the document of a command that could ask about all."""
        found = explain.ask(class_, name, *argv)
        self.assertIn(found.status, (0, 3), found.err)
        # The cause of a server, and what capacity has for none.
        self.assertNotIn('"cause": "fault"', found.out)
        self.assertNotRegex(found.out, '"fault": "[^"]')
        return found.read(schema)
