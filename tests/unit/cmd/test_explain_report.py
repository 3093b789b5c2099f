# SPDX-License-Identifier: Apache-2.0

"""From the matrix to the document, and from the document to what is read."""

import io

import ddt
from nova import objects
import testtools
from testtools import matchers

from nova_ext_sched import messages
from nova_ext_sched.cli import base as base_command
from nova_ext_sched.cli import report as cli_report
from nova_ext_sched.cmd import explain_report as report
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import document
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import refusals
from tests import schemas
from tests.unit.request_filters import base

SERVER = '8d1f52c6-6b3a-4d0c-9c39-0f4c1c9a7e55'
#: Of hosts, as shortage.explain counts them.
NUMBERS = [0] * 5


def request(**changed):
    spec = base.request_spec(
        flavor=objects.Flavor(
            name='large',
            flavorid='42',
            vcpus=4,
            memory_mb=9999,
            root_gb=10,
            ephemeral_gb=2,
            swap=0,
            extra_specs={'trait:X': 'required'},
        )
    )
    return {**document.make_request(spec), **changed}


def hosts(number, digits=1):
    """Return a matrix of hosts and no constraint."""
    return matrix.Matrix({str(n): f'host{n:0{digits}}' for n in range(number)})


def refuse(found, uuids, kind='are out', cause='', name='F', rank=0, **fields):
    """Add a host filter that refuses these hosts."""
    refusal = refusals.Refusal(kind, cause, rank=rank)
    found.add(
        'host filter', name, refused=dict.fromkeys(uuids, refusal), **fields
    )


