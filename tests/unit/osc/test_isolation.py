# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import itertools
import json
import types
from unittest import mock

import ddt
import testtools

from nova_ext_sched.osc import isolation
from nova_ext_sched.osc import isolation_findings
from tests.unit.osc.test_isolation_plan import make_aggregate
from tests.unit.osc.test_isolation_plan import make_cloud
from tests.unit.osc.test_isolation_plan import make_node

HOSTS = [f'host{number:02}' for number in range(0, 24, 2)]
FIVE = 'host[00,02,04,06,08]'
X, Y = 'CUSTOM_X', 'CUSTOM_Y'


class CommandTestCase(testtools.TestCase):
    """A command on a cloud that is given; what it writes, and its status."""

    command: type[isolation.Command]

    def run_command(self, cloud, *argv, columns=80):
        self.out, self.err = io.StringIO(), io.StringIO()
        app = types.SimpleNamespace(
            stdout=self.out, client_manager=mock.Mock()
        )
        command = self.command(app, None)
        parsed_args = command.get_parser('test').parse_args(argv)
        with (
            mock.patch.object(command, 'read_cloud', return_value=cloud),
            mock.patch.dict('os.environ', COLUMNS=str(columns)),
            contextlib.redirect_stderr(self.err),
        ):
            return command.run(parsed_args)


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

    def test_totals_then_the_worst_then_what_to_do(self):
        self.assertEqual(3, self.run_command(self.cloud))
        self.assertEqual(
            """\
2 of 3 aggregates with a trait: key have faults, and no server can land on 2
  hosts:
  1  trait-missing
  1  unknown-trait
  1  not-mirrored
openstack aggregate isolation sync repairs 2 aggregates.

trait-missing, 1 aggregate, 1 host: No server can land on these hosts: requests
  with the trait do not find them, and others are kept out. Run sync.
  agg1: the resource provider lacks CUSTOM_X: a

unknown-trait, 1 aggregate, 1 host: No server can land on these hosts, because
  no request can require the trait. Run sync.
  agg3: placement does not know CUSTOM_Y

not-mirrored, 1 aggregate, 1 host: Placement does not keep requests out of these
  hosts; IsolatedAggregatesFilter alone does. Run sync.
  agg3: the resource provider is not in the placement aggregate: b

Without faults:
  agg2, 1 host: requires CUSTOM_X
""",  # noqa: E501
            self.out.getvalue(),
        )
        self.assertEqual('', self.err.getvalue())

    def test_worst_is_what_leaves_most_hosts_that_nobody_can_use(self):
        many = [f'h{n}' for n in range(9)]
        cloud = make_cloud(
            [
                # Placement does not keep requests out of nine hosts.
                make_aggregate(1, many, X),
                # One host is closed, then two.
                make_aggregate(2, ['a'], Y),
                make_aggregate(3, ['b', 'c'], X),
            ],
            [
                *(make_node(host, X) for host in many),
                make_node('a', aggregates=['uuid2']),
                make_node('b', aggregates=['uuid3']),
                make_node('c', aggregates=['uuid3']),
            ],
            known=[X],
        )
        self.run_command(cloud, columns=200)
        lines = self.out.getvalue().splitlines()
        self.assertIn('and no server can land on 3 hosts:', lines[0])
        kinds = [
            line.partition(',')[0] for line in lines if ' aggregate, ' in line
        ]
        self.assertEqual(
            ['trait-missing', 'unknown-trait', 'not-mirrored'], kinds
        )
        self.run_command(cloud, '-f', 'json')
        rows = json.loads(self.out.getvalue())
        self.assertEqual(['agg3', 'agg2', 'agg1'], [r['Name'] for r in rows])

    def test_what_sync_repairs_and_what_needs_a_person(self):
        flag = 'HW_CPU_X86_VMX'
        cloud = make_cloud(
            [
                make_aggregate(1, ['a'], X),
                make_aggregate(2, ['a'], flag),
                make_aggregate(3, ['a'], 'licence'),
                make_aggregate(4, ['gone'], X),
            ],
            [make_node('a', aggregates=['uuid1', 'uuid2', 'uuid3'])],
            known=[X, flag],
        )
        self.run_command(cloud, columns=200)
        text = self.out.getvalue()
        self.assertIn(
            f'lacks {flag}, which nova-compute itself sets on hosts that '
            'have it: a',
            text,
        )
        # The first three share a host, and each asks for more than the other.
        self.assertIn(
            '\nopenstack aggregate isolation sync repairs none of them; 4 '
            'need manual repair: agg1, agg2, agg3, agg4.\n',
            text,
        )
        cloud = make_cloud(
            [make_aggregate(1, ['a'], X), make_aggregate(4, ['gone'], X)],
            [make_node('a')],
            known=[X],
        )
        self.run_command(cloud, columns=200)
        self.assertIn(
            '\nopenstack aggregate isolation sync repairs 1 aggregate; 1 '
            'needs manual repair: agg4.\n',
            self.out.getvalue(),
        )

    def test_traits_on_other_providers(self):
        nodes = [
            make_node('a', aggregates=['uuid1'], CUSTOM_X=['a_gpu1', 'a_gpu2'])
        ]
        cloud = make_cloud([make_aggregate(1, ['a'], X)], nodes, known=[X])
        self.assertEqual(0, self.run_command(cloud))
        self.assertEqual(
            """\
1 aggregate with a trait: key, no faults.

Without faults:
  agg1, 1 host: requires CUSTOM_X

These traits are not on the provider of the host itself, so only requests that
  use these providers find the hosts:
  CUSTOM_X on provider a_gpu1, a_gpu2: a
""",
            self.out.getvalue(),
        )

    def test_every_kind_has_a_consequence_and_a_remedy(self):
        """The page makes its table of them."""
        for kind, meant in isolation_findings.KINDS.items():
            self.assertRegex(kind, '^[a-z][a-z-]+$')
            for sentence in (meant.consequence, meant.remedy):
                self.assertRegex(sentence, r'^[A-Z].*[^.]$')

    def test_many_are_folded(self):
        cloud = make_cloud(
            [
                *(make_aggregate(n, [f'h{n}'], X) for n in range(1, 13)),
                *(make_aggregate(n, ['c'], X) for n in range(20, 30)),
            ],
            [
                *(
                    make_node(f'h{n}', aggregates=[f'uuid{n}'])
                    for n in range(1, 13)
                ),
                make_node(
                    'c', X, aggregates=[f'uuid{n}' for n in range(20, 30)]
                ),
            ],
            known=[X],
        )
        self.run_command(cloud, columns=200)
        lines = self.out.getvalue().splitlines()
        self.assertEqual(
            10, sum('lacks CUSTOM_X' in line for line in lines), lines
        )
        self.assertIn('  and 2 more aggregates (--all lists all)', lines)
        self.assertIn('  agg20, 1 host: requires CUSTOM_X', lines)
        self.assertIn('  and 5 more aggregates (--all lists all)', lines)

    def test_no_fault(self):
        cloud = make_cloud(
            [make_aggregate(2, ['c'], X)],
            [make_node('c', X, aggregates=['uuid2'])],
            known=[X],
        )
        self.assertEqual(0, self.run_command(cloud))
        self.assertIn('agg2', self.out.getvalue())
        self.assertEqual(
            '1 aggregate with a trait: key, no faults.',
            self.out.getvalue().splitlines()[0],
        )

    def test_equal_hosts_are_a_range(self):
        hosts = [f'host{number}' for number in range(1, 41)]
        cloud = make_cloud([make_aggregate(1, hosts, X)], [], known=[X])
        self.run_command(cloud)
        self.assertIn(': host[1-40]\n', self.out.getvalue())

    def test_nothing(self):
        self.assertEqual(0, self.run_command(make_cloud([], [])))
        self.assertEqual(
            'No aggregate has a trait: key.\n', self.out.getvalue()
        )

    def test_people_see_five_hosts_and_programs_all(self):
        cloud = make_cloud([make_aggregate(1, HOSTS, X)], [], known=[X])
        status = self.run_command(cloud, '-c', 'Faults', columns=400)
        self.assertEqual(3, status)
        self.assertIn(
            f'a resource provider: {FIVE} and 7', self.out.getvalue()
        )
        self.assertIn('1 of 1 aggregate with', self.err.getvalue())
        self.run_command(cloud, '-f', 'json')
        [row] = json.loads(self.out.getvalue())
        self.assertEqual(
            [
                {
                    'kind': 'no-provider',
                    'problem': 'no compute node with a resource provider',
                    'hosts': HOSTS,
                    'by_sync': False,
                }
            ],
            row['Faults'],
        )

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
            self.assertGreater(60, len(lines))

    def test_faults_of_each_kind_fit_a_screen(self):
        """Hosts of two aggregates, names that make few ranges."""
        names = [f'compute{n:03}.region.example.org' for n in range(104)]
        traits = [f'CUSTOM_LICENSED_SOFTWARE_{name}' for name in 'ABCDEFGH']
        aggregates = [
            make_aggregate(
                number,
                [name for n, name in enumerate(names[at : at + 16]) if n % 3],
                traits[number % 8],
            )
            for number, at in enumerate(range(0, 96, 8))
        ]
        nodes = [make_node(name) for name in names[:60]]
        cloud = make_cloud(aggregates, nodes, known=traits[:4])
        self.run_command(cloud)
        lines = self.out.getvalue().splitlines()
        self.assertEqual(
            [
                'conflict',
                'no-provider',
                'not-mirrored',
                'trait-missing',
                'unknown-trait',
            ],
            sorted(
                line.split(',')[0]
                for before, line in itertools.pairwise(lines)
                if not before
            ),
        )
        self.assertGreater(60, len(lines))


