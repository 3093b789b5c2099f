# SPDX-License-Identifier: Apache-2.0

import io
import json
import types
from unittest import mock

import ddt
from osc_lib.cli import format_columns
import testtools

from nova_ext_sched.osc import isolation
from nova_ext_sched.osc import isolation_findings
from nova_ext_sched.osc import isolation_report
from tests.unit.osc.test_isolation_plan import make_aggregate
from tests.unit.osc.test_isolation_plan import make_cloud
from tests.unit.osc.test_isolation_plan import make_node

HOSTS = [f'host{number:02}' for number in range(12)]
FIVE = ', '.join(HOSTS[:5])
X, Y = 'CUSTOM_X', 'CUSTOM_Y'


class FaultsColumnTestCase(testtools.TestCase):
    def test_people_see_five_hosts_and_programs_all(self):
        column = isolation_report.FaultsColumn(
            [
                isolation_findings.Finding('one', 'a problem'),
                isolation_findings.Finding('two', 'another', HOSTS),
            ]
        )
        self.assertEqual(
            f'one: a problem\ntwo: another: {FIVE} and 7 more',
            column.human_readable(),
        )
        self.assertEqual(
            [
                {'kind': 'one', 'problem': 'a problem', 'hosts': []},
                {'kind': 'two', 'problem': 'another', 'hosts': HOSTS},
            ],
            column.machine_readable(),
        )


class StepsTestCase(testtools.TestCase):
    def test_a_long_result_wraps(self):
        reason = 'failed: ' + 'placement does not answer, ' * 6
        row = {
            'Change': 'create trait',
            'Names': format_columns.ListColumn([X]),
            'Host': '',
            'Result': reason,
        }
        out = io.StringIO()
        isolation_report.Steps().emit_list(
            row, [row.values()], out, types.SimpleNamespace(max_width=80)
        )
        written = out.getvalue().splitlines()
        self.assertLessEqual(max(map(len, written)), 80)
        self.assertGreater(len(written), 3)


class CommandTestCase(testtools.TestCase):
    """A command on a cloud that is given; what it writes, and its status."""

    command: type[isolation.Command]

    def run_command(self, cloud, *argv, columns=80):
        self.out, self.err = io.StringIO(), io.StringIO()
        app = types.SimpleNamespace(
            stdout=self.out, stderr=self.err, client_manager=mock.Mock()
        )
        command = self.command(app, None)
        command.log = mock.Mock()
        parsed_args = command.get_parser('test').parse_args(argv)
        with (
            mock.patch.object(command, 'read_cloud', return_value=cloud),
            mock.patch.dict('os.environ', COLUMNS=str(columns)),
        ):
            status = command.run(parsed_args)
        self.errors = [
            str(call.args[0]) for call in command.log.error.mock_calls
        ]
        return status


