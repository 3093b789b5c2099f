# SPDX-License-Identifier: Apache-2.0

"""The first line of a file of somebody else, and what is said of it."""

import datetime
import pathlib
import uuid

import ddt
import testtools

from nova_ext_sched.saved import container
from nova_ext_sched.saved import headers

PATH = pathlib.Path('cloud.json.gz')
CELL = {
    'id': 1,
    'uuid': str(uuid.UUID(int=1)),
    'name': None,
    'disabled': False,
    'schema': '',
}
HEADER = {
    'format': 1,
    'saved': '2026-01-02T03:04:05.000000',
    'versions': {'nova': '34.0.0'},
    'dialect': 'mysql',
    'binary': ['instances.uuid'],
    'schema': '',
    'cells': [CELL],
    'options': {'pci': {'alias': ['{}']}, 'scheduler': {'max_attempts': 3}},
    'placement': None,
}


@ddt.ddt
class HeaderTestCase(testtools.TestCase):
    def test_read(self):
        header = headers.Header.read(PATH, HEADER)
        self.assertEqual(datetime.datetime(2026, 1, 2, 3, 4, 5), header.saved)
        self.assertEqual(
            ({}, HEADER['options']), (header.placement, header.options)
        )

    @ddt.data(
        ({'format': 2}, 'of format 1'),
        ({'dialect': 'oracle'}, 'dialect: expected sqlite, mysql or'),
        ({'saved': '9999-12-31T00:00:00'}, 'saved: expected a time in UTC'),
        ({'saved': '2026-13-01T00:00:00'}, 'month'),
        ({'saved': '2026-01-01T00:00:00+01:00'}, 'saved: expected a time'),
        ({'cells': [CELL, CELL]}, 'two cells with one id'),
        ({'cells': [CELL | {'id': 'x'}]}, 'cells[0].id: expected a number'),
        ({'cells': [CELL | {'url': 'x'}]}, 'cells[0].url: expected one of'),
        ({'options': {'database': {}}}, 'options: expected a name that save'),
        (
            {'options': {'pci': {'other': 1}}},
            "options.pci: expected a name that save writes, got 'other'",
        ),
        (
            {'options': {'pci': {'alias': [['a']]}}},
            'options.pci.alias: expected a value that an option can have',
        ),
        ({'placement': {'connection': 'x'}}, "got 'connection'"),
        ({'more': 1}, 'more: expected one of the keys'),
    )
    @ddt.unpack
    def test_refused(self, changed, said):
        exc = self.assertRaises(
            container.SavedInvalid, headers.Header.read, PATH, HEADER | changed
        )
        self.assertIn('--from cloud.json.gz: ', str(exc))
        self.assertIn(said, str(exc))

    @ddt.data([], {}, 'text', None, {'format': 1})
    def test_what_is_none(self, record):
        self.assertRaises(
            container.SavedInvalid, headers.Header.read, PATH, record
        )
