# SPDX-License-Identifier: Apache-2.0

"""Files of strangers: each ends with a clear error, and does nothing."""

import copy
import gzip
import json
import pathlib
import socket
import uuid

import fixtures
import testtools

from tests.functional import saved

CELL0, CELL1 = (str(uuid.UUID(int=number)) for number in (0, 1))
HOST, OTHER = (str(uuid.UUID(int=number)) for number in (10, 11))
SERVER = str(uuid.UUID(int=20))


def cell(id_, uuid, **more):
    name = f'cell{id_}'
    made = {'id': id_, 'uuid': uuid, 'name': name, 'disabled': False}
    return made | {'schema': ''} | more


HEADER = {
    'format': 1,
    'saved': '2026-01-02T03:04:05.000000',
    'versions': {'nova': '34.0.0'},
    'dialect': 'sqlite',
    'binary': [],
    'schema': '',
    'cells': [cell(1, CELL0), cell(2, CELL1)],
    'options': {},
    'placement': None,
}
SERVERS = {
    'table': 'instances',
    'cell': CELL1,
    'columns': ['id', 'uuid', 'project_id', 'deleted'],
}
PROVIDER = {
    'uuid': HOST,
    'name': 'host1',
    'generation': 1,
    'parent': None,
    'root': HOST,
    'inventories': {},
    'traits': [],
    'aggregates': [],
    'allocations': {},
}


def header(**more):
    return [HEADER | more]


def options(group, **values):
    return header(options={group: values})


def servers(*rows, **more):
    return [HEADER, SERVERS | more, *rows]


def provider(**more):
    return [HEADER, {'provider': PROVIDER | more}]


def deep(levels):
    value = {}
    for _ in range(levels):
        value = {'a': value}
    return value


class StrangersTestCase(testtools.TestCase):
    together = saved.TOGETHER

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(
            fixtures.EnvironmentVariable('TMPDIR', str(self.folder))
        )

    def write(self, name, records):
        path = self.folder / f'{name}.json.gz'
        records = [*copy.deepcopy(records), {}]
        records[-1] = {'end': {'lines': len(records) - 1, 'notes': []}}
        text = '\n'.join(map(json.dumps, records)) + '\n'
        path.write_bytes(gzip.compress(text.encode()))
        return path

    def ask(self, files):
        """Ask each file; return what each said."""
        paths = [self.write(name, one) for name, one in files.items()]
        answers = saved.ask([['audit', '--from', str(path)] for path in paths])
        # Nothing is left, wherever it is.
        self.assertEqual({*paths}, {*self.folder.iterdir()})
        return dict(zip(files, answers, strict=True))

    def test_a_cloud_of_nothing_is_one(self):
        """What the others are made of is no fault."""
        row = [1, SERVER, 'shop', 0]
        both = [*servers(row), {'provider': PROVIDER}]
        name = 'a\x1b[31m\nb'
        table = {
            'table': 'aggregates',
            'cell': '',
            'columns': ['id', 'uuid', 'name'],
        }
        answers = self.ask(
            {
                'nothing': [HEADER],
                'both': both,
                'control': [*both, table, [1, OTHER, name]],
            }
        )
        for file, answer in answers.items():
            self.assertIn(answer.status, (0, 1), (file, answer))
            self.assertIn('The cloud as saved in', answer.out)
            self.assertNotIn('\x1b', answer.out + answer.err)

    def test_what_is_refused(self):
        sentinel = self.folder.parent / f'{self.folder.name}.ran'
        run = f'touch {sentinel}'
        listening = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(listening.close)
        listening.settimeout(0)
        url = f'mysql+pymysql://127.0.0.1:{listening.getsockname()[1]}/nova'
        row = [1, SERVER, 'shop', 0]
        files = {
            # Classes.
            'filter': options(
                'filter_scheduler', available_filters=['subprocess.getoutput']
            ),
            'weigher': options('filter_scheduler', weight_classes=[run]),
            'plugin': options('nova_ext_sched', request_filters=['os']),
            # Connections.
            'url': header(cells=[cell(1, CELL0, database_connection=url)]),
            'url2': [
                HEADER,
                {
                    'table': 'cell_mappings',
                    'cell': '',
                    'columns': ['id', 'uuid', 'database_connection'],
                },
                [3, HOST, url],
            ],
            'option': options('api_database', connection=url),
            'transport': options('DEFAULT', transport_url=url),
            'placement': header(placement={'connection': url}),
            # Options of other forms.
            'form': options('filter_scheduler', enabled_filters=[['a']]),
            'long': options('pci', alias=['[' * 10**5]),
            'number': options('scheduler', max_attempts='many'),
            # Tables, columns and rows.
            'trigger': [
                HEADER,
                {
                    'table': 'sqlite_master',
                    'cell': CELL1,
                    'columns': ['type', 'name', 'sql'],
                },
                ['trigger', 'a', 'CREATE TRIGGER a'],
            ],
            'view': servers(row, table='instances AS SELECT'),
            'column': servers(row, columns=['id) VALUES (1); --', 'uuid']),
            'secret': servers([1, 'x'], columns=['id', 'user_data']),
            'path': servers(row, cell='../../etc'),
            'no table': [HEADER, row],
            'short': servers([1]),
            'type': servers([1, SERVER, {'a': 1}, 0]),
            'unknown': [HEADER, {'run': run}],
            'two': [HEADER, {'traits': [], 'classes': []}],
            # What cannot be.
            'cell twice': header(cells=[cell(1, CELL1), cell(2, CELL1)]),
            'cells': header(cells=[cell(n, CELL0) for n in range(2000)]),
            'server twice': servers(row, row),
            'two cells': [
                *servers(row),
                SERVERS | {'cell': CELL0},
                row,
            ],
            'parent': provider(parent=HOST),
            'orphan': provider(parent=OTHER),
            'trait': provider(traits=['not a trait']),
            'deep': [
                HEADER,
                {
                    'table': 'request_specs',
                    'cell': '',
                    'columns': ['id', 'instance_uuid', 'spec'],
                },
                [1, SERVER, deep(200)],
            ],
            # What is none.
            'empty': [],
            'list': [[1]],
            'later': header(format=2),
            'time': header(saved='9999-12-31T23:59:59'),
            'dialect': header(dialect='../x'),
        }
        for name, answer in self.ask(files).items():
            self.assertEqual((2, ''), (answer.status, answer.out), name)
            self.assertIn('audit: ', answer.err, name)
            self.assertNotIn('Traceback', answer.err, name)
            self.assertLess(len(answer.err), 1000, name)
        self.assertFalse(sentinel.exists())
        self.assertRaises(BlockingIOError, listening.accept)

    def test_no_file(self):
        missing = str(self.folder / 'missing')
        text = self.folder / 'text'
        text.write_text('SQLite format 3\0')
        answers = saved.ask(
            [
                ['audit', '--from', missing],
                ['audit', '--from', str(text)],
                ['audit', '--from', str(self.folder)],
                ['audit', '--from', str(text), '--config-file', 'nova.conf'],
                ['audit', '--without', 'SomeFilter'],
            ]
        )
        for answer in answers:
            self.assertEqual((2, ''), (answer.status, answer.out), answer)