class ListTestCase(CommandTestCase):
    command = isolation.ListIsolation

    def setUp(self):
        super().setUp()
        # Placement knows X; the nodes lack it, but for that of "c".
        self.cloud = make_cloud(
            [
                make_aggregate(1, ['a'], X),
                make_aggregate(2, ['c'], X),
                make_aggregate(3, ['b'], X, Y),
                make_aggregate(4, ['d']),
            ],
            [
                make_node('a', aggregates=['uuid1']),
                make_node('b', X),
                make_node('c', X, aggregates=['uuid2']),
            ],
            known=[X],
        )

    def test_faulty_aggregates_first_and_totals_last(self):
        self.assertEqual(3, self.run_command(self.cloud))
        self.assertEqual(
            [
                'agg1, 1 host: requires CUSTOM_X',
                '  trait-missing: the resource provider lacks CUSTOM_X: a',
                'agg3, 1 host: requires CUSTOM_X, CUSTOM_Y',
                '  unknown-trait: placement does not know CUSTOM_Y',
                '  not-mirrored: the resource provider is not in the '
                'placement aggregate: b',
                'agg2, 1 host: requires CUSTOM_X',
                '2 of 3 aggregates with a trait: key have faults: '
                'not-mirrored 1, trait-missing',
                '  1, unknown-trait 1.',
            ],
            self.out.getvalue().splitlines(),
        )
        self.assertEqual('', self.err.getvalue())

    def test_many_with_the_same_kinds_of_faults_are_folded(self):
        """Two are shown one by one, of more the first, and the fine ones."""
        for number, expected in (
            (2, [f'agg{n}, 1 host: requires CUSTOM_X' for n in (1, 2)]),
            (
                3,
                [
                    'agg1, 1 host: requires CUSTOM_X',
                    '2 more aggregates with trait-missing: agg2, agg3',
                ],
            ),
            (
                12,
                [
                    'agg1, 1 host: requires CUSTOM_X',
                    '11 more aggregates with trait-missing: agg10, agg11, '
                    'agg12, agg2, agg3 and 6 more',
                ],
            ),
        ):
            cloud = make_cloud(
                [
                    *(
                        make_aggregate(n, [f'h{n}'], X)
                        for n in range(1, number + 1)
                    ),
                    *(make_aggregate(n, ['c'], X) for n in range(20, 27)),
                    make_aggregate(30, ['d'], X, Y),
                ],
                [
                    *(
                        make_node(f'h{n}', aggregates=[f'uuid{n}'])
                        for n in range(1, number + 1)
                    ),
                    make_node(
                        'c', X, aggregates=[f'uuid{n}' for n in range(20, 27)]
                    ),
                    make_node('d', X, aggregates=['uuid30']),
                ],
                known=[X],
            )
            self.run_command(cloud, columns=200)
            lines = self.out.getvalue().splitlines()
            found = [line for line in lines if not line.startswith(' ')]
            self.assertEqual(
                [
                    *expected,
                    'agg30, 1 host: requires CUSTOM_X, CUSTOM_Y',
                    *(
                        f'agg{n}, 1 host: requires CUSTOM_X'
                        for n in range(20, 27)
                    ),
                ],
                found[:-1],
            )
            self.assertEqual(
                # The faults of those that are shown.
                3 if number == 2 else 2,
                len(lines) - len(found),
            )

    def test_totals_count_an_aggregate_once(self):
        """The kind of most aggregates first, then by name."""
        cloud = make_cloud(
            [
                make_aggregate(1, ['a'], X, Y, 'CUSTOM_Z'),
                make_aggregate(2, ['b'], X),
                make_aggregate(3, ['gone'], X),
            ],
            [make_node('a', X), make_node('b')],
            known=[X],
        )
        self.run_command(cloud, columns=200)
        self.assertEqual(
            '3 of 3 aggregates with a trait: key have faults: not-mirrored '
            '2, no-provider 1, trait-missing 1, unknown-trait 1.',
            self.out.getvalue().splitlines()[-1],
        )

    def test_faults_alone(self):
        self.assertEqual(3, self.run_command(self.cloud, '--faults'))
        self.assertNotIn('agg2', self.out.getvalue())
        self.assertIn('2 of 3 aggregates', self.out.getvalue())

    def test_no_fault(self):
        cloud = make_cloud(
            [make_aggregate(2, ['c'], X)],
            [make_node('c', X, aggregates=['uuid2'])],
            known=[X],
        )
        for argv in ([], ['--faults']):
            self.assertEqual(0, self.run_command(cloud, *argv))
            self.assertEqual(
                '1 aggregate with a trait: key, no faults.',
                self.out.getvalue().splitlines()[-1],
            )

    def test_nothing(self):
        self.assertEqual(0, self.run_command(make_cloud([], [])))
        self.assertEqual(
            'No aggregate has a trait: key.\n', self.out.getvalue()
        )

    def test_columns_are_a_table(self):
        status = self.run_command(self.cloud, '-c', 'Name', '-c', 'Hosts')
        self.assertEqual(3, status)
        self.assertIn('| agg1 | a     |', self.out.getvalue())
        self.assertIn('2 of 3 aggregates', self.err.getvalue())

    def test_unknown_column(self):
        status = self.run_command(self.cloud, '-c', 'Bogus')
        self.assertEqual(2, status)
        self.assertIn(
            "No recognized column names in ['Bogus']", self.errors[0]
        )
        self.assertEqual('', self.out.getvalue())

    def test_no_line_is_too_long(self):
        aggregates = [
            make_aggregate(
                number,
                [f'compute{n:03}.example.org' for n in range(300)],
                X,
                Y,
            )
            for number in range(100)
        ]
        cloud = make_cloud(aggregates, [], known=[X])
        for columns in (80, 160):
            self.run_command(cloud, columns=columns)
            lines = self.out.getvalue().splitlines()
            self.assertGreaterEqual(columns, max(map(len, lines)))
        self.assertGreater(500, len(lines))


