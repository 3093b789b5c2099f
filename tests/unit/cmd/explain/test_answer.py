# SPDX-License-Identifier: Apache-2.0

"""From the matrix to the document, and from the document to what is read."""

import io
import json
import pathlib

import ddt
import jsonschema
from nova import objects
import testtools

from nova_ext_sched.cmd.explain import answer
from nova_ext_sched.cmd.explain import document
from nova_ext_sched.cmd.explain import funnel
from tests.unit.request_filters import base

SCHEMA = json.loads(
    pathlib.Path(document.__file__).with_name('schema.json').read_text()
)
SERVER = '8d1f52c6-6b3a-4d0c-9c39-0f4c1c9a7e55'


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
    return {**document.describe_request(spec), **changed}


def cloud(number=300):
    hosts = {str(n): f'host{n:03}' for n in range(number)}
    found = funnel.Funnel(hosts)
    isolated = {
        uuid: funnel.Refusal(
            'are isolated',
            'isolation',
            f'windows{int(uuid) % 7}',
            'the request does not require CUSTOM_LICENSED_WINDOWS',
        )
        for uuid in sorted(hosts)[: number // 3]
    }
    amount = funnel.Capacity(
        resource='MEMORY_MB',
        requested=9999,
        large_enough=0,
        full=0,
        too_small=number,
        without=0,
        unknown=0,
        most_free=8192,
        most_free_host='host012',
    )
    found.query = ['resources=MEMORY_MB%3A9999&member_of=' + 'x' * 300]
    found.add('request filter', 'isolate_aggregates', 'a', isolated)
    found.add(
        'placement',
        'resources=MEMORY_MB:9999',
        refused=dict.fromkeys(
            hosts, funnel.Refusal('are too small (MEMORY_MB)', 'MEMORY_MB')
        ),
        capacity=amount,
    )
    found.add('host filter', 'ComputeFilter', judged=set(sorted(hosts)[:3]))
    found.add('host filter', 'IsolatedAggregatesFilter', '', isolated)
    return found


def write(built, width=80, **kwargs):
    jsonschema.validate(built, SCHEMA)
    stream = io.StringIO()
    answer.write(built, stream, width, **kwargs)
    return stream.getvalue()


@ddt.ddt
class AnswerTestCase(testtools.TestCase):
    def test_no_host(self):
        text = write(
            document.build(cloud(), request(server=SERVER, server_name='db-1'))
        )
        self.assertEqual(
            f"""\
To create server db-1 ({SERVER})
  flavor large: 4 VCPU, 9999 MB, 12 GB of disk
    trait:X=required
  project project

No host: 0 of 300 hosts can take it.
  300 are too small (MEMORY_MB)

Hosts that lifting one constraint alone would free:
  200  MEMORY_MB (asked 9999; most free 8192, on host012; 0 hosts are large
    enough)

Stage           Constraint                                  Refuses  Alone  Left
                all hosts                                                    300
request filter  isolate_aggregates                              100      0   200
                  100 are isolated (windows3 15, windows4
                  15, windows0 14, and 4 more)
placement       resources=MEMORY_MB:9999                        300    200     0
                  300 are too small (MEMORY_MB)
host filter     IsolatedAggregatesFilter                        100      0     0
                  100 are isolated (windows3 15, windows4
                  15, windows0 14, and 4 more)
""",  # noqa: E501
            text,
        )

    @ddt.data(
        *(
            (width, all_, by_host)
            for width in (80, 160)
            for all_ in (False, True)
            for by_host in (False, True)
        )
    )
    @ddt.unpack
    def test_width(self, width, all_, by_host):
        hints = {'query': ['x' * 200], 'group': ['y']}
        built = document.build(
            cloud(),
            request(hints=hints, availability_zone='z' * 200),
            ['1', '299'] if by_host else None,
        )
        built['remarks'] = ['word ' * 60]
        text = write(built, width, all_=all_, by_host=by_host)
        self.assertLessEqual(max(map(len, text.splitlines())), width)
        for line in text.splitlines():
            self.assertEqual(line.rstrip(), line)
        self.assertEqual(all_, 'ComputeFilter' in text)
        self.assertEqual(all_, 'GET /allocation_candidates\n' in text)
        self.assertEqual(by_host and all_, 'not judged' in text, text)
        self.assertIn('  hint query=', text)
        self.assertNotIn('hint group', text)

    def test_where_it_would_go(self):
        found = funnel.Funnel({str(n): f'host{n}' for n in range(7)})
        found.add(
            'host filter', 'F', refused={'6': funnel.Refusal('are down')}
        )
        found.order = [(str(n), float(9 - n)) for n in range(6)]
        text = write(document.build(found, request(instances=2)))
        self.assertIn('To create 2 servers\n', text)
        self.assertIn(
            '\n6 of 7 hosts can take it. The scheduler prefers host0, then '
            'host1, host2, host3,\n  host4.\n  1 is down\n',
            text,
        )
        self.assertNotIn('lift', text)

    def test_nothing_refuses(self):
        found = funnel.Funnel({'1': 'host1'})
        found.add('host filter', 'F')
        found.order = [('1', 1.0)]
        self.assertNotIn('Stage', write(document.build(found, request())))

    def test_pairs_and_none(self):
        found = funnel.Funnel({'1': 'host1'})
        for name in 'abc':
            found.add(
                'host filter', name, refused={'1': funnel.Refusal('are out')}
            )
        self.assertIn(
            'No two constraints lifted together would free a host.',
            write(document.build(found, request())),
        )
        found = funnel.Funnel({'1': 'host1'})
        for name in 'ab':
            found.add(
                'host filter', name, refused={'1': funnel.Refusal('are out')}
            )
        text = write(document.build(found, request()))
        self.assertIn('two lifted together\n  would free:\n  1  a and b', text)

    def test_the_end_of_a_request(self):
        found = funnel.Funnel({'1': 'host1'})
        found.stop('request filter', 'f', 'no way', 'aggregate gpu is of abc')
        text = write(document.build(found, request()))
        self.assertIn(
            'No host: f ends the request.\n  no way.\n  aggregate gpu is of '
            'abc.\n',
            text,
        )
        self.assertNotIn('lift', text)

    def test_a_shortage(self):
        found = funnel.Funnel({'1': 'host1'})
        found.order = [('1', 1.0)]
        found.shortage = 'Only 1 of 2 instances finds a host'
        text = write(document.build(found, request()))
        self.assertIn('No host for every instance: 1 of 1 host can', text)
        self.assertIn('  Only 1 of 2 instances finds a host.\n', text)

    def test_names_of_users_are_quoted(self):
        found = funnel.Funnel({'1': 'a\nb'})
        found.order = [('1', 1.0)]
        built = document.build(
            found, request(server=SERVER, server_name='x\ny')
        )
        text = write(built)
        self.assertIn("'x\\ny'", text)
        self.assertIn("'a\\nb'", text)
        self.assertNotIn('\n', built['answer']['sentence'])


class DocumentTestCase(testtools.TestCase):
    def test_hosts_by_name(self):
        found = funnel.Funnel({'1': 'b', '2': 'a'})
        hosts = document.build(found, request())['hosts']
        self.assertEqual(['a', 'b'], [one['host'] for one in hosts])

    def test_names_of_a_reason(self):
        for number, expected in (
            (1, '9 are isolated (a0)'),
            (3, '9 are isolated (a0 3, a1 3, a2 3)'),
            (4, '9 are isolated (a0 3, a1 3, a2 3, and 1 more)'),
        ):
            names = [{'name': f'a{n}', 'hosts': 3} for n in range(number)]
            found = document.count_reason(
                {'reason': 'are isolated', 'hosts': 9, 'names': names}
            )
            self.assertEqual(expected, found)

    def test_hosts(self):
        built = document.build(cloud(6), request(), ['0', '5'])
        self.assertEqual(
            [
                {
                    'host': 'host000',
                    'uuid': '0',
                    'left': False,
                    'verdicts': [
                        {
                            'constraint': 0,
                            'verdict': 'refused',
                            'reason': 'is isolated (the request does not '
                            'require CUSTOM_LICENSED_WINDOWS)',
                        },
                        {
                            'constraint': 1,
                            'verdict': 'refused',
                            'reason': 'is too small (MEMORY_MB)',
                        },
                        {
                            'constraint': 3,
                            'verdict': 'refused',
                            'reason': 'is isolated (the request does not '
                            'require CUSTOM_LICENSED_WINDOWS)',
                        },
                    ],
                },
                {
                    'host': 'host005',
                    'uuid': '5',
                    'left': False,
                    'verdicts': [
                        {
                            'constraint': 1,
                            'verdict': 'refused',
                            'reason': 'is too small (MEMORY_MB)',
                        },
                        {
                            'constraint': 2,
                            'verdict': 'not judged',
                            'reason': '',
                        },
                    ],
                },
            ],
            built['hosts'],
        )
        self.assertEqual(6, len(document.build(cloud(6), request())['hosts']))

    def test_a_constraint(self):
        found = document.build(cloud(6), request())['constraints']
        self.assertEqual(
            [(6, 2, 0, 4), (6, 6, 4, 0), (3, 0, 0, 0), (6, 2, 0, 0)],
            [
                tuple(one[k] for k in ('judged', 'refused', 'alone', 'left'))
                for one in found
            ],
        )
        self.assertEqual(['isolation'], found[0]['causes'])

    def test_freed_only_where_no_host_is_left(self):
        found = cloud(6)
        found.left = {'1'}
        built = document.build(found, request())
        self.assertEqual([], built['answer']['freed'])
