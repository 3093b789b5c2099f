# SPDX-License-Identifier: Apache-2.0

"""A cloud whose databases are MariaDB's, in a file: all answer the same.

The tests of :mod:`tests.long.test_saved` and what MariaDB calls equal.
"""

import gzip
import json

from tests.functional import base
from tests.functional import explain
from tests.functional import saved
from tests.functional import test_saved
from tests.long import mariadb
from tests.long import test_saved as on_sqlite


class MariadbMixin:
    def setUp(self):
        self.useFixture(mariadb.Mariadb())
        super().setUp()


class NamesTestCase(MariadbMixin, test_saved.EqualMixin, base.CloudTestCase):
    """What the database calls equal, and Python does not."""

    weights = {'host1': 300, 'host2': 200, 'host3': 100}
    host_filters = ('IsolatedAggregatesFilter', 'AggregateInstanceTypeFilter')
    options = explain.OPTIONS

    def test_case_and_accents(self):
        self.isolate('windows', ['host1'], 'CUSTOM_WINDOWS')
        self.set_metadata(
            'windows',
            {'trait:CUSTOM_WINDOWS': None, 'Trait:CUSTOM_WINDOWS': 'Required'},
        )
        self.aggregate('Zürich', ['host2'], disk='SSD', zone='zürich')
        wanted = self.flavor(**{'aggregate_instance_extra_specs:DISK': 'ssd'})
        for _ in range(2):
            self.boot(hints={'group': self.create_group()})
        commands = [
            ['explain', '--flavor', wanted],
            ['explain', '--flavor', wanted, '--availability-zone', 'ZURICH'],
            ['explain', '--flavor', self.plain_flavor],
            ['audit'],
            ['drain', 'host1'],
            ['capacity'],
        ]
        file = self.assertSame(*commands)
        asked = [[*one, '-f', 'json'] for one in commands]
        answers = [one.out for one in file.ask(*asked)]
        # As if it were SQLite's: the same rows are other ones there.
        lines = gzip.decompress(file.path.read_bytes()).split(b'\n')
        header = json.loads(lines[0])
        self.assertEqual('mysql', header['dialect'])
        lines[0] = json.dumps({**header, 'dialect': 'sqlite'}).encode()
        file.path.write_bytes(gzip.compress(b'\n'.join(lines)))
        others = [one.out for one in file.ask(*asked)]
        self.assertNotEqual(
            *(
                [saved.strip(json.loads(one or '{}')) for one in found]
                for found in (answers, others)
            )
        )


def _make(row):
    class MariadbRow(MariadbMixin, row):
        __doc__ = row.__doc__

    name = row.__name__.replace('Saved', 'Mariadb', 1)
    MariadbRow.__name__ = MariadbRow.__qualname__ = name
    MariadbRow.__module__ = __name__
    globals()[name] = MariadbRow


for _row in [*vars(on_sqlite).values()]:
    if (
        isinstance(_row, type)
        and _row.__module__ == on_sqlite.__name__
        and _row.__name__.startswith('Saved')
    ):
        _make(_row)