@ddt.ddt
class SyncTestCase(CommandTestCase):
    command = isolation.SyncIsolation

    def test_hosts_are_ranges_and_traits_are_not(self):
        traits = ['CUSTOM_A1', 'CUSTOM_A2']
        hosts = ['h10', 'h11', 'h9']
        cloud = make_cloud(
            [make_aggregate(1, hosts, *traits)],
            [make_node(host) for host in hosts],
            known=[],
        )
        self.run_command(cloud, '--dry-run', columns=200)
        text = self.out.getvalue()
        self.assertIn('  add to aggregates agg1 (3): h[9-11]\n', text)
        self.assertIn('  add traits CUSTOM_A1, CUSTOM_A2 (3): h[9-11]\n', text)
        self.assertIn('): CUSTOM_A1, CUSTOM_A2, CUSTOM_NOVA', text)

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
            '\nPlanned:\n'
            '  create trait (124): CUSTOM_000, CUSTOM_001, CUSTOM_002, '
            'CUSTOM_003, CUSTOM_004\n'
            '    and 119 more\n'
            '  add to aggregates agg1 (1): a\n'
            '  add traits CUSTOM_000, ',
            text,
        )
        self.assertIn(' and 57\n    more (2): a, b\n', text)
        self.assertEqual(
            'Planned: create trait (124), add to aggregates (1), add traits '
            '(2).',
            text.splitlines()[0],
        )

    def test_one_trait_and_its_record(self):
        cloud = make_cloud(
            [make_aggregate(1, ['a'], X)],
            [make_node('a', aggregates=['uuid1'])],
            known=[X, f'CUSTOM_NOVA_EXT_SCHED_SYNCED_{X}'],
        )
        self.run_command(cloud, '--dry-run')
        self.assertEqual(
            """\
Planned: add traits (1).

Planned:
  add traits CUSTOM_X (1): a

sync marks each trait that it gives with CUSTOM_NOVA_EXT_SCHED_SYNCED_<trait>;
  sync --prune removes no others.
""",
            self.out.getvalue(),
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

    def test_aggregates_that_are_named(self):
        cloud = make_cloud(
            [make_aggregate(1, ['a'], X), make_aggregate(2, ['b'], X)],
            [make_node('a', X), make_node('b', X)],
            known=[X],
        )
        for argv, hosts in (([], ['a', 'b']), (['agg2'], ['b'])):
            self.run_command(cloud, '--dry-run', '-f', 'json', *argv)
            rows = json.loads(self.out.getvalue())
            self.assertEqual(hosts, [row['Host'] for row in rows])

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
                    'Not possible: add traits (1).',
                    '',
                    'Not possible: nova-compute itself sets this trait, on '
                    'hosts that have it:',
                    '  add traits HW_CPU_X86_VMX (1): a',
                ],
                self.out.getvalue().splitlines(),
            )

    def test_nothing(self):
        for argv in ([], ['--dry-run']):
            self.assertEqual(0, self.run_command(make_cloud([], []), *argv))
            self.assertEqual('Nothing to change.\n', self.out.getvalue())

    @ddt.data(
        (['linux'], 'There is no aggregate linux.'),
        (['agg1'], 'aggregate agg1: expected metadata trait:<NAME>=required'),
    )
    @ddt.unpack
    def test_wrong_usage(self, argv, problem):
        cloud = make_cloud([make_aggregate(1, ['a'])], [])
        self.assertEqual(2, self.run_command(cloud, *argv))
        self.assertIn(problem, self.err.getvalue())
        self.assertEqual('', self.out.getvalue())

    def test_columns_are_checked_before_the_work(self):
        cloud = mock.Mock(aggregates=mock.Mock(side_effect=AssertionError))
        self.assertEqual(2, self.run_command(cloud, '-c', 'Bogus'))
