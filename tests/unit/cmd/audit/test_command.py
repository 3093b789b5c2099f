# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import subprocess
import sys
import types
from unittest import mock

import ddt
import testtools
import yaml

from nova_ext_sched.cmd.audit import auditor
from nova_ext_sched.cmd.audit import command
from nova_ext_sched.cmd.audit import totals
from nova_ext_sched.cmd.cloud import process
from nova_ext_sched.cmd.cloud import servers


@ddt.ddt
class UsageTestCase(testtools.TestCase):
    def run_command(self, *argv):
        err = io.StringIO()
        audit = command.Audit(mock.Mock(), None, cmd_name='audit')
        with contextlib.redirect_stderr(err):
            try:
                parsed = audit.get_parser('audit').parse_args(argv)
            except SystemExit as exc:
                return exc.code, err.getvalue()
            with mock.patch.object(audit, 'configure') as configure:
                status = audit.run(parsed)
            configure.assert_not_called()
        return status, err.getvalue()

    @ddt.data(
        (['--option', 'debug'], '[group.]name=value'),
        (['--aggregate-property', 'gpu'], '2 arguments'),
        (['-c', 'Reasons'], 'no column Reasons. The columns are Server'),
    )
    @ddt.unpack
    def test_wrong(self, argv, part):
        status, err = self.run_command(*argv)
        self.assertEqual(2, status)
        self.assertIn(part, err)

    def test_no_nova_conf(self):
        done = subprocess.run(
            [
                sys.executable,
                '-W',
                'ignore',
                '-m',
                'nova_ext_sched.cli.main',
                'audit',
                '--config-file',
                '/nonexistent',
            ],
            capture_output=True,
            text=True,
        )
        self.assertEqual(2, done.returncode, done.stderr)
        self.assertIn('/nonexistent', done.stderr)
        self.assertNotIn('Traceback', done.stderr)


def finding(number, policy='isolation', name='web'):
    return types.SimpleNamespace(
        uuid=str(number),
        name=name,
        project_id='project',
        host='host1',
        host_state=types.SimpleNamespace(aggregates=[]),
        found=[(policy, 'why')],
        policies=[policy] if policy != servers.NOT_JUDGED else [],
    )


class Auditor:
    """Finds what it is given."""

    def __init__(self, *findings, servers=None, faults=()):
        self._findings = findings
        self.servers = len(findings) if servers is None else servers
        self.totals = totals.Totals(['isolation'])
        self.faults = list(faults)

    def count(self):
        return self.servers

    def judge(self, advance):
        for server in self._findings:
            self.totals.add(server)
            yield server
            advance()


@ddt.ddt
class OutputTestCase(testtools.TestCase):
    def run_command(self, auditing, *argv):
        self.out, self.err = io.StringIO(), io.StringIO()
        audit = command.Audit(
            mock.Mock(stdout=self.out), None, cmd_name='audit'
        )
        parsed = audit.get_parser('audit').parse_args(argv)
        with (
            contextlib.redirect_stderr(self.err),
            mock.patch.object(audit, 'configure') as configure,
            mock.patch.object(auditor, 'make') as make,
        ):
            make.return_value = auditing
            status = audit.run(parsed)
        configure.assert_called_once_with(parsed)
        make.assert_called_once_with(parsed)
        return status

    @ddt.data(
        (0, Auditor()),
        (3, Auditor(finding(1))),
        (1, Auditor(finding(1, servers.NOT_JUDGED))),
        (1, Auditor(finding(1), finding(2, servers.NOT_JUDGED))),
        (1, Auditor(faults=['Cell a is down.'])),
        (1, Auditor(finding(1), faults=['Cell a is down.'])),
    )
    @ddt.unpack
    def test_exit_status(self, status, auditing):
        self.assertEqual(status, self.run_command(auditing))

    def test_people_read_everything_on_standard_output(self):
        auditing = Auditor(finding(1), faults=['Cell a is down.'])
        self.run_command(auditing)
        self.assertIn('1 of 1 server violates', self.out.getvalue())
        self.assertIn('Cell a is down.', self.out.getvalue())
        self.assertEqual('', self.err.getvalue())

    @ddt.data(
        ['-f', 'csv'],
        ['-f', 'value'],
        ['-f', 'json', '-c', 'Server'],
        ['-c', 'Server'],
        ['--sort-column', 'Server'],
    )
    def test_programs_get_the_sentence_apart(self, argv):
        auditing = Auditor(finding(1), faults=['Cell a is down.'])
        self.run_command(auditing, *argv)
        self.assertEqual(
            '1 of 1 server violates a policy: isolation 1. Cell a is down.\n',
            self.err.getvalue(),
        )
        self.assertIn('1', self.out.getvalue())

    def test_table_of_columns(self):
        self.run_command(Auditor(finding(1)), '-c', 'Server', '-c', 'Host')
        self.assertIn('| 1      | host1 |', self.out.getvalue())

    def test_rows_are_sorted(self):
        for number, argv in ((2, ()), (1, ('--sort-column', 'Server'))):
            auditing = Auditor(finding(2), finding(1))
            self.run_command(auditing, '-f', 'value', *argv)
            self.assertTrue(self.out.getvalue().startswith(f'{number} web '))

    def test_names_that_users_made_up(self):
        self.run_command(
            Auditor(finding(1, name='a\nb')), '-f', 'value', '-c', 'Name'
        )
        self.assertEqual("'a\\nb'\n", self.out.getvalue())

    def test_options_as_if_nova_conf_had_them(self):
        audit = command.Audit(
            mock.Mock(stdout=io.StringIO()), None, cmd_name='audit'
        )
        parsed = audit.get_parser('audit').parse_args(
            ['--option', 'a.b=c=d', '--option', 'e=f']
        )
        with (
            mock.patch.object(audit, 'configure'),
            mock.patch.object(process, 'override') as override,
            mock.patch.object(auditor.snapshot, 'Snapshot'),
            mock.patch.object(auditor, 'Auditor', return_value=Auditor()),
        ):
            audit.run(parsed)
        override.assert_called_once_with({'a.b': 'c=d', 'e': 'f'})

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
            self.out.getvalue().splitlines(),
        )

    @ddt.data('json', 'yaml')
    def test_document(self, formatter):
        self.run_command(Auditor(finding(1)), '-f', formatter)
        document = yaml.safe_load(self.out.getvalue())
        self.assertEqual(
            [
                {
                    'server': '1',
                    'name': 'web',
                    'project': 'project',
                    'host': 'host1',
                    'policy': 'isolation',
                    'reason': 'why',
                }
            ],
            document['findings'],
        )
        self.run_command(Auditor(finding(1)), '-f', formatter, '-c', 'Server')
        document = yaml.safe_load(self.out.getvalue())
        self.assertEqual([{'Server': '1'}], document)
