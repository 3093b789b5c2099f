# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import json
import re
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
RECORD = 'CUSTOM_NOVA_EXT_SCHED_SYNCED_CUSTOM_X'


class CommandTestCase(testtools.TestCase):
    """A command on a cloud that is given; what it writes, and its status."""

    command: type[isolation.Command]

    def run_command(self, cloud, *argv, columns=200, status=None):
        """Return what it writes."""
        out, err = io.StringIO(), io.StringIO()
        app = types.SimpleNamespace(stdout=out, client_manager=mock.Mock())
        command = self.command(app, None)
        parsed_args = command.get_parser('test').parse_args(argv)
        with (
            mock.patch.object(command, 'read_cloud', return_value=cloud),
            mock.patch.dict('os.environ', COLUMNS=str(columns)),
            contextlib.redirect_stderr(err),
        ):
            found = command.run(parsed_args)
        self.assertIn(status, (found, None))
        self.err = err.getvalue()
        return out.getvalue()


@ddt.ddt
class ListTestCase(CommandTestCase):
    command = isolation.ListIsolation

    def test_totals_then_the_worst_then_what_to_do(self):
        # Placement knows X; the nodes lack it, but for that of "c".
        cloud = make_cloud(
            [
                make_aggregate(1, ['a'], X),
                make_aggregate(2, ['c'], X),
                make_aggregate(3, ['b'], X, Y),
                make_aggregate(4, ['d']),
            ],
            [
                make_node('a', inside=[1]),
                make_node('b', X),
                make_node('c', X, inside=[2]),
            ],
            known=[X],
        )
        text = self.run_command(cloud, columns=80, status=3)
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
            text,
        )
        self.assertEqual('', self.err)

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
                make_node('a', inside=[2]),
                make_node('b', inside=[3]),
                make_node('c', inside=[3]),
            ],
            known=[X],
        )
        text = self.run_command(cloud)
        self.assertIn('and no server can land on 3 hosts:\n', text)
        self.assertEqual(
            ['trait-missing', 'unknown-trait', 'not-mirrored'],
            re.findall('^(.+), 1 aggregate, ', text, re.MULTILINE),
        )
        rows = json.loads(self.run_command(cloud, '-f', 'json'))
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
            [make_node('a', inside=[1, 2, 3])],
            known=[X, flag],
        )
        text = self.run_command(cloud)
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
        self.assertIn(
            '\nopenstack aggregate isolation sync repairs 1 aggregate; 1 '
            'needs manual repair: agg4.\n',
            self.run_command(cloud),
        )

    def test_traits_on_other_providers(self):
        nodes = [make_node('a', inside=[1], CUSTOM_X=['a_gpu1', 'a_gpu2'])]
        cloud = make_cloud([make_aggregate(1, ['a'], X)], nodes, known=[X])
        self.assertEqual(
            """\
1 aggregate with a trait: key, no faults.

Without faults:
  agg1, 1 host: requires CUSTOM_X

These traits are not on the provider of the host itself, so only requests that
  use these providers find the hosts:
  CUSTOM_X on provider a_gpu1, a_gpu2: a
""",
            self.run_command(cloud, columns=80, status=0),
        )

    def test_every_kind_has_a_consequence_and_a_remedy(self):
        """The page makes its table of them."""
        for kind, meant in isolation_findings.FAULTS.items():
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
                *(make_node(f'h{n}', inside=[n]) for n in range(1, 13)),
                make_node('c', X, inside=range(20, 30)),
            ],
            known=[X],
        )
        lines = self.run_command(cloud).splitlines()
        self.assertEqual(
            10, sum('lacks CUSTOM_X' in line for line in lines), lines
        )
        self.assertIn('  and 2 more aggregates (--all lists all)', lines)
        self.assertIn('  agg20, 1 host: requires CUSTOM_X', lines)
        self.assertIn('  and 5 more aggregates (--all lists all)', lines)

    def test_nothing(self):
        text = self.run_command(make_cloud([], []), status=0)
        self.assertEqual('No aggregate has a trait: key.\n', text)

    def test_people_see_five_hosts_and_programs_all(self):
        def isolate(hosts):
            return make_cloud([make_aggregate(1, hosts, X)], [], known=[X])

        cloud = isolate(HOSTS)
        text = self.run_command(cloud, '-c', 'Faults', status=3)
        self.assertIn(f'a resource provider: {FIVE} and 7', text)
        self.assertIn('1 of 1 aggregate with', self.err)
        [row] = json.loads(self.run_command(cloud, '-f', 'json'))
        fault = {
            'fault': 'no-provider',
            'problem': 'no compute node with a resource provider',
            'hosts': HOSTS,
            'by_sync': False,
        }
        self.assertEqual([fault], row['Faults'])
        # A range is one.
        text = self.run_command(isolate([f'h{n}' for n in range(1, 41)]))
        self.assertIn(': h[1-40]\n', text)

    @ddt.data(80, 160)
    def test_no_line_is_too_long(self, columns):
        hosts = [f'compute{n:03}.example.org' for n in range(300)]
        aggregates = [make_aggregate(n, hosts, X, Y) for n in range(100)]
        cloud = make_cloud(aggregates, [], known=[X])
        lines = self.run_command(cloud, columns=columns).splitlines()
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
        text = self.run_command(cloud, columns=80)
        self.assertEqual(
            'conflict no-provider not-mirrored trait-missing unknown-trait',
            ' '.join(sorted(re.findall('\n\n([a-z-]+), ', text))),
        )
        self.assertGreater(60, text.count('\n'))


