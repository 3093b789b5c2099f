# SPDX-License-Identifier: Apache-2.0

"""Rounds of maintenance that nova carries out, and refuses none of."""

import collections
from unittest import mock

from oslo_utils import timeutils

from nova_ext_sched.cmd import maintain as maintain_command
from nova_ext_sched.dryrun.plan import maintain
from tests.functional import explain
from tests.functional import sharing
from tests.functional import test_drain


class RoundsTestCase(test_drain.DrainTestCase):
    """Hosts are disabled while they are to be empty, as operators do it."""

    def read(self, *argv, status=0):
        found = explain.ask(maintain_command.Maintain, 'maintain', *argv)
        output = explain.Output(*found)
        self.assertEqual(status, output.status, output.err)
        return output.plan

    def carry_out_rounds(self, plan):
        """Let nova make all moves; return how often each server moved."""
        times = collections.Counter()
        for one in plan['rounds']:
            for host in one['hosts']:
                self.set_service(host, status='disabled')
            self.carry_out(one)
            for host in one['hosts']:
                self.assertEqual([], self.servers_on(host))
                self.set_service(host, status='enabled')
            times.update(move['server'] for move in one['moves'])
        return times

    def servers_on(self, host):
        found = self.admin_api.get_servers(
            search_opts={'all_tenants': 1, 'host': host}
        )
        return [one['name'] for one in found]


class MaintainTestCase(RoundsTestCase):
    weights = {f'host{n}': 700 - n for n in range(1, 7)}

    def test_every_host_is_empty_once(self):
        required = {'trait:CUSTOM_WINDOWS': 'required'}
        self.isolate('windows', ['host1', 'host2'], 'CUSTOM_WINDOWS')
        reserved = {'reservation:lease': 'true'}
        self.aggregate('lease', ['host3', 'host4'], metadata=reserved)
        self.turn_on()
        plain = self.flavor(vcpu=1)
        licensed = self.flavor(vcpu=1, specs=required)
        leased = self.flavor(vcpu=1, specs={'reservation:lease': 'true'})
        # Six of ten CPUs: the host's own do not fit beside another's.
        large = self.flavor(vcpu=6, specs={'reservation:lease': 'true'})
        hints = self.group(limit=1)
        server = None
        for flavor, host, more in (
            (licensed, 'host1', {}),
            (licensed, 'host1', {}),
            (large, 'host3', {}),
            (leased, 'host3', {}),
            (plain, 'host5', {}),
            (plain, 'host5', {'hints': hints}),
        ):
            server = self.boot(flavor=flavor, host=host, **more)
        plan = self.read()
        self.assertEqual(
            '6 of 6 hosts can be emptied, in 6 rounds. 6 moves; no server '
            'moves twice.',
            plan['answer']['sentence'],
        )
        self.assertEqual({'hosts', 'moves', 'groups'}, {*plan['rounds'][0]})
        of_round = self.read('--round', '4')
        self.assertEqual(plan['rounds'][3]['moves'], of_round['moves'])
        # No more is planned, and none of that is said.
        make, calls = maintain.Maintenance._make_round, []

        def count(*args):
            calls.append(args)
            return make(*args)

        with mock.patch.object(maintain.Maintenance, '_make_round', count):
            of_round = self.read('--round', '1')
        self.assertEqual(1, len(calls))
        self.assertEqual(plan['rounds'][0]['moves'], of_round['moves'])
        number = len(of_round['moves'])
        [host] = of_round['to_be_empty']
        self.assertIn(
            f'{host} is empty after round 1.', of_round['answer']['sentence']
        )
        self.assertNotIn('of 6', of_round['answer']['sentence'], number)
        times = self.carry_out_rounds(plan)
        self.assertEqual(1, max(times.values()))
        self.assertEqual([], self.found())
        of_round = self.read('--round', '1', '--not-to', 'host2')
        self.assertNotIn(
            'host2', {one['expected'] for one in of_round['moves']}
        )
        # Three hosts at once, and one that a server keeps.
        self.reset_state(server, 'error')
        plan = self.read('--round-size', 'max', '--done', 'lease', status=3)
        [kept] = plan['not_emptied']
        self.assertEqual(
            ('host6', 'state'),
            (kept['host'], kept['without_place'][0]['cause']),
        )
        self.carry_out_rounds(plan)
        self.assertEqual(
            {'host1', 'host2', 'host5'},
            {host for one in plan['rounds'] for host in one['hosts']},
        )

    def test_servers_that_are_being_built_or_deleted(self):
        """They keep no host out of a round, unless nova has lost one."""
        built, deleted = self.boot(host='host1'), self.boot(host='host2')
        self.boot(host='host1')
        now = timeutils.utcnow()
        self.write_server(built, vm_state='building', updated_at=now)
        self.write_server(deleted, task_state='deleting', updated_at=now)
        plan = self.read()
        self.assertEqual(
            '6 of 6 hosts can be emptied, in 6 rounds. 1 move; no server '
            'moves twice. 1 server is still being built: run drain once the '
            'hosts of a round are disabled. 1 server was deleted meanwhile, '
            'or is being deleted.',
            plan['answer']['sentence'],
        )
        for name, server in (
            ('being_built', built),
            ('deleted_meanwhile', deleted),
        ):
            self.assertEqual(
                [server['id']], [one['server'] for one in plan[name]]
            )
        long_ago = now.replace(year=2020)
        self.write_server(built, task_state='spawning', updated_at=long_ago)
        plan = self.read(status=3)
        self.assertEqual([], plan['being_built'])
        [kept] = plan['not_emptied']
        self.assertEqual('host1', kept['host'])
        # A round that is not there says the same.
        of_round = self.read('host1', '--round', '1', status=3)
        self.assertEqual([], of_round['rounds'])
        [of_host] = of_round['not_emptied']
        self.assertEqual(kept['without_place'], of_host['without_place'])
        of_round = self.read('host1', '--done', 'host1', '--round', '1')
        self.assertEqual(
            ([], []), (of_round['rounds'], of_round['not_emptied'])
        )

    def test_wrong_usage(self):
        for argv, expected in (
            (('--done', 'away'), 'There is no host away.'),
            (('--round', '9'), 'There is no round 9: 6 hosts have 6 rounds'),
            (('--aggregate', 'away'), 'There is no aggregate away.'),
        ):
            _, err, status = explain.call(
                maintain_command.Maintain, 'maintain', *argv
            )
            self.assertEqual(2, status, err)
            self.assertIn(expected, err)


