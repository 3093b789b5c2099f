# SPDX-License-Identifier: Apache-2.0

"""A cloud in a file answers as the cloud did when it was saved."""

import gzip
import json
import pathlib
import sys

import fixtures
from nova import context
from nova import objects
from nova.db.api import models as api_models
from nova.db.main import models
from oslo_utils.fixture import uuidsentinel as uuids
import sqlalchemy as sa

from nova_ext_sched.cmd import audit
from nova_ext_sched.cmd import capacity
from nova_ext_sched.cmd import drain
from nova_ext_sched.cmd import explain as explain_command
from nova_ext_sched.cmd import maintain
from nova_ext_sched.cmd import make_room
from nova_ext_sched.cmd import mend
from nova_ext_sched.cmd import survive
from nova_ext_sched.saved import listed
from nova_ext_sched.saved import providers
from nova_ext_sched.saved import writing
from tests.functional import base
from tests.functional import explain
from tests.functional import keystone
from tests.functional import saved

COMMANDS = {
    'audit': audit.Audit,
    'capacity': capacity.Capacity,
    'drain': drain.Drain,
    'explain': explain_command.Explain,
    'maintain': maintain.Maintain,
    'make-room': make_room.MakeRoom,
    'mend': mend.Mend,
    'survive': survive.Survive,
}


class EqualMixin:
    """Compares documents of all commands, of a cloud and of its file."""

    def assertSame(self, *commands, save=()):
        """Let a cloud and its file answer the same; return the file."""
        commands = [[*one, '-f', 'json'] for one in commands]
        live = self.call(commands)
        file = self.useFixture(saved.Saved(*save))
        self.assertAnswers(file, *commands, live=live)
        return file

    def call(self, commands):
        return [
            explain.call(COMMANDS[name], name, *args)
            for name, *args in commands
        ]

    def assertAnswers(self, file, *commands, live=None):
        """Let a file answer as the cloud does.

        :param live: what it answered before, with ``-f json``
        """
        self.assertEqual(0, file.said.status, file.said)
        if live is None:
            commands = [[*one, '-f', 'json'] for one in commands]
            live = self.call(commands)
        for argv, one, other in zip(
            commands, live, file.ask(*commands), strict=True
        ):
            self.assertEqual(
                (one.status, saved.strip(json.loads(one.out or '{}'))),
                (other.status, saved.strip(json.loads(other.out or '{}'))),
                (argv, one.err, other.err),
            )