@ddt.ddt
class SyncTestCase(CommandTestCase):
    command = isolation.SyncIsolation

    def test_hosts_are_ranges_and_traits_are_not(self):
        traits = ['CUSTOM_A1', 'CUSTOM_A2']
        hosts = ['h10', 'h11', 'h9']
        cloud = make_cloud(
            [make_aggregate(1, hosts, *traits)], map(make_node, hosts), []
        )
        text = self.run_command(cloud, '--dry-run')
        self.assertIn('  add to aggregates agg1 (3): h[9-11]\n', text)
        self.assertIn('  add traits CUSTOM_A1, CUSTOM_A2 (3): h[9-11]\n', text)
        self.assertIn('): CUSTOM_A1, CUSTOM_A2, CUSTOM_NOVA', text)

    def test_dry_run_folds_equal_changes(self):
        """124 traits to create, and two hosts that get the same."""
        traits = [f'CUSTOM_{number:03}' for number in range(62)]
        cloud = make_cloud(
            [make_aggregate(1, ['a', 'b'], *traits)],
            [make_node('a'), make_node('b', inside=[1])],
            known=[],
        )
        text = self.run_command(cloud, '--dry-run', columns=80, status=3)
        for said in (
            'Planned: create trait (124), add to aggregates (1), add traits '
            '(2).\n',
            '\nPlanned:\n'
            '  create trait (124): CUSTOM_000, CUSTOM_001, CUSTOM_002, '
            'CUSTOM_003, CUSTOM_004\n'
            '    and 119 more\n'
            '  add to aggregates agg1 (1): a\n'
            '  add traits CUSTOM_000, ',
            ' and 57\n    more (2): a, b\n',
        ):
            self.assertIn(said, text)

    def test_one_trait_and_its_record(self):
        cloud = make_cloud(
            [make_aggregate(1, ['a'], X)],
            [make_node('a', inside=[1])],
            known=[X, RECORD],
        )
        self.assertEqual(
            """\
Planned: add traits (1).

Planned:
  add traits CUSTOM_X (1): a

sync marks each trait that it gives with CUSTOM_NOVA_EXT_SCHED_SYNCED_<trait>;
  sync --prune removes no others.
""",
            self.run_command(cloud, '--dry-run', columns=80),
        )
        # A record alone is shown.
        cloud = make_cloud([], [make_node('a', RECORD)])
        text = self.run_command(cloud, '--dry-run', '--prune')
        self.assertIn(f'  remove traits {RECORD} (1): a\n', text)

    def test_aggregates_that_are_named(self):
        cloud = make_cloud(
            [make_aggregate(1, ['a'], X), make_aggregate(2, ['b'], X)],
            [make_node('a', X), make_node('b', X)],
            known=[X],
        )
        for argv, hosts in (([], ['a', 'b']), (['agg2'], ['b'])):
            text = self.run_command(cloud, '--dry-run', '-f', 'json', *argv)
            self.assertEqual(hosts, [row['Host'] for row in json.loads(text)])

    def test_what_cannot_be_done(self):
        cloud = make_cloud(
            [make_aggregate(1, ['a'], X, 'HW_CPU_X86_VMX')],
            [make_node('a', X, inside=[1])],
            known=[X, 'HW_CPU_X86_VMX'],
        )
        for argv, status in (([], 1), (['--dry-run'], 3)):
            self.assertEqual(
                """\
Not possible: add traits (1).

Not possible: nova-compute itself sets this trait, on hosts that have it:
  add traits HW_CPU_X86_VMX (1): a
""",
                self.run_command(cloud, *argv, status=status),
            )

    def test_nothing(self):
        for argv in ([], ['--dry-run']):
            text = self.run_command(make_cloud([], []), *argv, status=0)
            self.assertEqual('Nothing to change.\n', text)

    @ddt.data(
        (['linux'], 'There is no aggregate linux.'),
        (['agg1'], 'aggregate agg1: expected metadata trait:<NAME>=required'),
    )
    @ddt.unpack
    def test_wrong_usage(self, argv, problem):
        cloud = make_cloud([make_aggregate(1, ['a'])], [])
        self.assertEqual('', self.run_command(cloud, *argv, status=2))
        self.assertIn(problem, self.err)

    def test_columns_are_checked_before_the_work(self):
        cloud = mock.Mock(aggregates=mock.Mock(side_effect=AssertionError))
        self.run_command(cloud, '-c', 'Bogus', status=2)
