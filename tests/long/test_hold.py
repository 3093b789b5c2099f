# SPDX-License-Identifier: Apache-2.0

"""Hosts to keep free: mark them, fill the others, and let one fail."""

import json
import pathlib
import time

import fixtures
from nova.virt import fake
from prometheus_client import parser

from nova_ext_sched import plan_format
from nova_ext_sched.cmd import audit
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
        # What apply needs is there.
        plan = plan_format.read(json.dumps(document), 'plan.json')
        self.assertEqual(['host3'], plan.to_be_empty)
        self.follow(document)
        document = self.hold()
        self.assertEqual((['host3'], []), (document['held'], document['mark']))
        self.assertKept(0, {'free': 1, 'in use': 0, 'closed': 0}, '')
        self.set_service('host3', status='disabled')
        self.assertKept(
            1,
            {'free': 0, 'in use': 0, 'closed': 1},
            'The hosts kept for failures are not enough once the others are '
            'full: keep host4 free, too (survive --hold).',
        )
        self.set_service('host3', status='enabled')
        while self.boot_any(flavor)['status'] == 'ACTIVE':
            pass
        [failure] = self.survive('--host', 'host1')['failures']
        self.assertEqual(3, len(failure['moves']))
        self.fail_hosts(failure)
        # It is in use now, and the others are full.
        document = self.hold(status=3)
        self.assertEqual([], document['held'])
        self.assertEqual('host3', document['not_emptied'][0]['host'])

    def assertKept(self, lacking, states, said):
        """Check what audit and survive say of the hosts that are kept."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for command in (audit.Audit, survive.Survive):
            name = command.__name__.lower()
            path = folder / f'{name}.prom'
            out, _, status = explain.call(
                command, name, '--metrics', str(path)
            )
            self.assertEqual(3 if lacking else 0, status, out)
            self.assertIn(said, ' '.join(out.split()))
            values = {
                (sample.name, sample.labels.get('state')): sample.value
                for family in parser.text_string_to_metric_families(
                    path.read_text()
                )
                for sample in family.samples
            }
            of_all = 'nova_ext_sched_failover_hosts'
            self.assertEqual(lacking, values[f'{of_all}_lacking', None])
            if command is audit.Audit:
                self.assertEqual(
                    states, {one: values[of_all, one] for one in states}
                )

    def test_now_and_domains(self):
        """A host of today's servers may be smaller than those that fail."""
        self.flags(max_server_per_failure_domain=0, group='nova_ext_sched')
        self.limit('host4', 'VCPU', total=4, max_unit=4)
        for rack, hosts in (('a', ['host1', 'host2']), ('b', ['host3'])):
            self.aggregate(rack, hosts, failure_domain=rack)
        for host in ('host1', 'host2', 'host3'):
            self.boot(flavor=self.flavor(vcpu=3), az=f'nova:{host}')
        for argv, how, marked in (
            ((), '--hold', ['host1']),
            ((), '--hold=now', ['host4']),
            # Two servers of a rack need two hosts.
            (('--lose', 'domain'), '--hold=now', ['host3', 'host4']),
        ):
            document = self.hold(*argv, how=how, status=3)
            self.assertEqual(
                marked, [one['host'] for one in document['mark']], argv
            )
