# SPDX-License-Identifier: Apache-2.0

"""From the matrix to the document, and from the document to what is read."""

import ddt
from nova import objects
import testtools

from nova_ext_sched import messages
from nova_ext_sched.cmd import explain_report as report
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import document
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import refusals
from tests import schemas
from tests.unit.cmd import reading
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


def make(number=1, refused='', kind='are out', order=(), **fields):
    """Return a matrix with a host filter F.

    :param refused: the numbers of the hosts that it refuses, a digit each
    :param order: the weights of the hosts that are left, from host0 on; of
        several weighers, each host's by name
    :param fields: of the matrix
    """
    found = hosts(number)
    refuse(found, refused, kind)
    for n, weights in enumerate(order):
        if isinstance(weights, dict):
            found.prefer(str(n), sum(weights.values())).weights = weights
        else:
            found.prefer(str(n), weights)
    for name, value in fields.items():
        setattr(found, name, value)
    return found


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


def build(found, *detailed, **changed):
    """Return the document of a matrix.

    :param changed: of the request
    """
    built = document.build(found, request(**changed), detailed or None)
    schemas.validate(built, 'schemas/explain.json')
    return built


def write(found, all_=False, by_host=False, **changed):
    """Return what people read of a matrix."""
    made = report.make(build(found, **changed), all_, by_host)
    return reading.read(made)


def write_flat(*args, **kwargs):
    return ' '.join(write(*args, **kwargs).split())


