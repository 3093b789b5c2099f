# SPDX-License-Identifier: Apache-2.0

"""Base of the functional tests of moves: nova carries them out."""

from unittest import mock

from nova import context
from nova.compute import manager as compute_manager

from nova_ext_sched.cmd import maintain
from nova_ext_sched.cmd import mend as mend_command
from tests.functional import audits
from tests.functional import explain


class MovesMixin:
    """Lets nova make the moves of a plan."""

    def carry_out(self, plan):
        """Let nova make the moves; it must refuse none.

        Of a move without a host nova chooses that; it is the expected one.
        """
        for move in plan['moves']:
            server = {'id': move['server']}
            self.assertEqual(move['host'], self.host_of(server))
            shown = self.admin_api.get_server(server['id'])
            state = shown['OS-EXT-STS:vm_state']
            if move['method'] == 'live':
                self.live_migrate(server, move['to'])
                self._wait_for_server_parameter(
                    server,
                    {
                        'OS-EXT-SRV-ATTR:host': move['expected'],
                        'OS-EXT-STS:task_state': None,
                    },
                )
                self._wait_for_migration_status(server, ['completed'])
            else:
                self.act(server, 'migrate', 'VERIFY_RESIZE', host=move['to'])
                self.act(server, 'confirmResize')
                # One that ran runs again.
                self._wait_for_server_parameter(
                    server, {'OS-EXT-STS:vm_state': state}
                )
                self.assertEqual(move['expected'], self.host_of(server))

    def maintain(self, *argv, status=0):
        """Let maintain plan, and nova carry out all rounds; return the plan.

        :param argv: of the command
        :param status: its exit status
        """
        found = explain.ask(maintain.Maintain, 'maintain', *argv)
        self.assertEqual(status, found.status, found.err)
        plan = found.plan
        for one in plan['rounds']:
            self.carry_out(one)
            self.sync_instances()
            self.assertEqual(
                [],
                [
                    server['id']
                    for server in self.admin_api.get_servers()
                    if server['OS-EXT-SRV-ATTR:host'] in one['hosts']
                ],
            )
        return plan

    def sync_instances(self):
        """Let nova-computes run a periodic task.

        Until then nova-scheduler counts the members of a group on the source
        of a live migration.
        """
        for compute in self.computes.values():
            compute.manager._sync_scheduler_instance_info(
                context.get_admin_context()
            )


class PlanTestCase(MovesMixin, audits.AuditTestCase):
    """Hosts of 10 CPUs, 8 GiB and 1 TiB, none of them overcommitted.

    Servers boot while no policy is on; a plan turns all on.
    """

    options = {}
    allocation_ratio = 1.0
    #: [nova_ext_sched] max_server_per_failure_domain
    rack_limit = 0

    def setUp(self):
        super().setUp()
        # nova-compute would refuse a group's servers on a forced host.
        self.flags(disable_group_policy_check_upcall=True, group='workarounds')

    def run_mend(self, *argv):
        """Run the command; return its exit status and what it writes."""
        text, _, status = explain.call(mend_command.Mend, 'mend', *argv)
        return status, text

    def plan(self, *argv, by=mend_command.Mend):
        """Turn the policies on, and return the plan, as a document."""
        self.turn_on()
        found = explain.ask(by, 'mend', *argv)
        plan = found.plan
        self.assertEqual([], plan['faults'])
        self.assertEqual(3 if plan['without_place'] else 0, found.status)
        return plan

    def turn_on(self):
        """Turn the policies on."""
        self.flags(
            group='nova_ext_sched',
            max_server_per_failure_domain=self.rack_limit,
            **audits.AuditTestCase.options,
        )

    def while_deleting(self, server, name, ask):
        """Delete a server; return what is said while it is being deleted.

        :param name: a method of nova-compute's manager, before which it is
            asked
        """
        answers, manager = [], compute_manager.ComputeManager
        step = getattr(manager, name)

        def ask_and_go_on(*args, **kwargs):
            answers.append(ask())
            return step(*args, **kwargs)

        with mock.patch.object(manager, name, ask_and_go_on):
            self._delete_server(server)
        [answer] = answers
        return answer

    def assertDeleted(self, servers, document):
        """Check which servers were left out, and that it is said."""
        number = len(servers)
        noun, verb = ('server', 'was') if number == 1 else ('servers', 'were')
        self.assertIn(
            f'{number} {noun} {verb} deleted meanwhile',
            document['answer']['sentence'],
        )
        self.assertEqual(
            sorted(one['id'] for one in servers),
            sorted(one['server'] for one in document['deleted_meanwhile']),
        )

    def mend(self, *argv):
        """Make a plan and carry it out; what is found then it has named.

        :returns: the plan
        """
        plan = self.plan(*argv)
        self.carry_out(plan)
        self.assertEqual(
            sorted(
                (one['server'], one['host'], policy)
                for one in plan['without_place']
                for policy in one['policies']
            ),
            self.found(),
        )
        return plan

    def assertSentence(self, expected, plan):
        """Check what a plan says before it says what audit found."""
        said = plan['answer']['sentence']
        self.assertTrue(said.startswith(f'{expected} '), said)

    def moves(self, plan):
        """Return server, source and destination of each move."""
        return [(m['server'], m['host'], m['to']) for m in plan['moves']]

    def group(self, limit=None):
        """Create a server group; return the hint of its members."""
        return {'group': self.create_group(limit)}
