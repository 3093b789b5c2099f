# SPDX-License-Identifier: Apache-2.0

import types
from unittest import mock

import ddt
from nova import context as nova_context
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models
import sqlalchemy as sa
import testtools

from nova_ext_sched.cmd.export import requests
from nova_ext_sched.cmd.export import unsaid
from tests import databases

objects.register_all()


@ddt.ddt
class ReadTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        engine = self.useFixture(databases.Database('sqlite')).replace(
            api_db.context_manager
        )
        models.BASE.metadata.create_all(engine)
        with engine.begin() as connection:
            connection.execute(
                sa.insert(models.RequestSpec),
                [
                    {'instance_uuid': f's{number}', 'spec': f'of {number}'}
                    for number in range(1, 8)
                ],
            )
        self.unsaid = unsaid.Unsaid()

    def read(self, most, gone=(), unreadable=(), page=2):
        """Return the servers and specs that are read."""

        def load(_, uuid, text):
            if uuid in unreadable:
                raise ValueError
            return text

        with (
            mock.patch.object(requests, '_PAGE', page),
            mock.patch.object(
                requests.servers,
                'read',
                lambda _, uuids: {
                    uuid: types.SimpleNamespace(uuid=uuid)
                    for uuid in uuids
                    if uuid not in gone
                },
            ),
            mock.patch.object(requests.request_specs.Loader, 'load', load),
        ):
            found = requests.read(
                nova_context.get_admin_context(), None, most, self.unsaid
            )
        for server, spec in found:
            self.assertEqual(f'of {server.uuid[1:]}', spec)
        return ' '.join(server.uuid for server, _ in found)

    @ddt.data(
        # What is left when servers are gone or cannot be read, over pages.
        (1, {}, 's7'),
        (2, {}, 's6 s7'),
        (3, {}, 's5 s6 s7'),
        (7, {}, 's1 s2 s3 s4 s5 s6 s7'),
        (100, {}, 's1 s2 s3 s4 s5 s6 s7'),
        (2, {'gone': ('s7', 's6', 's5')}, 's3 s4'),
        (3, {'gone': ('s2', 's4', 's6')}, 's3 s5 s7'),
        (9, {'gone': ('s1', 's2', 's3', 's4', 's5', 's6', 's7')}, ''),
        (2, {'unreadable': ('s7', 's5')}, 's4 s6'),
    )
    @ddt.unpack
    def test_last(self, most, faults, found):
        self.assertEqual(found, self.read(most, **faults))
        number = len(faults.get('unreadable', ()))
        self.assertEqual(
            [f'{number} requests that cannot be read'] * bool(number),
            [*self.unsaid],
        )


@ddt.ddt
class HintsTest(testtools.TestCase):
    @ddt.data(
        (None, {}, []),
        ({}, {}, []),
        ({'same_host': ['a']}, {'same_host': 'a'}, []),
        ({'same_host': ['a', 'b']}, {'same_host': ['a', 'b']}, []),
        ({'group': ['g'], '_nova_check_type': ['rebuild']}, {}, []),
        ({'x' * 255: ['y' * 255]}, {'x' * 255: 'y' * 255}, []),
        (
            {'x' * 256: ['y'], 'x': ['y', 'y' * 256], 'z': ['1']},
            {'z': '1'},
            ['2 scheduler hints of more than 255 characters'],
        ),
    )
    @ddt.unpack
    def test_hints(self, given, found, left_out):
        missing = unsaid.Unsaid()
        spec = objects.RequestSpec(scheduler_hints=given)
        self.assertEqual(found, requests.hints(spec, missing))
        self.assertEqual(left_out, [*missing])

    def test_none_stored(self):
        missing = unsaid.Unsaid()
        self.assertEqual({}, requests.hints(objects.RequestSpec(), missing))


@ddt.ddt
class ZoneTest(testtools.TestCase):
    @ddt.data(
        ({}, None),
        ({'availability_zone': None}, None),
        ({'availability_zone': 'z'}, 'z'),
        ({'availability_zone': 'z', 'force_hosts': []}, 'z'),
        ({'availability_zone': 'z', 'force_hosts': ['h']}, 'z:h'),
        (
            {
                'availability_zone': 'z',
                'force_hosts': ['h'],
                'force_nodes': ['n'],
            },
            'z:h:n',
        ),
        ({'availability_zone': 'z', 'force_nodes': ['n']}, 'z::n'),
        ({'force_hosts': ['h']}, ':h'),
        ({'availability_zone': None, 'force_hosts': ['h']}, ':h'),
        ({'force_hosts': None, 'force_nodes': None}, None),
    )
    @ddt.unpack
    def test_zone(self, fields, zone):
        self.assertEqual(zone, requests.zone(objects.RequestSpec(**fields)))