class OtherProvidersTestCase(sharing.StorageMixin, RoundsTestCase):
    """Of each host that has a server, another provider has no room left.

    A host takes the second server only after the first one has left it.
    """

    def check(self, flavor):
        # A request that names its host gets no disk of another provider.
        servers = [
            self.assertBootsOn(host, flavor=flavor)
            for host in ('host1', 'host2')
        ]
        plan = self.read()
        self.assertEqual([], plan['not_emptied'])
        self.assertEqual(
            [['host3'], ['host1'], ['host2']],
            [one['hosts'] for one in plan['rounds']],
        )
        self.carry_out_rounds(plan)
        self.assertEqual(
            ['host3', 'host1'], [self.host_of(one) for one in servers]
        )

    def test_disks_that_hosts_share(self):
        self.share(35, *self.weights)
        self.check(self.flavor(vcpu=6, disk=10))

    def test_devices_below_the_host(self):
        self.check(self.flavor(specs={'resources:CUSTOM_MAGIC': 6}))

    def test_both(self):
        self.share(35, *self.weights)
        self.check(self.flavor(disk=10, specs={'resources:CUSTOM_MAGIC': 6}))

    def test_numbered_groups(self):
        """Nobody knows what placement would answer of the host."""
        flavor = self.flavor(specs={'resources1:CUSTOM_MAGIC': 6})
        for host in ('host1', 'host2'):
            self.boot(flavor=flavor, host=host)
        plan = self.read(status=3)
        self.assertIn('whether 1 can is not known', plan['answer']['sentence'])
        [kept] = plan['not_emptied']
        [stuck] = kept['without_place']
        self.assertEqual('not known', stuck['cause'])
        self.assertIn('whether host1 has room', stuck['reason'])
        self.carry_out_rounds(plan)
