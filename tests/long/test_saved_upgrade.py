# SPDX-License-Identifier: Apache-2.0

"""A file of nova 29 or 31 answers with each later nova as it did then.

``saved_under_31.json.gz`` is such a file, and ``saved_under_31.json`` what
commands answered there. With NOVA_EXT_SCHED_TEST_WRITE=1 that nova writes both
anew.
"""

import gzip
import json
import os
import pathlib
import shutil

import ddt
import fixtures

from tests import releases
from tests.functional import base
from tests.functional import explain
from tests.functional import saved

FOLDER = pathlib.Path(__file__).parent
# Before instances had compute_id; nova 31 has it.
OLDER = '1b91788ec3a6'


def summarize(document):
    """Return the numbers, hosts and causes of a document."""
    return [
        document['answer'].get('sentence'),
        [one['host'] for one in document.get('order', [])],
        [[one['server'], one.get('to')] for one in document.get('moves', [])],
        [[one['name'], one['servers']] for one in document.get('flavors', [])],
    ]


@ddt.ddt
class SavedUpgradeTestCase(base.CloudTestCase):
    weights = {'host1': 300, 'host2': 200, 'host3': 100}
    host_filters = ('IsolatedAggregatesFilter', 'AggregateInstanceTypeFilter')
    options = explain.OPTIONS

    def write(self, path):
        """Build a cloud, save it, and keep what its file answers."""
        self.isolate('windows', ['host1'], 'CUSTOM_WINDOWS')
        plain = self.boot()
        group = self.create_group()
        for _ in range(2):
            self.boot(hints={'group': group})
        self.boot(az='nova:host3', flavor=self.flavor(memory_mb=512))
        file = self.useFixture(saved.Saved())
        shutil.copy(file.path, path)
        commands = [
            ['drain', 'host2'],
            ['explain', '--server', plain['id'], '--operation', 'migrate'],
            ['explain', '--flavor', self.plain_flavor],
            ['audit'],
            ['capacity'],
        ]
        answers = self.ask(path, commands)
        path.with_suffix('').write_text(
            json.dumps({'commands': commands, 'answers': answers}, indent=1)
            + '\n'
        )

    def ask(self, path, commands):
        asked = [[*one, '-f', 'json', '--from', str(path)] for one in commands]
        answers = saved.ask(asked, {'host1': 300, 'host2': 200, 'host3': 100})
        return [
            [one.status, summarize(json.loads(one.out or one.err))]
            for one in answers
        ]

    def make_older(self, path):
        """Return a file as a nova with older tables would write it."""
        older = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'older')
        lines, place = [], None
        for line in map(json.loads, gzip.open(path)):
            if 'format' in line:
                line['versions']['nova'] = '27.0.0'
                for cell in line['cells']:
                    cell['schema'] = OLDER
            elif 'table' in line:
                columns = line['columns']
                place = None
                if line['table'] == 'instances':
                    place = columns.index('compute_id')
                    del columns[place]
            elif isinstance(line, list) and place is not None:
                del line[place]
            lines.append(json.dumps(line))
        older.write_bytes(gzip.compress('\n'.join(lines).encode() + b'\n'))
        return older

    @ddt.data(29, 31)
    def test_it_answers_the_same(self, nova):
        if releases.NOVA < nova:
            self.skipTest('no nova reads a file of a later one')
        path = FOLDER / f'saved_under_{nova}.json.gz'
        if releases.NOVA == nova and 'NOVA_EXT_SCHED_TEST_WRITE' in os.environ:
            self.write(path)
        known = json.loads(path.with_suffix('').read_text())
        for asked, number in ((path, 5), (self.make_older(path), 2)):
            self.assertEqual(
                known['answers'][:number],
                self.ask(asked, known['commands'][:number]),
                asked,
            )
