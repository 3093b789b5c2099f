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
from tests.unit.osc import clouds
from tests.unit.osc.clouds import FLAG
from tests.unit.osc.clouds import X
from tests.unit.osc.clouds import Y

HOSTS = [f'host{number:02}' for number in range(0, 24, 2)]
FIVE = 'host[00,02,04,06,08]'
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

    def test_nova_is_read_by_the_sdk(self):
        """The client's own attribute is novaclient's in 2024.1."""
        manager = types.SimpleNamespace(
            sdk_connection=mock.Mock(), compute=None, nova_ext_sched=None
        )
        app = types.SimpleNamespace(client_manager=manager)
        command = self.command(app, None)
        command.color = 'never'
        read = mock.patch.object(isolation.isolation_cloud, 'read')
        with read as called, contextlib.redirect_stderr(io.StringIO()):
            command.read_cloud(True)
        nova = manager.sdk_connection.compute
        called.assert_called_once_with(nova, None, True)

    def test_totals_then_the_worst_then_what_to_do(self):
        cloud = clouds.read(
            'a: X; c: X; b: X Y; d:', 'a @1; b X; c X @2', known='X'
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
        cloud = clouds.read(
            # Placement does not keep requests out of nine hosts; one host is
            # closed, then two.
            f'{" ".join(many)}: X; a: Y; b c: X',
            ' X; '.join([*many, 'a @2; b @3; c @3']),
            known='X',
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
        given = 'a: X; a: FLAG; a: licence; gone: X', 'a @1 @2 @3'
        cloud = clouds.read(*given, known='X FLAG')
        text = self.run_command(cloud)
        self.assertIn(
            f'lacks {FLAG}, which nova-compute sets itself where the '
            'host supports it: a',
            text,
        )
        # The first three share a host, and each asks for more than the other.
        self.assertIn(
            '\nopenstack aggregate isolation sync repairs none of them; 4 '
            'need manual repair: agg1, agg2, agg3, agg4.\n',
            text,
        )
        cloud = clouds.read('a: X; gone: X', 'a', known='X')
        self.assertIn(
            '\nopenstack aggregate isolation sync repairs 1 aggregate; 1 '
            'needs manual repair: agg2.\n',
            self.run_command(cloud),
        )

    def test_traits_on_other_providers(self):
        cloud = clouds.read('a: X', 'a @1 X=a_gpu1,a_gpu2', known='X')
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
        lacking, fine = range(1, 13), range(13, 23)
        cloud = clouds.read(
            '; '.join([f'h{n}: X' for n in lacking] + ['c: X' for _ in fine]),
            '; '.join([f'h{n} @{n}' for n in lacking])
            + '; c X '
            + ' '.join(f'@{n}' for n in fine),
            known='X',
        )
        lines = self.run_command(cloud).splitlines()
        self.assertEqual(
            10, sum('lacks CUSTOM_X' in line for line in lines), lines
        )
        self.assertIn('  and 2 more aggregates (--all lists all)', lines)
        self.assertIn('  agg13, 1 host: requires CUSTOM_X', lines)
        self.assertIn('  and 5 more aggregates (--all lists all)', lines)

    def test_nothing(self):
        text = self.run_command(clouds.read(''), status=0)
        self.assertEqual('No aggregate has a trait: key.\n', text)

    def test_people_see_five_hosts_and_programs_all(self):
        def isolate(hosts):
            return clouds.read(f'{" ".join(hosts)}: X', known='X')

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
        aggregates = [clouds.aggregate(n, hosts, X, Y) for n in range(100)]
        cloud = clouds.make(aggregates, [], [X])
        lines = self.run_command(cloud, columns=columns).splitlines()
        self.assertGreaterEqual(columns, max(map(len, lines)))
        self.assertGreater(60, len(lines))

    def test_faults_of_each_kind_fit_a_screen(self):
        """Hosts of two aggregates, names that make few ranges."""
        names = [f'compute{n:03}.region.example.org' for n in range(104)]
        traits = [f'CUSTOM_LICENSED_SOFTWARE_{name}' for name in 'ABCDEFGH']
        aggregates = [
            clouds.aggregate(
                number,
                [name for n, name in enumerate(names[at : at + 16]) if n % 3],
                traits[number % 8],
            )
            for number, at in enumerate(range(0, 96, 8))
        ]
        nodes = map(clouds.node, names[:60])
        cloud = clouds.make(aggregates, nodes, traits[:4])
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
        hosts = 'h10 h11 h9: CUSTOM_A1 CUSTOM_A2'
        cloud = clouds.read(hosts, 'h10; h11; h9', known='')
        text = self.run_command(cloud, '--dry-run')
        self.assertIn('  add to aggregates agg1 (3): h[9-11]\n', text)
        self.assertIn('  add traits CUSTOM_A1, CUSTOM_A2 (3): h[9-11]\n', text)
        self.assertIn('): CUSTOM_A1, CUSTOM_A2, CUSTOM_NOVA', text)

    def test_dry_run_folds_equal_changes(self):
        """124 traits to create, and two hosts that get the same."""
        traits = ' '.join(f'CUSTOM_{number:03}' for number in range(62))
        cloud = clouds.read(f'a b: {traits}', 'a; b @1', known='')
        text = self.run_command(cloud, '--dry-run', columns=80, status=3)
        for said in (
            'To do: create trait (124), add to aggregates (1), add traits '
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
        cloud = clouds.read('a: X', 'a @1', known='X rX')
        self.assertEqual(
            """\
To do: add traits (1).

Planned:
  add traits CUSTOM_X (1): a

sync marks each trait that it gives with CUSTOM_NOVA_EXT_SCHED_SYNCED_<trait>;
  sync --prune removes no others.
""",
            self.run_command(cloud, '--dry-run', columns=80),
        )
        # A record alone is shown.
        cloud = clouds.read('', 'a rX')
        text = self.run_command(cloud, '--dry-run', '--prune')
        self.assertIn(f'  remove traits {RECORD} (1): a\n', text)

    def test_aggregates_that_are_named(self):
        cloud = clouds.read('a: X; b: X', 'a X; b X', known='X')
        for argv, hosts in (([], ['a', 'b']), (['agg2'], ['b'])):
            text = self.run_command(cloud, '--dry-run', '-f', 'json', *argv)
            self.assertEqual(hosts, [row['Host'] for row in json.loads(text)])

    def test_what_cannot_be_done(self):
        cloud = clouds.read('a: X FLAG', 'a X @1', known='X FLAG')
        for argv, status in (([], 1), (['--dry-run'], 3)):
            self.assertEqual(
                """\
Not possible: add traits (1).

Not possible: nova-compute sets this trait itself, where the host supports it:
  add traits HW_CPU_X86_VMX (1): a
""",
                self.run_command(cloud, *argv, status=status),
            )

    def test_nothing(self):
        for argv in ([], ['--dry-run']):
            text = self.run_command(clouds.read(''), *argv, status=0)
            self.assertEqual('Nothing to change.\n', text)

    @ddt.data(
        (['linux'], 'There is no aggregate linux.'),
        (['agg1'], 'aggregate agg1: expected metadata trait:<NAME>=required'),
    )
    @ddt.unpack
    def test_wrong_usage(self, argv, problem):
        cloud = clouds.read('a:')
        self.assertEqual('', self.run_command(cloud, *argv, status=2))
        self.assertIn(problem, self.err)

    def test_columns_are_checked_before_the_work(self):
        cloud = mock.Mock(aggregates=mock.Mock(side_effect=AssertionError))
        self.run_command(cloud, '-c', 'Bogus', status=2)