@ddt.ddt
class SyncTestCase(CommandTestCase):
    command = isolation.SyncIsolation

    def test_dry_run_folds_equal_changes(self):
        """124 traits to create, and two hosts that get the same."""
        traits = [f'CUSTOM_{number:03}' for number in range(62)]
        cloud = make_cloud(
            [make_aggregate(1, ['a', 'b'], *traits)],
            [make_node('a'), make_node('b', aggregates=['uuid1'])],
            known=[],
        )
        self.assertEqual(3, self.run_command(cloud, '--dry-run'))
        text = self.out.getvalue()
        self.assertIn(
            'planned:\n'
            '  create trait (124): CUSTOM_000, CUSTOM_001, CUSTOM_002, '
            'CUSTOM_003, CUSTOM_004\n'
            '      and 119 more\n'
            '  add to aggregates agg1 (1): a\n'
            '  add traits CUSTOM_000, ',
            text,
        )
        self.assertIn(' and 57\n      more and records (2): a, b\n', text)
        self.assertEqual(
            'Planned: create trait (124), add to aggregates (1), add traits '
            '(2).',
            text.splitlines()[-1],
        )

    def test_one_trait_and_its_record(self):
        cloud = make_cloud(
            [make_aggregate(1, ['a'], X)],
            [make_node('a', aggregates=['uuid1'])],
            known=[X, f'CUSTOM_NOVA_EXT_SCHED_SYNCED_{X}'],
        )
        self.run_command(cloud, '--dry-run')
        self.assertIn(
            '  add traits CUSTOM_X and record (1): a\n', self.out.getvalue()
        )
        # A record alone is shown.
        cloud = make_cloud(
            [],
            [make_node('a', f'CUSTOM_NOVA_EXT_SCHED_SYNCED_{X}')],
        )
        self.run_command(cloud, '--dry-run', '--prune')
        self.assertIn(
            '  remove traits CUSTOM_NOVA_EXT_SCHED_SYNCED_CUSTOM_X (1): a\n',
            self.out.getvalue(),
        )

    def test_programs_get_every_change(self):
        cloud = make_cloud(
            [make_aggregate(1, ['a', 'b'], X)],
            [make_node(host, aggregates=['uuid1']) for host in 'ab'],
            known=[],
        )
        self.run_command(cloud, '--dry-run', '-f', 'json')
        rows = json.loads(self.out.getvalue())
        self.assertEqual(['', '', 'a', 'b'], [row['Host'] for row in rows])

    def test_what_cannot_be_done(self):
        cloud = make_cloud(
            [make_aggregate(1, ['a'], X, 'HW_CPU_X86_VMX')],
            [make_node('a', X, aggregates=['uuid1'])],
            known=[X, 'HW_CPU_X86_VMX'],
        )
        for argv, status in (([], 1), (['--dry-run'], 3)):
            self.assertEqual(status, self.run_command(cloud, *argv))
            self.assertEqual(
                [
                    'not possible: nova-compute sets this trait itself where '
                    'it is true:',
                    '  add traits HW_CPU_X86_VMX (1): a',
                    'Not possible: add traits (1).',
                ],
                self.out.getvalue().splitlines(),
            )

    def test_nothing(self):
        for argv in ([], ['--dry-run']):
            self.assertEqual(0, self.run_command(make_cloud([], []), *argv))
            self.assertEqual('Nothing to change.\n', self.out.getvalue())

    @ddt.data(
        (['--trait', X], '--trait: expected --prune too'),
        (['--prune', '--trait', 'COMPUTE_NODE'], 'nor sync itself sets'),
        (['linux'], 'expected the name, UUID or ID of an aggregate'),
        (['agg1'], 'aggregate agg1: expected metadata trait:<NAME>=required'),
    )
    @ddt.unpack
    def test_wrong_usage(self, argv, problem):
        cloud = make_cloud([make_aggregate(1, ['a'])], [])
        self.assertEqual(2, self.run_command(cloud, *argv))
        self.assertIn(problem, self.errors[0])
        self.assertEqual('', self.out.getvalue())

    def test_columns_are_checked_before_the_work(self):
        cloud = mock.Mock(aggregates=mock.Mock(side_effect=AssertionError))
        self.assertEqual(2, self.run_command(cloud, '-c', 'Bogus'))
