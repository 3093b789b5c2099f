# SPDX-License-Identifier: Apache-2.0

"""Hosts that are to be empty: nova makes the moves, and refuses none."""

import time

from nova_ext_sched.cmd import drain as drain_command
from nova_ext_sched.dryrun.plan import drain
from tests.functional import plans


class DrainTestCase(plans.PlanTestCase):
    """The hosts that are to be empty are those that nova prefers."""

    weights = {f'host{n}': 700 - n for n in range(1, 4)}

    def drain(self, *argv):
        """Make a plan and carry it out.

        What the hosts that are to be empty hold then is what the plan names.

        :param argv: of the command; hosts
        """
        plan = self.plan(*argv, by=drain_command.Drain)
        self.carry_out(plan)
        for host in set(argv) & self.weights.keys():
            expected = sorted(
                one['server']
                for one in plan['without_place']
                if one['host'] == host
            )
            # nova clears the source after the server is ACTIVE.
            deadline = time.monotonic() + 10
            while (
                held := sorted(self.held(host))
            ) != expected and time.monotonic() < deadline:
                time.sleep(0.1)
            self.assertEqual(expected, held)
        return plan

    def disable_others(self, *hosts):
        for one in self.admin_api.get_services(binary='nova-compute'):
            status = 'enabled' if one['host'] in hosts else 'disabled'
            self.set_service(one['host'], status=status)

    def held(self, host):
        """Return what holds room of a host in placement, by the server."""
        provider = self._get_provider_uuid_by_host(host)
        found = self.placement.get(
            f'/resource_providers/{provider}/allocations'
        ).body['allocations']
        moving = {
            one['uuid']: one['instance_uuid']
            for one in self.admin_api.api_get('/os-migrations').body[
                'migrations'
            ]
        }
        return {moving.get(uuid, uuid) for uuid in found}


class StoryTestCase(DrainTestCase):
    weights = {f'host{n}': 700 - n for n in range(1, 7)}

    def test_two_of_six_hosts(self):
        """Two policies and a group; one failed, one is resized, one paused."""
        # Each is asked about by itself.
        self.patch(drain, '_HOSTS_AT_ONCE', 1)
        required = {'trait:CUSTOM_WINDOWS': 'required'}
        reserved = {'reservation:lease': 'true'}
        self.isolate('windows', ['host1', 'host4'], 'CUSTOM_WINDOWS')
        self.aggregate('lease', ['host2', 'host5'], metadata=reserved)
        hints = self.group(limit=1)
        plain, other = self.flavor(vcpu=1), self.flavor(vcpu=1)
        licensed, leased, stopped, failed, resized = (
            self.boot(flavor=flavor, az=f'nova:{host}')
            for flavor, host in (
                (self.flavor(vcpu=1, specs=required), 'host1'),
                (self.flavor(vcpu=1, specs=reserved), 'host2'),
                (plain, 'host1'),
                (plain, 'host2'),
                (plain, 'host1'),
            )
        )
        member, _ = (
            self.boot(flavor=plain, hints=hints, az=f'nova:{host}')
            for host in ('host2', 'host3')
        )
        self.act(stopped, 'os-stop', 'SHUTOFF')
        self.act(leased, 'pause', 'PAUSED')
        self.reset_state(failed, 'error')
        self.resize(resized, other, 'host2')
        plan = self.drain('host1', 'host2')
        self.assertEqual(
            {
                (failed['id'], 'host2', 'its vm_state is error'),
                (resized['id'], 'host1', 'its resize is finished'),
                (resized['id'], 'host2', 'its vm_state is resized'),
            },
            {
                (
                    one['server'],
                    one['host'],
                    one['reason'].removeprefix('nova cannot move it: '),
                )
                for one in plan['without_place']
            },
        )
        for one in plan['without_place']:
            self.assertNotEqual('', one['would_help'])
        # host3 is the best, but for the group.
        self.assertEqual(
            {
                (licensed['id'], 'host4', 'live'),
                (leased['id'], 'host5', 'live'),
                (stopped['id'], 'host3', 'cold'),
                (member['id'], 'host6', 'live'),
            },
            {
                (one['server'], one['to'], one['method'])
                for one in plan['moves']
            },
        )
        self.assertEqual(
            [leased['id']],
            [one['server'] for one in plan['moves'] if one['paused']],
        )
        sentence = plan['answer']['sentence']
        self.assertIn('1 moved server is paused', sentence)
        self.assertIn('0 of 2 hosts are empty', sentence)
        self.assertEqual(
            [['host1', 'host2']] * 3,
            [
                plan[name]
                for name in ('to_be_empty', 'not_empty_after', 'still_enabled')
            ],
        )
        turns = [one['turn'] for one in plan['moves']]
        self.assertEqual([*range(1, len(turns) + 1)], turns)
        # What audit finds is what stood wrong before: the servers that stay.
        self.assertEqual(
            {failed['id'], resized['id']},
            {server for server, _, _ in self.found()},
        )

    def resize(self, server, flavor, host):
        """Resize a server to a host, and leave it unconfirmed."""
        self.disable_others(host)
        self.act(server, 'resize', 'VERIFY_RESIZE', flavorRef=flavor)
        self.disable_others(*self.weights)
        self.assertEqual(host, self.host_of(server))
