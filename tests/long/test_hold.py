# SPDX-License-Identifier: Apache-2.0

"""Hosts to keep free: mark them, fill the others, and let one fail."""

import time

from nova.virt import fake

from nova_ext_sched.cmd import survive
from tests.functional import explain
from tests.functional import plans
from tests.functional import test_survive


class HoldMixin(test_survive.EvacuationMixin):
    """Asks which hosts to keep free, and does what is said."""

    host_filters = (*plans.PlanTestCase.host_filters, 'FailoverHostsFilter')
    weigher_classes = ('nova_ext_sched.weighers.all_weighers',)

    def setUp(self):
        super().setUp()
        migrate = fake.FakeDriver.live_migration

        def leave_and_migrate(driver, ctxt, instance, *args, **kwargs):
            # Else it could never come back.
            driver.destroy(ctxt, instance, None)
            migrate(driver, ctxt, instance, *args, **kwargs)

        self.patch(fake.FakeDriver, 'live_migration', leave_and_migrate)

    def hold(self, *argv, how='--hold', status=0):
        """Return the document of survive --hold."""
        found = explain.ask(survive.Survive, 'survive', how, *argv)
        self.assertEqual(status, found.status, found.err)
        return found.plan

    def follow(self, document):
        """Mark the hosts by the commands, and make the moves."""
        self.flags(enable_failover_hosts=True, group='nova_ext_sched')
        for command in document['commands']:
            words = command.split()
            if words[2] == 'create':
                key, value = words[4].split('=')
                self.aggregate(words[-1], [], **{key: value})
            else:
                self.add_host(*words[-2:])
        self.carry_out(document)

    def boot_any(self, flavor, **server):
        """Boot a server, perhaps in vain; return it once that is known."""
        server = self.post(flavor=flavor, **server)
        shown = self.api.get_server(server['id'])
        while shown['status'] == 'BUILD':
            time.sleep(0.05)
            shown = self.api.get_server(server['id'])
        if shown['status'] == 'ERROR':
            self._delete_server(shown)
        return shown


class HoldTestCase(HoldMixin, plans.PlanTestCase):
    weights = {'host1': 400, 'host2': 300, 'host3': 200, 'host4': 100}

    def test_equal_hosts(self):
        """One of them is enough, and is the one with the fewest servers."""
        flavor = self.flavor(vcpu=3)
        for host in ('host1', 'host1', 'host2', 'host2', 'host3', 'host4'):
            self.boot(flavor=flavor, az=f'nova:{host}')
        document = self.hold(status=3)
        self.assertEqual(
            [('host3', 1, 3)],
            [
                (one['host'], one['servers'], one['replaces'])
                for one in document['mark']
            ],
        )
        self.assertEqual([3], [one['servers'] for one in document['price']])
        self.follow(document)
        document = self.hold()
        self.assertEqual((['host3'], []), (document['held'], document['mark']))
        while self.boot_any(flavor)['status'] == 'ACTIVE':
            pass
        [failure] = self.survive('--host', 'host1')['failures']
        self.assertEqual(3, len(failure['moves']))
        self.fail_hosts(failure)
        # It is in use now.
        document = self.hold(status=3)
        self.assertEqual([], document['held'])
