# SPDX-License-Identifier: Apache-2.0

import csv
import io
import json
import types

import ddt
import testtools
import yaml

from nova_ext_sched.cli import lister

ROWS = [
    ('b', lister.Several(['x, y', 'z'])),
    ('a', lister.Several([])),
]


class Command(lister.Lister):
    def take_action(self, parsed_args):
        return ('Name', 'Values'), iter(ROWS)

    def write_text(self, out, rows):
        for row in rows:
            values = row['Values'].human_readable()
            out.say(f'{row["Name"]}: {values} of the row of values')

    def sum_up(self):
        return 'Two rows.'


class Document(Command):
    def make_document(self, rows):
        values = [row['Values'].machine_readable() for row in rows]
        return {'format': 1, 'rows': values}


@ddt.ddt
class ListerTestCase(testtools.TestCase):
    def run_command(self, *argv, kind=Command):
        out = io.StringIO()
        command = kind(types.SimpleNamespace(stdout=out), None)
        command.run(command.get_parser('test').parse_args(argv))
        self.sentence = command.sentence
        return out.getvalue()

    def test_people_read_a_text(self):
        self.assertEqual(
            'b: x, y, z of the row of values\na:  of the row of values\n',
            self.run_command(),
        )
        self.assertEqual('', self.sentence)
        text = self.run_command('--max-width', '24')
        self.assertEqual(
            'b: x, y, z of the row of\n  values\na:  of the row of values\n',
            text,
        )

    @ddt.data(('json', json.loads), ('yaml', yaml.safe_load))
    @ddt.unpack
    def test_documents(self, formatter, load):
        rows = [
            {'Name': 'b', 'Values': ['x, y', 'z']},
            {'Name': 'a', 'Values': []},
        ]
        self.assertEqual(rows, load(self.run_command('-f', formatter)))
        self.assertEqual('Two rows.', self.sentence)
        self.assertEqual(
            {'format': 1, 'rows': [['x, y', 'z'], []]},
            load(self.run_command('-f', formatter, kind=Document)),
        )
        self.assertEqual('', self.sentence)
        # Whoever chooses columns wants those and nothing else.
        text = self.run_command('-f', formatter, '-c', 'Name', kind=Document)
        self.assertEqual([{'Name': 'b'}, {'Name': 'a'}], load(text))

    def test_json_on_one_line(self):
        text = self.run_command('-f', 'json', '--noindent', kind=Document)
        self.assertEqual(1, len(text.splitlines()))

    def test_several_values_of_a_row(self):
        found = [*csv.DictReader(io.StringIO(self.run_command('-f', 'csv')))]
        self.assertEqual(['b', 'a'], [row['Name'] for row in found])
        self.assertEqual(
            [['x, y', 'z'], []], [json.loads(row['Values']) for row in found]
        )
        self.assertEqual('Two rows.', self.sentence)
        self.assertEqual(
            'b ["x, y", "z"]\na []\n', self.run_command('-f', 'value')
        )

    @ddt.data(['-c', 'Name'], ['--sort-column', 'Name'])
    def test_a_table_of_columns(self, argv):
        self.assertIn('| b ', self.run_command(*argv))
        self.assertEqual('Two rows.', self.sentence)