def cloud(number=300):
    found = hosts(number, digits=3)
    isolated = {
        uuid: refusals.Refusal(
            'are isolated',
            'isolation',
            f'windows{int(uuid) % 7}',
            'the request does not require CUSTOM_LICENSED_WINDOWS',
        )
        for uuid in sorted(found.names)[: number // 3]
    }
    found.query = ['resources=MEMORY_MB%3A9999&member_of=' + 'x' * 300]
    found.add('request filter', 'isolate_aggregates', 'a', isolated)
    found.add(
        'placement',
        'resources=MEMORY_MB:9999',
        refused=dict.fromkeys(
            found.names,
            refusals.Refusal(
                'are too small (MEMORY_MB)', 'MEMORY_MB', lifts=False
            ),
        ),
        capacity=conclusion.Capacity('MEMORY_MB', 9999, *NUMBERS),
        free={
            uuid: 8192 if int(uuid) % 100 == 12 else 4096
            for uuid in found.names
        },
    )
    found.add(
        'host filter', 'ComputeFilter', judged=set(sorted(found.names)[:3])
    )
    found.add('host filter', 'IsolatedAggregatesFilter', '', isolated)
    return found


def write(built, width=80, **kwargs):
    schemas.validate(built, 'schemas/explain.json')
    made = report.make(built, **kwargs)
    stream = io.StringIO()
    cli_report.write(stream, made.sections, width)
    return stream.getvalue()


def tell(found, **changed):
    """Return what people read of a matrix."""
    return write(document.build(found, request(**changed)))


@ddt.ddt
class AnswerTestCase(testtools.TestCase):
    def test_cell_did_not_answer(self):
        """Nobody knows whether one of its hosts has room."""
        for passes in (False, True):
            found = hosts(2)
            if passes:
                found.prefer('0', 1.0)
            found.faults = ['The hosts of cell b are not counted']
            built = document.build(found, request())
            self.assertEqual(base_command.FAULT, report.make(built).status)
            for text in (write(built), built['answer']['sentence']):
                self.assertThat(
                    text,
                    matchers.StartsWith(f'{found.faults[0]}.'),
                )

    def test_no_host(self):
        self.assertEqual(
            f"""\
To create server db-1 ({SERVER}):
No host: 0 of 300 hosts can take it.
  300 are too small (MEMORY_MB)

No single change frees a host; a smaller flavor would fit.
A flavor of at most 8192 MB would fit 1 host, host212; 9999 MB requested.

The request:
  flavor large: 4 VCPU, 9999 MB, 12 GB of disk
  extra specs trait:X=required
  project project

Constraint                                    Refuses  Alone  Left
all hosts                                                      300  ████████████
request filter:
  isolate_aggregates                              100      0   200  ████████░░░░
    100 are isolated (windows3 15, windows4
    15, windows0 14 and 4 more)
placement:
  resources=MEMORY_MB:9999                        300      0     0  ░░░░░░░░
    300 are too small (MEMORY_MB)
host filter:
  IsolatedAggregatesFilter                        100      0     0
    100 are isolated (windows3 15, windows4
    15, windows0 14 and 4 more)
""",  # noqa: E501
            tell(cloud(), server=SERVER, server_name='db-1'),
        )

    def test_full_hosts_and_what_would_fit(self):
        """Room on a host that something else refuses helps nobody."""
        found = hosts(9)
        refuse(found, '0')
        full = refusals.Refusal('are full (DISK_GB)', 'DISK_GB')
        small = refusals.Refusal(
            'are too small (DISK_GB)', 'DISK_GB', lifts=False
        )
        found.add(
            'placement',
            'resources=DISK_GB:50',
            refused={
                uuid: full if uuid < '4' else small for uuid in found.names
            },
            capacity=conclusion.Capacity('DISK_GB', 50, *NUMBERS),
            free={uuid: 49 - 10 * int(uuid) for uuid in found.names},
        )
        built = document.build(found, request())
        self.assertIn(
            'Hosts that one change alone would free:\n'
            '  3  free DISK_GB on host1, host2, host3\n'
            'A flavor of at most 39 GB of disk would fit 1 host, host1; 50 '
            'GB of disk\n  requested.\n',
            write(built),
        )
        found = built['constraints'][1]['capacity']
        self.assertEqual(
            (8, 39, 'host1', 1),
            tuple(
                found[key]
                for key in ('alone', 'most_free', 'most_free_host', 'fits')
            ),
        )

    def test_nothing_free(self):
        found = hosts(1)
        amount = conclusion.Capacity('VCPU', 2, *NUMBERS)
        kind = 'are full (VCPU)'
        refuse(found, '0', kind, 'VCPU', capacity=amount, free={'0': 0})
        text = tell(found)
        self.assertIn('  1  free VCPU on host0\n\n', text)
        self.assertNotIn('would fit', text)

    def test_all_constraints(self):
        text = write(document.build(cloud(), request()), all_=True)
        self.assertIn('host filter:\n  ComputeFilter ', text)
        self.assertIn(
            '\nGET /allocation_candidates\n  resources=MEMORY_MB:9999\n', text
        )

    @ddt.data((False, 1), (True, 4))
    @ddt.unpack
    def test_by_host(self, all_, listed):
        built = document.build(cloud(), request(), ['299'])
        made = report.make(built, all_, by_host=True)
        self.assertEqual(listed, len(made.rows))
        self.assertEqual(
            (
                'host299',
                'placement',
                'resources=MEMORY_MB:9999',
                'refused',
                'is too small (MEMORY_MB)',
            ),
            made.rows[all_],
        )
        self.assertIn(
            '\nhost299: 1 of 3 constraints refuses it; 1 did not check '
            'it\nVerdict  ',
            write(built, all_=all_, by_host=True),
        )

    def test_hosts_of_equal_verdicts_are_one(self):
        found = hosts(9)
        for number in '013458':
            refuse(found, number, 'are down' if number == '8' else 'are full')
        built = document.build(found, request(), list('0134578'))
        text = write(built, by_host=True)
        self.assertIn('\nhost[0-1,3-5] (5 hosts): 1 of 6 c', text)
        self.assertIn('\nhost7: passes 6 constraints', text)
        self.assertIn('\nhost8: 1 of 6 constraints', text)
        # Programs have a row for each.
        rows = report.make(built, by_host=True).rows
        self.assertEqual(6, len(rows))

    def test_hints(self):
        hints = {f'hint{n}': [str(n)] for n in range(4500)}
        text = tell(cloud(), hints={'group': ['y'], **hints})
        self.assertIn(
            '  hint hint4=4\n  and 4495 more hints (--all lists all)\n', text
        )
        self.assertNotIn('hint group', text)

    def test_a_server_group_by_its_name(self):
        """People read it; programs have its UUID."""
        uuid = 'af497212-8ba1-4069-a420-000000000001'
        for name in ('db', 'a\nb', ''):
            found = hosts(2)
            refusal = refusals.Refusal(
                'are full', 'anti-affinity', '', f'1 of group {uuid}'
            )
            found.add('host filter', 'F', refused={'0': refusal, '1': refusal})
            group = {'id': uuid, 'name': name, 'policy': 'anti-affinity'}
            built = document.build(found, request(server_group=group))
            shown = messages.clean(name) or uuid
            for by_host in (False, True):
                text = ' '.join(write(built, by_host=by_host).split())
                self.assertEqual(2, text.count(f'1 of group {shown}'), text)
                self.assertIn(f'(anti-affinity, {uuid})', text)
            *_, last = report.make(built).rows
            self.assertIn(uuid, str(last[-1].machine_readable()))
            self.assertIn(uuid, built['answer']['sentence'])

    def test_where_it_would_go(self):
        found = hosts(7)
        refuse(found, '6', 'are down')
        for n in range(6):
            found.prefer(str(n), float(9 - n))
        text = tell(found, instances=2)
        self.assertIn('To create 2 servers:\n', text)
        self.assertIn(
            '\n6 of 7 hosts can take it. The scheduler prefers host0, then '
            'host1, host2, host3,\n  host4.\n  1 is down\n',
            text,
        )
        self.assertNotIn('lift', text)

    @ddt.data(
        (
            {'a': (2, 1, 0), 'b': (0, 0.5, 1)},
            '. Without a it would be host2',
            ('1', 'a', '2'),
        ),
        # Each alone is enough for the first, or both together.
        (
            {'a': (2, 1, 0), 'b': (2, 1, 0)},
            '; no single weigher decides it',
            ('4', 'a', '2'),
        ),
        (
            {'a': (2, 0, 1), 'b': (2, 3, 0)},
            '. Without a it would be host1',
            ('3', 'b', '2'),
        ),
        (
            {'a': (2, 0, 0), 'b': (2, 3, 0), 'c': (0, 0, 3)},
            '. It would be, without a: host1, b: host2',
            ('1', 'a', '2'),
        ),
        ({'a': (1, 1, 1)}, '; 2 other hosts weigh as much', ''),
        ({'a': (1, 1, 0)}, '; 1 other host weighs as much', ('1', 'a', '1')),
    )
    @ddt.unpack
    def test_which_weigher_decides(self, weights, decided, last):
        found = hosts(3)
        refuse(found, '')
        for n in range(3):
            mine = {name: float(of[n]) for name, of in weights.items()}
            found.prefer(str(n), sum(mine.values())).weights = mine
        built = document.build(found, request())
        text = ' '.join(write(built, by_host=True).split())
        self.assertIn(f'then host1, host2{decided}. ', text)
        self.assertIn('passes 1 constraint; choice 1 of 3 host1: ', text)
        place = 'passes 1 constraint; choice 3 of 3'
        if not last:
            place += ', with the same weight as host0'
        else:
            behind, weigher, lost = last
            place += (
                f', {behind} behind host0; {weigher} costs it most ({lost})'
            )
        self.assertTrue(text.partition('request:')[2].endswith(place), text)

    def test_many_hosts_that_are_left(self):
        """One row says the same of hosts that lose by the same weigher."""
        found = hosts(13)
        refuse(found, ['12'])
        for n in (0, 1, 2, 4, 3, *range(5, 12)):
            mine = {'a': 8.0, 'b': 4.0}
            if n in (2, 3):
                mine['b'] -= n
            elif n > 3:
                mine['a'] -= n / 2
            found.prefer(str(n), sum(mine.values())).weights = mine
        text = ' '.join(
            write(document.build(found, request()), by_host=True).split()
        )
        for said in (
            'host0: passes 1 constraint; choice 1 of 12 host',
            'host1: passes 1 constraint; choice 2 of 12, with the same weight '
            'as host0 host',
            '; among choices 3 to 5 of 12, 2 to 3 behind host0; b costs them '
            'most (2 to 3) host',
            'host[4-11] (8 hosts): each passes 1 constraint; among choices '
            '4 to 12 of 12, 2 to 5.5 behind host0; a costs them most (2 to '
            '5.5)',
        ):
            self.assertIn(said, text)

    def test_many_hosts_of_one_weight(self):
        found = hosts(12)
        refuse(found, '')
        for n in range(12):
            found.prefer(str(n), 1.0).weights = {'a': 1.0}
        text = write(document.build(found, request()), by_host=True)
        self.assertIn(
            'host[1-11] (11 hosts): each passes 1 constraint; choices 2 to '
            '12 of 12, with the same weight as host0',
            ' '.join(text.split()),
        )

    def test_names_of_hosts_wrap(self):
        found = hosts(60)
        refuse(found, [str(n) for n in range(0, 60, 2)])
        text = write(document.build(found, request()), by_host=True)
        self.assertIn('\nhost[0, 2, 4, 6, 8, 10, ', text)
        for line in text.splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_nothing_refuses(self):
        found = hosts(1)
        refuse(found, '')
        found.prefer('0', 1.0)
        self.assertNotIn('Stage', tell(found))

    def test_the_end_of_a_request(self):
        found = hosts(1)
        found.stop('request filter', 'f', 'no way', 'aggregate gpu is of abc')
        text = tell(found)
        self.assertIn(
            'No host: f ends the request: no way. aggregate gpu is of abc.\n',
            text,
        )
        self.assertNotIn('lift', text)

    def test_what_was_not_judged(self):
        """Neither in the text, nor for programs, is there a number of it."""
        found = hosts(2)
        found.add('request filter', 'before', judged=())
        found.stop('request filter', 'f', 'no way')
        built = document.build(found, request())
        self.assertEqual(
            [(0, None, None, None), (0, None, None, 0)],
            [
                tuple(one[k] for k in ('judged', 'refused', 'alone', 'left'))
                for one in built['constraints']
            ],
        )
        self.assertEqual(
            [
                ('', 'all hosts', '', '', '', 2),
                ('request filter', 'before', '', '-', '-', '-'),
                ('request filter', 'f', 'ends the request', '-', '-', 0),
            ],
            [row[:-1] for row in report.make(built, True).rows],
        )
        self.assertEqual(2, len(report.make(built).rows))
        self.assertIn('request filter:\n  f       ', write(built))
        self.assertIn('  -      -     0  ░░', write(built))
        self.assertIn(
            'host[0-1] (2 hosts): 0 of 0 constraints refuse each; 2 did '
            'not check them',
            ' '.join(write(built, by_host=True).split()),
        )

    def test_a_filter_that_had_no_host_to_judge(self):
        found = hosts(1)
        refuse(found, '0')
        refuse(found, '', judged=())
        built = document.build(found, request())
        self.assertEqual(('-', '-', 0), report.make(built, True).rows[2][3:6])

    def test_many_reasons(self):
        found = hosts(12)
        for n in range(12):
            name = f'F{n:02}'
            refuse(found, [str(n)], f'are refused by {name}', name=name)
        text = tell(found)
        self.assertIn(
            '  1 is refused by F07\n  and 4 more reasons (--all', text
        )
        self.assertIn(
            '  1  make F04 accept host4\n  and 7 more causes (--all', text
        )

    def test_a_shortage(self):
        found = hosts(1)
        found.prefer('0', 1.0)
        found.shortage = 'Only 1 of 2 instances finds a host'
        text = tell(found)
        self.assertIn('No host for every instance: 1 of 1 host can', text)
        self.assertIn(' Only 1 of 2 instances finds\n  a host.\n', text)
        self.assertEqual(
            3, report.make(document.build(found, request())).status
        )

    @ddt.data(
        (1, (3, 2, 1), 'The scheduler prefers host0, then host1, host2'),
        (1, (3, 3, 1), 'The scheduler prefers host0, then host1, host2; 1 '),
        (
            2,
            (3, 3, 1),
            'nova picks at random one of 2 with the same weight: host0, hos',
        ),
        (
            2,
            (3, 2, 1),
            'nova picks at random one of the best 2 (host_subset_size): '
            'host0, host1.',
        ),
    )
    @ddt.unpack
    def test_from_which_hosts_one_is_drawn(self, drawn, weights, said):
        found = hosts(3)
        for number, weight in enumerate(weights):
            found.prefer(str(number), weight)
        found.drawn = drawn
        built = document.build(found, request())
        self.assertIn(said, built['answer']['sentence'])

    def test_what_nova_api_refuses(self):
        """It comes first; the hosts are those for when it does not."""
        found = hosts(2)
        refuse(found, '1')
        found.prefer('0', 1.0)
        found.refusal = 'nova-api refuses to migrate it: x. First, do y'
        text = tell(found)
        self.assertIn(
            'nova-api refuses to migrate it: x. First, do y. Then 1 of 2 '
            'hosts can take it.\n  The scheduler prefers host0.',
            text,
        )
        self.assertNotIn('No host', text)
        made = report.make(document.build(found, request()))
        self.assertEqual(3, made.status)
        schemas.validate(made.document(), 'schemas/explain.json')

    def test_names_of_users_are_quoted(self):
        found = matrix.Matrix({'1': 'a\nb'})
        found.prefer('1', 1.0)
        built = document.build(
            found, request(server=SERVER, server_name='x\ny')
        )
        text = write(built)
        self.assertIn("'x\\ny'", text)
        self.assertIn("'a\\nb'", text)
        self.assertNotIn('\n', built['answer']['sentence'])


@ddt.ddt
class CauseTestCase(testtools.TestCase):
    """What a refusal is told by where there is room for one word."""

    def test_a_host_that_one_constraint_refuses_for_two_causes(self):
        """It counts for the one of most hosts, in that policy's words."""
        reserved = refusals.Refusal(
            'are reserved', 'reservation', 'gpu', 'why'
        )
        both = refusals.Refusal('are isolated', 'isolation', more=(reserved,))
        found = hosts(3)
        found.add(
            'host filter',
            'F',
            refused={'0': both, '1': reserved, '2': reserved},
        )
        built = document.build(found, request())
        self.assertEqual(
            [('are reserved', 'reservation', 3)],
            [
                (one['reason'], one['cause'], one['hosts'])
                for one in built['answer']['reasons']
            ],
        )
        [constraint] = built['constraints']
        self.assertEqual(
            [('are reserved', 3), ('are isolated', 1)],
            [(one['reason'], one['hosts']) for one in constraint['reasons']],
        )
        self.assertEqual(
            'is isolated; is reserved (why)',
            built['hosts'][0]['verdicts'][0]['reason'],
        )


class DocumentTestCase(testtools.TestCase):
    def test_hosts_by_name(self):
        found = matrix.Matrix({'1': 'b', '2': 'a'})
        hosts = document.build(found, request())['hosts']
        self.assertEqual(['a', 'b'], [one['host'] for one in hosts])

    def test_names_of_a_reason(self):
        for number, expected in (
            (1, '9 are isolated (a0)'),
            (3, '9 are isolated (a0 3, a1 3, a2 3)'),
            (4, '9 are isolated (a0 3, a1 3, a2 3, a3 3)'),
            (5, '9 are isolated (a0 3, a1 3, a2 3 and 2 more)'),
        ):
            names = [{'name': f'a{n}', 'hosts': 3} for n in range(number)]
            found = document.count_reason(
                {'reason': 'are isolated', 'hosts': 9, 'names': names}
            )
            self.assertEqual(expected, found)

    def test_freed_only_where_no_host_is_left(self):
        found = cloud(6)
        found.remaining = {'1'}
        built = document.build(found, request())
        self.assertEqual([], built['answer']['freed'])