class SavedTestCase(EqualMixin, base.CloudTestCase):
    together = saved.TOGETHER
    weights = {'host1': 300, 'host2': 200, 'host3': 100}
    host_filters = ('IsolatedAggregatesFilter', 'AggregateInstanceTypeFilter')
    options = explain.OPTIONS

    def test_all_commands_answer_the_same(self):
        self.isolate('windows', ['host1'], 'CUSTOM_WINDOWS')
        plain = self.boot()
        group = self.create_group()
        [member, _] = [
            self.boot(hints={'group': group})['id'] for _ in range(2)
        ]
        self.set_metadata('windows', {'trait:CUSTOM_OTHER': 'required'})
        # A project whose servers are all gone.
        gone = self.boot()
        self._delete_server(gone)
        mapping = objects.InstanceMapping.get_by_instance_uuid(
            context.get_admin_context(), gone['id']
        )
        mapping.project_id = uuids.project
        mapping.save()
        self.assertSame(
            [
                *('explain', '--flavor', self.plain_flavor),
                *('--project', uuids.project),
            ],
            ['explain', '--server', plain['id'], '--operation', 'migrate'],
            # nova asks the database of nova.conf for the hosts of its group.
            ['explain', '--server', member, '--operation', 'migrate'],
            ['explain', '--flavor', self.plain_flavor],
            ['audit'],
            ['mend'],
            ['drain', 'host2'],
            ['survive'],
            ['maintain'],
            ['capacity'],
            [
                *('make-room', '--flavor', self.plain_flavor),
                *('--count', '3'),
            ],
        )

    def test_a_project_without_servers(self):
        """It can ask for its first one."""
        self.useFixture(keystone.Projects(self.api.project_id, uuids.project))
        self.assertSame(
            [
                *('explain', '--flavor', self.plain_flavor),
                *('--project', uuids.project),
            ]
        )

    def test_a_soft_deleted_server(self):
        """nova's API calls it deleted; it can come back."""
        self.flags(reclaim_instance_interval=3600)
        server = self.boot(host='host1')
        self.api.delete_server(server['id'])
        self._wait_for_state_change(server, 'SOFT_DELETED')
        self.assertSame(['drain', 'host1'], ['survive', '--host', 'host1'])

    def test_what_changes_meanwhile_is_read_again(self):
        server = self.boot(az='nova:host1')
        gone = self.boot(az='nova:host1')
        write, number = providers.Providers.write, iter(range(10))

        def write_meanwhile(read):
            changed = write(read)
            if next(number) == 0:
                self.live_migrate(server, 'host2')
                self._wait_for_migration_status(server, ['completed'])
                self.wait_until_idle(server)
                self.boot(az='nova:host3')
                self._delete_server(gone)
            return changed

        self.patch(providers.Providers, 'write', write_meanwhile)
        file = self.useFixture(saved.Saved())
        self.assertNotIn('changed each time', file.said.out)
        self.assertAnswers(file, ['drain', 'host2'], ['capacity'], ['audit'])

    def test_what_never_settles_is_named(self):
        self.boot()
        write = providers.Providers.write

        def write_meanwhile(read):
            self.boot()
            return write(read)

        self.patch(providers.Providers, 'write', write_meanwhile)
        file = self.useFixture(saved.Saved())
        self.assertIn('changed each time while the cloud was', file.said.out)
        [answer] = file.ask(['audit', '-f', 'json'])
        [note] = [
            one
            for one in json.loads(answer.out)['origin']['notes']
            if 'server changed each time' in one
        ]

    def test_part_of_a_cloud(self):
        self.aggregate('rack', ['host1', 'host2'])
        for host in self.weights:
            self.boot(az=f'nova:{host}')
        config = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'p')
        config.write_text('[placement]\nmax_allocation_candidates = 1\n')
        argv = ('--aggregate', 'rack', '--placement-config', str(config))
        file = self.useFixture(saved.Saved(*argv))
        self.assertEqual(0, file.said.status, file.said)
        self.assertNotIn('assumed', file.said.out)
        drained, explained = file.ask(
            ['drain', 'host1', '-f', 'json'],
            ['explain', '--flavor', self.plain_flavor, '-f', 'json'],
        )
        document = json.loads(drained.out)
        self.assertEqual(
            ['host1', 'host2'], [one['host'] for one in document['topology']]
        )
        # placement answers with one host, which is to be empty.
        self.assertEqual([], document['moves'])
        self.assertIn('only the hosts of rack', drained.out)
        self.assertEqual(1, len(json.loads(explained.out)['order']))

    def test_what_does_not_exist(self):
        for argv in (('--aggregate', 'rakc'), ('--cell', 'cell9')):
            file = self.useFixture(saved.Saved(*argv))
            self.assertEqual(2, file.said.status, file.said)
            self.assertFalse(file.path.exists())

    def plant(self, engine, base, tables):
        """Write a secret into each text that is not to be in the file."""
        number = 0
        with engine.begin() as connection:
            for table in base.metadata.tables.values():
                known = tables.get(table.name, '').split()
                secret = [
                    column.name
                    for column in table.columns
                    if isinstance(column.type, sa.String)
                    and column.name not in known
                    and column.name != 'database_connection'
                ]
                for name in secret if table.name in tables else ():
                    number += 1
                    connection.execute(
                        sa.update(table).values({name: f'PLANTED{number}'})
                    )
                for name in known:
                    if f'{table.name}.{name}' in listed.JSON:
                        self.plant_json(connection, table, table.c[name])
        return number

    def plant_json(self, connection, table, column):
        for id_, text in connection.execute(sa.select(table.c.id, column)):
            if text:
                value = json.loads(text)
                plant(value)
                connection.execute(
                    sa.update(table)
                    .where(table.c.id == id_)
                    .values({column.name: json.dumps(value)})
                )

    def record_statements(self):
        """Return the first words of what save will send to databases."""
        sent = []

        def record(connection, cursor, statement, *_):
            # nova's services run in this process, too.
            frame = sys._getframe()
            while frame and frame.f_code.co_filename != writing.__file__:
                frame = frame.f_back
            if frame:
                sent.append(statement.split()[0])

        sa.event.listen(sa.engine.Engine, 'before_cursor_execute', record)
        self.addCleanup(
            sa.event.remove,
            sa.engine.Engine,
            'before_cursor_execute',
            record,
        )
        return sent

    def test_no_secret_is_in_it(self):
        server = self.boot()
        refused = self.boot(expected_state='ERROR', az='zone:host9')
        self.assertIsNotNone(refused)
        self.aggregate('aggregate', db_password='PLANTED-key', shown='SHOWN')
        for group, name in (
            ('neutron', 'metadata_proxy_shared_secret'),
            ('api_database', 'connection'),
            (None, 'transport_url'),
        ):
            self.flags(group=group, **{name: 'rabbit://u:PLANTED-conf@h'})
        self.flags(
            default_availability_zone='mysql://nova:PLANTED-url@db/nova'
        )
        number = self.plant(
            self.cell_engine(), models.BASE, listed.CELL
        ) + self.plant(self.api_engine(), api_models.BASE, listed.API)
        self.assertGreater(number, 30)
        with self.cell_engine('cell0').begin() as connection:
            connection.execute(
                sa.text(
                    "UPDATE instance_faults SET message = 'No valid host: "
                    "mysql://nova:PLANTED-fault@db/nova'"
                )
            )
        with self.cell_engine().begin() as connection:
            connection.execute(
                sa.insert(models.InstanceSystemMetadata.__table__).values(
                    instance_uuid=server['id'],
                    key='password_0',
                    value='PLANTED-password',
                    deleted=0,
                )
            )
        sent = self.record_statements()
        file = self.useFixture(saved.Saved())
        self.assertEqual(0, file.said.status, file.said)
        # placement is in this process, too: it was asked by GET alone. By
        # PRAGMA nova asks SQLite whether there is a table.
        self.assertEqual({'BEGIN', 'PRAGMA', 'SELECT'}, {*sent})
        self.assertGreater(len(sent), 50)
        text = gzip.decompress(file.path.read_bytes()).decode()
        for shown in (server['id'], 'SHOWN', 'No valid host'):
            self.assertIn(shown, text)
        self.assertNotIn('PLANTED', text)


def plant(value):
    """Write secrets into JSON, beside what its objects have."""
    if isinstance(value, list):
        for one in value:
            plant(one)
    elif isinstance(value, dict):
        for one in [*value.values()]:
            plant(one)
        value['planted_password'] = 'PLANTED-json'
        if isinstance(data := value.get('nova_object.data'), dict):
            data['user_data'] = 'PLANTED-field'
            data['keypairs'] = {
                'nova_object.name': 'KeyPairList',
                'nova_object.data': {'objects': ['PLANTED-object']},
            }