@ddt.ddt
class AnswerTestCase(testtools.TestCase):
    def test_no_host(self):
        text = write_flat(cloud(), server=SERVER, server_name='db-1')
        for said in (
            f'To create server db-1 ({SERVER}): No host: 0 of 300 hosts ',
            'No change that was tried frees a host; a smaller flavor would '
            'fit. A flavor of at most 8192 MB would fit 1 host, host212; '
            '9999 MB requested. ',
            'flavor large: 4 VCPU, 9999 MB, 12 GB of disk extra specs '
            'trait:X=required project project ',
            ' 100 are isolated (windows3 15, windows4 15, windows0 14 and 4 '
            'more) placement: resources=MEMORY_MB:9999 300 0 0 ░',
        ):
            self.assertIn(said, text)

    def test_a_server_that_is_on_a_host(self):
        stands = 'is on host1 (error). At noon nova recorded x'
        text = write_flat(
            cloud(), server=SERVER, server_name='db-1', stands=stands
        )
        self.assertIn(
            f'Server db-1 ({SERVER}) {stands}. To see where it can go, add '
            '--operation migrate (or live-migrate, evacuate, resize). To '
            'create it again: No host: 0 of 300',
            text,
        )

    @ddt.data(
        # Nobody knows whether a host of a silent cell has room.
        (dict(number=2, faults=['Cell b is silent']),
         *(1, 'Cell b is silent. To create 1 server: No', 'prefers')),
        (dict(number=2, faults=['Cell b is silent'], order=[1.0]),
         *(1, '1 server: 2 of 2 hosts can take it.', 'No host')),
        (dict(number=7, refused='6', order=[9.0, 8.0, 7.0, 6.0, 5.0, 4.0]), 0,
         '1 server: 6 of 7 hosts can take it. The scheduler prefers host0, '
         'then host1, host2, host3, host4. 1 is out', 'lift'),
        (dict(order=[1.0], shortage='Only 1 of 2 finds a host'), 3,
         'Not every instance can be placed: 1 of 1 host can take it. Only 1 '
         'of 2 finds a host. ', 'prefers'),
        # It comes first; the hosts are those for when nova-api does not.
        (dict(number=2, refused='1', order=[1.0], refusal='No: x. Do y'), 3,
         'No: x. Do y. Then 1 of 2 hosts can take it. The scheduler '
         'prefers host0.', 'No host'),
        (dict(order=[1.0]), 0, '1 of 1 host can take it', 'Constraint'),
    )  # fmt: skip
    @ddt.unpack
    def test_what_is_said_first(self, made, status, said, unsaid):
        built = build(made := make(**made))
        self.assertEqual(status, report.make(built).status)
        text = reading.read_flat(report.make(built))
        self.assertIn(said, text)
        self.assertNotIn(unsaid, text)
        self.assertTrue(
            built['answer']['sentence'].startswith(tuple(made.faults) or '')
        )
        self.assertIn(
            'To create 2 servers:', write(made, instances=2).splitlines()
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
        built = build(found)
        self.assertIn(
            'No change that was tried frees a host; a smaller flavor would '
            'fit.\n'
            'A flavor of at most 39 GB of disk would fit 1 host, host1; 50 '
            'GB of disk\n  requested.\n',
            reading.read(report.make(built)),
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
        text = write(found)
        self.assertNotIn('would fit', text)

    @ddt.data((False, 1), (True, 4))
    @ddt.unpack
    def test_by_host(self, all_, listed):
        made = report.make(build(cloud(), '299'), all_, by_host=True)
        self.assertEqual(listed, len(made.rows))
        self.assertEqual(
            (
                *('host299', 'placement', 'resources=MEMORY_MB:9999'),
                *('refused', 'is too small (MEMORY_MB)'),
            ),
            made.rows[all_],
        )
        self.assertIn(
            '\nhost299: 1 of 3 constraints refuses it; 1 did not check '
            'it\nVerdict  ',
            reading.read(made),
        )

    def test_hosts_of_equal_verdicts_are_one(self):
        """Those that are refused first; programs have a row for each."""
        found = make(9, '01345', 'are full')
        refuse(found, '8', 'are down')
        found.prefer('7', 1.0)
        made = report.make(build(found, *'0134578'), by_host=True)
        heads = [
            line.partition(' constraint')[0]
            for line in reading.read_lines(made)
            if line.startswith('host')
        ]
        self.assertEqual(
            ['host[0-1,3-5] (5 hosts): 1 of 2', 'host8: 1 of 2'], heads[-3:-1]
        )
        self.assertEqual('host7 passes all filters. It is', heads[-1][:31])
        self.assertEqual(6, len(made.rows))

    def test_hints(self):
        hints = {f'hint{n}': [str(n)] for n in range(4500)}
        text = write(cloud(), hints={'group': ['y'], **hints})
        self.assertIn(
            '  hint hint4=4\n  and 4495 more hints (--all lists all)\n', text
        )
        self.assertNotIn('hint group', text)

    @ddt.data('db', 'a\nb', '')
    def test_a_server_group_by_its_name(self, name):
        """People read it; programs have its UUID."""
        uuid = 'af497212-8ba1-4069-a420-000000000001'
        found = hosts(2)
        refusal = refusals.Refusal(
            'are full', 'anti-affinity', '', f'1 of group {uuid}'
        )
        found.add('host filter', 'F', refused={'0': refusal, '1': refusal})
        group = {'id': uuid, 'name': name, 'policy': 'anti-affinity'}
        shown = messages.clean(name) or uuid
        for by_host in (False, True):
            text = write_flat(found, by_host=by_host, server_group=group)
            self.assertEqual(2, text.count(f'1 of group {shown}'), text)
            self.assertIn(f'(anti-affinity, {uuid})', text)
        built = build(found, server_group=group)
        *_, last = report.make(built).rows
        self.assertIn(uuid, str(last[-1].machine_readable()))
        self.assertIn(uuid, built['answer']['sentence'])

    def test_what_the_weigher_that_decides_prefers(self):
        found = make(2, order=[{'a': 2}, {'a': 1}])
        found.preferences['a'] = 'hosts with room'
        self.assertIn(
            'The scheduler prefers host0, then host1. Without a (prefers '
            'hosts with room) it would be host1.',
            write_flat(found),
        )

    @ddt.data(
        ({'a': (2, 1, 0), 'b': (0, 0.5, 1)}, '. Without a it would be host2',
         'a'),
        # Each alone is enough for the first, or both together.
        ({'a': (2, 1, 0), 'b': (2, 1, 0)}, '; no single weigher decides it',
         'a'),
        ({'a': (2, 0, 1), 'b': (2, 3, 0)}, '. Without a it would be host1',
         'b'),
        ({'a': (2, 0, 0), 'b': (2, 3, 0), 'c': (0, 0, 3)},
         '. It would be, without a: host1, b: host2', 'a'),
        ({'a': (1, 1, 1)}, '; 2 other hosts weigh as much', ''),
        ({'a': (1, 1, 0)}, '; 1 other host weighs as much', 'a'),
    )  # fmt: skip
    @ddt.unpack
    def test_which_weigher_decides(self, weights, decided, last):
        order = [
            {name: of[n] for name, of in weights.items()} for n in range(3)
        ]
        text = write_flat(make(3, order=order), by_host=True)
        self.assertIn(f'then host1, host2{decided}. ', text)
        self.assertIn(' passes all filters. It is choice 1 of 3. host1 ', text)
        place = 'passes all filters. It is choice 3 of 3'
        if last:
            place += f'; {last} puts it behind host0.'
        else:
            place += ', with the same weight as host0.'
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
        text = write_flat(found, by_host=True)
        for said in (
            'host0 passes all filters. It is choice 1 of 12. host',
            'host1 passes all filters. It is choice 2 of 12, with the same '
            'weight as host0. host',
            '. They are among choices 3 to 5 of 12; b puts them behind host0. '
            'host',
            'host[4-11] (8 hosts) pass all filters. They are among choices 4 '
            'to 12 of 12; a puts them behind host0.',
        ):
            self.assertIn(said, text)
        self.assertIn(
            'host[1-11] (11 hosts) pass all filters. They are choices 2 to 12 '
            'of 12, with the same weight as host0.',
            write_flat(make(12, order=[1.0] * 12), by_host=True),
        )

    def test_names_of_hosts_wrap(self):
        found = hosts(60)
        refuse(found, [str(n) for n in range(0, 60, 2)])
        text = write(found, by_host=True)
        self.assertIn('\nhost[0, 2, 4, 6, 8, 10, ', text)
        for line in text.splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_the_end_of_a_request(self):
        found = hosts(1)
        found.stop('request filter', 'f', 'no way', 'aggregate gpu is of abc')
        text = write(found)
        self.assertIn(
            'No host: f ends the request: no way. aggregate gpu is of abc.\n',
            text,
        )
        self.assertNotIn('lift', text)
        self.assertNotIn('frees a host', text)

    def test_what_was_not_judged(self):
        """Neither in the text, nor for programs, is there a number of it."""
        found = hosts(2)
        found.add('request filter', 'before', judged=())
        found.stop('request filter', 'f', 'no way')
        built = build(found)
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
        self.assertIn('request filter:\n  f       ', write(found))
        self.assertIn('  -      -     0  ░░', write(found))
        self.assertIn(
            'host[0-1] (2 hosts): 0 of 0 constraints refuse each; 2 did '
            'not check them',
            write_flat(found, by_host=True),
        )

    def test_a_filter_that_had_no_host_to_judge(self):
        found = make(1, '0')
        refuse(found, '', judged=())
        rows = report.make(build(found), True).rows
        self.assertEqual(('-', '-', 0), rows[2][3:6])

    def test_many_reasons(self):
        found = hosts(12)
        for n in range(12):
            name = f'F{n:02}'
            refuse(found, [str(n)], f'are refused by {name}', name=name)
        text = write(found)
        self.assertIn(
            '  1 is refused by F07\n  and 4 more reasons (--all', text
        )

    @ddt.data(
        (1, (3, 2, 1), 'The scheduler prefers host0, then host1, host2'),
        (1, (3, 3, 1), 'The scheduler prefers host0, then host1, host2; 1 '),
        (2, (3, 3, 1),
         'nova picks at random one of 2 with the same weight: host0, hos'),
        (2, (3, 2, 1),
         'nova picks at random one of the best 2 (host_subset_size): '
         'host0, host1.'),
    )  # fmt: skip
    @ddt.unpack
    def test_from_which_hosts_one_is_drawn(self, drawn, weights, said):
        built = build(make(3, order=weights, drawn=drawn))
        self.assertIn(said, built['answer']['sentence'])

    def test_names_of_users_are_quoted(self):
        found = matrix.Matrix({'1': 'a\nb'})
        found.prefer('1', 1.0)
        built = build(found, server=SERVER, server_name='x\ny')
        text = reading.read(report.make(built))
        self.assertIn("'x\\ny'", text)
        self.assertIn("'a\\nb'", text)
        self.assertNotIn('\n', built['answer']['sentence'])


class DocumentTestCase(testtools.TestCase):
    def test_a_constraint_of_two_causes(self):
        """The policies' own words; test_matrix says for which it counts."""
        reserved = refusals.Refusal(
            'are reserved', 'reservation', 'gpu', 'why'
        )
        both = refusals.Refusal('are isolated', 'isolation', more=(reserved,))
        found = hosts(1)
        found.add('host filter', 'F', refused={'0': both})
        [[verdict]] = [one['verdicts'] for one in build(found)['hosts']]
        self.assertEqual('is isolated; is reserved (why)', verdict['reason'])

    def test_hosts_by_name(self):
        found = matrix.Matrix({'1': 'b', '2': 'a'})
        hosts = build(found)['hosts']
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

    def test_hosts_that_are_closed(self):
        closed = refusals.Refusal(
            'are reserved', 'reservation', 'gpu', rank=refusals.CLOSED
        )
        found = hosts(1)
        found.add('host filter', 'F', refused={'0': closed})
        self.assertIn(
            'This request does not ask for gpu: hosts for that are closed to '
            'it, as configured.',
            write_flat(found),
        )

    def test_freed_only_where_no_host_is_left(self):
        found = cloud(6)
        found.remaining = {'1'}
        built = build(found)
        self.assertEqual([], built['answer']['freed'])
