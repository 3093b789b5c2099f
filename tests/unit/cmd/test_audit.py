# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import json
from unittest import mock

import ddt
import testtools

from nova_ext_sched.cmd import audit as audit_command
from nova_ext_sched.dryrun.audit import auditor
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.audit import totals
from nova_ext_sched.dryrun.cloud import projects
from nova_ext_sched.dryrun.cloud import snapshot
from tests.unit.cli import commands
from tests.unit.dryrun.audit import test_totals


def finding(number, policy='isolation', name='web'):
    return test_totals.make_server([policy], uuid=str(number), name=name)


class Auditor:
    """Finds what it is given."""

    def __init__(self, *findings, faults=()):
        self._findings = findings
        self.totals = totals.Totals(['isolation'])
        self.faults = list(faults)

    def count(self):
        return len(self._findings)

    def judge(self, advance):
        for server in self._findings:
            self.totals.add(server)
            yield server
            advance()

    def judge_hold(self):
        """Nothing is kept."""


@ddt.ddt
class OutputTestCase(testtools.TestCase):
    def test_an_option_without_a_value(self):
        args = commands.run, audit_command.Audit, '--option', 'debug'
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertRaises(SystemExit, *args)
        self.assertIn('[group.]name=value', err.getvalue())

    def run_command(self, auditing, *argv):
        command = audit_command.Audit
        with (
            mock.patch.object(command, 'configure') as configure,
            mock.patch.object(snapshot, 'Snapshot') as read,
            mock.patch.object(auditor, 'make') as make,
            # There may be a cloud in the environment.
            mock.patch.object(projects, 'read_names') as read_names,
            mock.patch.object(projects, 'find_id', lambda _, name: name + '1'),
        ):
            make.return_value = auditing
            read_names.return_value = {'project': 'web'}
            status, self.out, _ = commands.run(command, *argv)
        [self.asked] = read_names.call_args.args
        configure.assert_called_once()
        # Builds that are under way count as ended.
        read.assert_called_once_with(None, True)
        (cloud, *self.chosen) = make.call_args.args
        self.assertIs(read.return_value, cloud)
        return status

    @ddt.data(
        (0, Auditor()),
        (3, Auditor(finding(1))),
        (1, Auditor(finding(1, policies.NOT_JUDGED))),
        (1, Auditor(finding(1), finding(2, policies.NOT_JUDGED))),
        (1, Auditor(faults=['Cell a is down.'])),
        (1, Auditor(finding(1), faults=['Cell a is down.'])),
    )
    @ddt.unpack
    def test_exit_status(self, status, auditing):
        self.assertEqual(status, self.run_command(auditing))

    def test_what_is_judged(self):
        self.run_command(Auditor())
        self.assertEqual([[], [], [], None], self.chosen)
        self.run_command(
            Auditor(),
            *('--policy', 'isolation', '--policy', 'blazar'),
            *('--host', 'h', '--aggregate', 'a', '--project', 'p'),
        )
        self.assertEqual(
            [['isolation', 'blazar'], ['h'], ['a'], 'p1'], self.chosen
        )

    def test_summary(self):
        auditing = Auditor(finding(1), finding(2))
        status = self.run_command(auditing, '--summary', '-f', 'csv')
        self.assertEqual(3, status)
        self.assertEqual(
            [
                '"By","Name","Servers","Policies"',
                '"project","project",2,"{""isolation"": 2}"',
                '"host","host1",2,"{""isolation"": 2}"',
            ],
            self.out.splitlines(),
        )

    def test_document(self):
        """Users make the names up."""
        self.run_command(Auditor(finding(1, name='a\nb')), '-f', 'json')
        [found] = json.loads(self.out)['findings']
        self.assertEqual(('1', "'a\\nb'"), (found['server'], found['name']))
        self.assertEqual('web', found['project_name'])

    def test_projects_of_which_names_are_asked(self):
        self.run_command(Auditor())
        self.assertEqual(set(), self.asked)
        other = 'f' * 32
        server = finding(1)
        server.violated = [('isolation', f'project {other} may not')]
        self.run_command(Auditor(server))
        self.assertEqual({'project', other}, self.asked)
        # A summary tells no reason.
        self.run_command(Auditor(server), '--summary')
        self.assertEqual({'project'}, self.asked)
