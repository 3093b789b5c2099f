# SPDX-License-Identifier: Apache-2.0

import dataclasses

import ddt
import testtools

from nova_ext_sched.cli import topology
from nova_ext_sched.cmd import survive_report
from nova_ext_sched.dryrun.plan import plans
from tests import schemas
from tests.unit.cmd import plan_cases
from tests.unit.cmd import reading


def make_roomy(name, room, *causes):
    """Return the failure of a host, with a number for its last server."""
    failure = plan_cases.make_failure(name, *causes)
    return dataclasses.replace(failure, hosts=[name], room_for_last=room)


@ddt.ddt
class SurvivalTestCase(testtools.TestCase):
    def tell(
        self,
        failures,
        remarks=(),
        faults=(),
        flavors=(),
        deleted=(),
        all_=False,
    ):
        """Return the lines of a report; its document is valid."""
        rest = map(list, (flavors, deleted, remarks, faults))
        outcome = plans.Outcome(failures, *rest)
        self.made = survive_report.make(outcome, 'host', all_=all_)
        schemas.validate(self.made.document(), 'schemas/plan.json')
        return reading.read_lines(self.made)

    def test_how_many_are_to_come(self):
        flavors = [plan_cases.make_flavor('small', 9, 4)]
        outcome = plans.Outcome([], flavors, [], [], [])
        for count, status in ((1, 0), (4, 0), (5, 3)):
            made = survive_report.make(outcome, 'host', count=count)
            self.assertEqual(status, made.status)
            wanted = f', {count} wanted' * bool(status)
            self.assertIn(
                f'4 of 9 that fit now{wanted}',
                reading.read_flat(made),
            )
            self.assertEqual(bool(status), 'wanted' in reading.read_flat(made))

    def test_root_disks(self):
        failures = [plan_cases.make_failure(name) for name in 'ab']
        [move] = failures[0].moves
        failures[0].moves[0] = dataclasses.replace(move, from_image=True)
        self.assertIn(
            '1 server has its root disk on a host that failed: unless disks '
            'are shared, it comes back from its image.',
            ' '.join(' '.join(self.tell(failures)).split()),
        )

    def test_the_first_lines(self):
        lines = self.tell(
            [
                plan_cases.make_failure('gpu-01', *['PCI_DEVICE'] * 3),
                plan_cases.make_failure('a', to=None),
                plan_cases.make_failure(
                    'compute-09', 'isolation/windows', 'MEMORY_MB'
                ),
            ],
            remarks=['More.'],
            faults=['Cell a is silent.'],
        )
        self.assertEqual(
            [
                '1 of 3 hosts can fail, one at a time, of those read; 2 '
                'cannot:',
                '  gpu-01      3 of 4 servers cannot be placed: PCI_DEVICE',
                '  compute-09  2 of 3: isolation (windows) 1, MEMORY_MB 1',
                'More.',
                'Cell a is silent.',
            ],
            lines[:5],
        )
        # Nobody counted choices.
        self.assertIn(f'gpu-01            4       1{" " * 24}-', lines)
        self.assertIn('Cannot be placed, from gpu-01, compute-09:', lines)
        self.assertEqual(1, self.made.status)
        self.assertNotIn('Moves, in order:', lines)
        rows = list(self.made.rows)
        self.assertEqual(8, len(rows))
        self.assertEqual(
            ['host2', '', 'host2'], [row[-2] for row in rows if row[1] == 1]
        )

    @ddt.data(
        # A host can fail where there is room.
        (
            [['state']],
            [
                'a can fail: 1 of its 2 servers can be restarted elsewhere.',
                'nova would not evacuate 1 server in its state.',
            ],
            True,
        ),
        (
            [['state'], ['state: VCPU', 'VCPU']],
            [
                '1 of 2 hosts can fail, one at a time; 1 cannot:',
                '  b  2 of 3 servers cannot be placed: VCPU',
                'nova would not evacuate 1 server in its state.',
            ],
            False,
        ),
        # It is not safe where nova never evacuates, whatever room there is.
        (
            [['state'], ['state', 'state', 'never evacuated', 'VCPU']],
            [
                '1 of 2 hosts can fail, one at a time; 1 cannot:',
                '  b  2 of 5 servers cannot be placed: never evacuated 1, '
                'VCPU 1',
                'nova would not evacuate 2 servers in their state.',
                'nova never evacuates 1 server, in any state.',
            ],
            True,
        ),
    )
    @ddt.unpack
    def test_servers_that_nova_would_not_evacuate(self, failures, said, room):
        failures = [
            plan_cases.make_failure(name, *causes)
            for name, causes in zip('ab', failures, strict=False)
        ]
        lines = self.tell(failures)
        self.assertEqual([*said, ''], lines[: len(said) + 1])
        self.assertEqual(
            room,
            'There is room for these, but nova does not evacuate them in '
            'their state:' in lines,
        )
        causes = [row[-1] for row in self.made.rows]
        self.assertEqual(len(said) == 3, 'state, VCPU' in causes)

    @ddt.data(
        (3, 'VCPU', []),
        (3, 'state', []),
        (3, 'never evacuated', []),
        (1, plans.FAULT, []),
        (1, f'state: {plans.FAULT}', []),
        (1, 'VCPU', ['Down.']),
    )
    @ddt.unpack
    def test_exit_status(self, status, cause, faults):
        self.tell([plan_cases.make_failure('host1', cause)], faults=faults)
        self.assertEqual(status, self.made.status)

    def test_all_well_is_two_lines(self):
        """A table of hosts that can all fail is for those who ask for it."""
        failures = [make_roomy('a', 60), make_roomy('b', 1)]
        first = '2 of 2 hosts can fail, one at a time.'
        self.assertEqual(
            [
                first,
                'The tightest is b: 1 choice for its last server (--all lists '
                'every host).',
            ],
            self.tell(failures),
        )
        lines = self.tell(failures, all_=True)
        self.assertEqual([first, ''], lines[:2])
        self.assertEqual(
            ['Host', 'b', 'a'], [line.split()[0] for line in lines[2:]]
        )

    @ddt.data((1, 'its server'), (2, 'all 2 of its servers'))
    @ddt.unpack
    def test_one_host(self, servers, said):
        failure = dataclasses.replace(
            plan_cases.make_failure('cmp-3'),
            moves=[
                plan_cases.make_move(turn, 'evacuate')
                for turn in range(servers)
            ],
        )
        [first, *_] = self.tell([failure])
        self.assertEqual(
            f'cmp-3 can fail: {said} can be restarted elsewhere.', first
        )

    @ddt.data(
        (1, 'The tightest is b: 1 choice for its last server'),
        (2, 'None is tight'),
    )
    @ddt.unpack
    def test_hosts_of_which_none_is_tight(self, room, said):
        outcome = plans.Outcome(
            [make_roomy('a', 2), make_roomy('b', room)],
            *([], [], [], []),
            topology=[{'host': name} for name in 'abc'],
        )
        made = survive_report.make(outcome, 'host')
        lines = reading.read_lines(made)
        self.assertEqual(f'{said} (--all lists every host).', lines[1])

    def test_the_tightest(self):
        """Those that cost servers, then by room, then as people count."""
        failures = [
            make_roomy(f'host{number}', left)
            for number, left in enumerate([9, 8, 7, *[60] * 8, 4])
        ]
        failures.append(make_roomy('bad', 30, 'VCPU'))
        self.assertEqual(
            [
                'The tightest of 13 hosts:',
                'Host    Servers  Placed  Choices for last server',
                'bad           2       1                       30  '
                f'{"█" * 15}',
                f'host11        1       1                        4  {"█" * 2}',
                f'host2         1       1                        7  {"█" * 4}',
                f'host1         1       1                        8  {"█" * 4}',
                f'host0         1       1                        9  {"█" * 4}',
                *(
                    f'host{number}         1       1{" " * 23}60  {"█" * 30}'
                    for number in range(3, 8)
                ),
                '  and 3 more hosts (--all lists all)',
            ],
            self.tell(failures)[3:16],
        )

    def test_no_server_but_those_that_were_deleted(self):
        deleted = [plan_cases.make_leaving(number) for number in (1, 2)]
        lines = self.tell([], remarks=['More.'], deleted=deleted)
        said = ['No host holds a server.', 'More.']
        said.append('2 servers were deleted meanwhile, or are being deleted.')
        self.assertEqual(said, lines)
        self.assertEqual(0, self.made.status)
        document = self.made.document()
        self.assertEqual(' '.join(said), document['answer']['sentence'])
        self.assertEqual(
            [dataclasses.asdict(one) for one in deleted],
            document['deleted_meanwhile'],
        )

    def test_flavors(self):
        flavors = [
            plan_cases.make_flavor('small', 40, 31, 'host3'),
            plan_cases.make_flavor('m', 2, 2, or_more=True),
            plan_cases.make_flavor(
                'xl', 0, 0, '', False, '0 of 2 hosts', 'VCPU'
            ),
        ]
        lines = self.tell(
            [plan_cases.make_failure('a'), plan_cases.make_failure('b')],
            flavors=flavors,
        )
        self.assertEqual(
            [
                'Room for more servers, while any one host can still fail '
                'safely:',
                '  small  31 of 40 that fit now; one more would strand a '
                'server of host3',
                '  m      2 of at least 2 that fit now',
                '  xl     0 of 0 that fit now',
                '    0 of 2 hosts.',
            ],
            lines[3:],
        )
        self.assertEqual(3, self.made.status)
        self.assertEqual(
            [
                ('a', 1, 'host2', '', '', '', ''),
                ('b', 1, 'host2', '', '', '', ''),
                ('host3', '', '', '', 'small', 40, 31),
                ('', '', '', '', 'm', 2, 2),
                ('', '', '', 'VCPU', 'xl', 0, 0),
            ],
            # Failure and Turn; To, Cause, and what is of flavors.
            [row[:2] + row[6:] for row in self.made.rows],
        )
        self.assertEqual(
            [*map(dataclasses.asdict, flavors)],
            self.made.document()['flavors'],
        )

    @ddt.data((['VCPU'], [], 3), ([], [], 3), ([], ['Cell a.'], 1))
    @ddt.unpack
    def test_a_flavor_of_which_none_may_come(self, causes, faults, status):
        none = [plan_cases.make_flavor('small', 9, 0, 'b')]
        failure = plan_cases.make_failure('a', *causes)
        self.tell([failure], flavors=none, faults=faults)
        self.assertEqual(status, self.made.status)


class MapTestCase(testtools.TestCase):
    def test_failures(self):
        """What finds no host counts where it stands, in a domain too."""
        failures = [
            make_roomy('r1', None, 'VCPU', 'state', 'never evacuated'),
            make_roomy('b', 8),
            make_roomy('c', 4),
        ]
        outcome = plans.Outcome(failures, [], [], [], [])
        [stuck, _] = outcome.lost.values()
        made = survive_report.draw(outcome, None, True)
        self.assertEqual({stuck.host: 2}, made.numbers)
        self.assertEqual(
            {stuck.host: '2', 'b': '█', 'c': '▅'},
            {host: sign.shown for host, sign in made.signs.items()},
        )
        nothing = topology.NOTHING.shown
        self.assertEqual('holds no server', made.legend[nothing])
        made = survive_report.draw(outcome, None, False)
        self.assertEqual('not asked about', made.legend[nothing])
