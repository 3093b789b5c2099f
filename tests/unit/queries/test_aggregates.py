# SPDX-License-Identifier: Apache-2.0

import datetime
import itertools
import uuid

from nova import context
from nova.db.api import api as api_db
from nova.db.api import models
from nova.objects import aggregate as nova_aggregate
from oslo_db import exception as db_exception
import sqlalchemy as sa
from sqlalchemy import exc as sa_exc
from sqlalchemy import orm
import testtools

from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.queries import aggregates
from tests import databases

TABLES = [
    getattr(models, f'Aggregate{name}').__table__
    for name in ('', 'Host', 'Metadata')
]


class ValuesMixin:
    """Whose answer goes by how the database compares text, if nothing does."""

    backend = None

    def setUp(self):
        super().setUp()
        database = self.useFixture(databases.Database(self.backend))
        self.engine = database.replace(api_db.context_manager)
        self.create_tables()
        self.ctxt = context.get_admin_context()

    def create_tables(self):
        models.BASE.metadata.create_all(self.engine, tables=TABLES)

    def add(self, name, hosts=(), metadata=None):
        with orm.Session(self.engine) as session, session.begin():
            aggregate = models.Aggregate(name=name, uuid=str(uuid.uuid4()))
            session.add(aggregate)
            session.flush()
            own = {'aggregate_id': aggregate.id}
            for host in hosts:
                session.add(models.AggregateHost(host=host, **own))
            for key, value in (metadata or {}).items():
                item = {'key': key, 'value': value}
                session.add(models.AggregateMetadata(**own, **item))
            return aggregate.uuid

    def test_values_and_hosts(self):
        both = self.add('both', ['h1', 'h2', 'h3'], {'rack': 'a', 'x': 'b'})
        other = self.add('other', ['h3', 'H1'], {'rack': 'b, c'})
        none = self.add('none', [], {'rack': ''})
        for number, key in enumerate(('Rack', 'rack ', 'racks')):
            self.add(f'agg{number}', ['h1'], {key: 'd'})
        expected = {
            (both, 'both', 'a', 'h1'),
            (both, 'both', 'a', 'h2'),
            (other, 'other', 'b, c', None),
            (none, 'none', '', None),
        }
        args = self.ctxt, 'rack', ['h1', 'h2', 'unknown']
        self.assertEqual(expected, {*aggregates.get_values(*args)})
        # More hosts than a statement names.
        self.patch(aggregates, '_MOST_HOSTS', 1)
        expected.add((both, 'both', 'a', None))
        self.assertEqual(expected, {*aggregates.get_values(*args)})


class AggregatesMixin(ValuesMixin):
    """The selects, on one kind of database."""

    def keys(self, *prefixes):
        return {
            item.key for item in aggregates.get_metadata(self.ctxt, prefixes)
        }

    def test_items_carry_what_messages_name(self):
        agg = self.add('windows', ['h'], {'trait:X': 'required', 'a': 'b'})
        self.add('plain', ['h'])
        (item,) = aggregates.get_metadata(self.ctxt, ['trait:'])
        self.assertEqual((agg, 'windows', 'trait:X', 'required'), item)
        self.assertEqual('windows', item.name)

    def test_every_spelling_of_a_prefix_is_found(self):
        """Databases differ in what else they find, and never in these."""
        trait = ['trait:X', 'trait:', 'Trait:X', 'TRAIT:X', ' trait:X']
        # The policy says that the last are slips.
        trait += ['  Trait: X', 'trait', 'traits :X']
        expected = {
            'trait:': trait,
            'Trait:': trait,
            'r_v:': ['r_v:1', 'R_v:1'],
            'r%:': ['r%:1'],
            'r/v:': ['r/v:1'],
            'r\\v:': ['r\\v:1'],
            "r'v:": ["r'v:1"],
        }
        accented = ('\u00e9:1', '\u00c9:1')
        others = ('tra:X', 'xtrait:X', 'rxv:1', 'rxx:1', 'r', 'zone')
        # One aggregate each: a collation may hold two keys to be one.
        found = dict.fromkeys(itertools.chain(*expected.values()))
        for number, key in enumerate((*found, *accented, *others)):
            self.add(f'agg{number}', metadata={key: 'required'})
        for prefix, keys in expected.items():
            self.assertEqual({*keys}, self.keys(prefix), prefix)
        for key in accented:
            self.assertIn(key, self.keys(key[:2]))

    def test_since_when_a_host_has_a_value(self):
        for name, *when in (
            # Written, written again, and when the host came.
            ('one', 1, None, 2), ('two', 3, None, 2), ('three', 1, 4, 2),
        ):  # fmt: skip
            self.add(name, ['h1'], {'spare': name, 'x': name})
            written, again, came = (
                one and datetime.datetime(2026, 1, one) for one in when
            )
            with self.engine.begin() as connection:
                for table, values in (
                    ('metadata', {'created_at': written, 'updated_at': again}),
                    ('hosts', {'created_at': came}),
                ):
                    table = models.BASE.metadata.tables[f'aggregate_{table}']
                    last = sa.select(sa.func.max(table.c.aggregate_id))
                    last = last.scalar_subquery()
                    connection.execute(
                        sa.update(table)
                        .where(table.c.aggregate_id == last)
                        .values(**values)
                    )
        self.add('other', ['h2'], {'spare': 'x'})
        found = aggregates.get_times(self.ctxt, 'spare', 'h1')
        self.assertEqual(
            {'one': 2, 'two': 3, 'three': 4},
            {value: since.day for value, since in found},
        )

    def test_no_prefix(self):
        self.add('agg', metadata={'a': 'b'})
        self.assertEqual([], aggregates.get_metadata(self.ctxt, []))

    def test_hosts(self):
        two = self.add('two', ['h1', 'h2'])
        one = self.add('one', ['h1'])
        self.add('none')
        self.assertEqual({one: ['h1'], two: ['h1', 'h2']}, self.hosts())

    def hosts(self):
        found = aggregates.get_hosts(self.ctxt)
        return {uuid: sorted(hosts) for uuid, hosts in found.items()}

    def test_hosts_are_read_again_where_any_changed(self):
        one, two = self.add('one', ['h1']), self.add('two', ['h2'])
        self.assertEqual({one: ['h1'], two: ['h2']}, self.hosts())
        statements = []

        def note(connection, cursor, statement, *rest):
            # oslo.db pings with the other one.
            if statement not in ('BEGIN', 'SELECT 1'):
                statements.append(statement)

        sa.event.listen(self.engine, 'before_cursor_execute', note)
        self.assertEqual({one: ['h1'], two: ['h2']}, self.hosts())
        self.assertEqual(1, len(statements), statements)
        table = models.AggregateHost
        select = sa.select(table.aggregate_id, table.created_at)
        with self.engine.connect() as connection:
            [row] = connection.execute(select.where(table.host == 'h2'))
        later = row.created_at + datetime.timedelta(seconds=1)
        # As many rows: within one second, or with the ID of one before.
        for old, new, (step, created_at) in (
            ('h1', 'h3', (10, row.created_at)),
            ('h3', 'h4', (0, later)),
        ):
            is_old = table.host == old
            values = {'aggregate_id': row.aggregate_id, 'host': new}
            values['created_at'] = created_at
            with self.engine.begin() as connection:
                ids = connection.scalars(sa.select(table.id).where(is_old))
                values['id'] = ids.one() + step
                connection.execute(sa.delete(table).where(is_old))
                connection.execute(sa.insert(table), values)
            self.assertEqual({two: ['h2', new]}, self.hosts())

    def test_uuids_by_hosts_ignores_case(self):
        one = self.add('one', ['Host1'])
        both = self.add('both', ['Host1', 'host2'])
        self.add('other', ['host3'])
        asked = ['hOST1', 'absent']
        found = aggregates.get_uuids_by_hosts(self.ctxt, asked)
        self.assertEqual({one, both}, found)

    def by_name_or_value(self, *args):
        items = aggregates.get_by_name_or_value(self.ctxt, *args)
        found = {}
        for item in items:
            found.setdefault(item.name, {})[item.key] = item.value
        for metadata in found.values():
            metadata.pop(None, None)
        return found

    def test_by_name_or_value(self):
        owned = {'zone': 'z_a', 'owner': 'me'}
        self.add('a', ['h1', 'h2'], {**owned, 'x': 'y'})
        self.add('b', metadata={'owner': 'me'})
        self.add('c', metadata={'zone': 'z%b'})
        self.add('d')
        for number, zone in enumerate(('zXa', 'a z_a', 'z', '')):
            self.add(f'other{number}', metadata={'zone': zone})
        self.add('other', metadata={'owner': 'z_a'})
        zone = {'zone': 'z_a'}
        for expected, names, prefixes in (
            ({'a': zone}, (), ('z_',)),
            ({'a': zone, 'c': {'zone': 'z%b'}}, (), ('z_', 'z%')),
            ({'b': {'owner': 'me'}, 'd': {}}, ('b', 'd', 'gone'), ()),
            ({'a': {**owned, 'x': 'y'}, 'd': {}}, ('a', 'd'), ('z_',)),
            ({}, (), ()),
        ):
            found = self.by_name_or_value(names, 'zone', prefixes)
            self.assertEqual(expected, found)
        # Any zone, and none at all.
        found = self.by_name_or_value((), 'zone', ('',))
        self.assertLessEqual({'a', 'c', 'other1', 'other2'}, {*found})

    def use(self, *metadata):
        """Read aggregates a, b, c, the first with the host h, from a copy."""
        found = [
            nova_aggregate.Aggregate(id=n, uuid=name, name=name, metadata=one)
            for n, (name, one) in enumerate(zip('abc', metadata, strict=True))
        ]
        for number, one in enumerate(found):
            one.hosts = ['h'][number:]
        self.enterContext(change.used(change.copy_aggregates(found), {}))

    def test_other_aggregates(self):
        self.add('nova', ['h'], {'trait:N': 'required', 'rack': 'n'})
        self.use({'trait:X': 'required'}, {'rack': 'r'}, None)
        self.assertEqual({'trait:X'}, self.keys('trait:'))
        found = aggregates.get_values(self.ctxt, 'rack', ['h'])
        self.assertEqual([('b', 'b', 'r', None)], found)
        self.assertEqual({'a': ['h']}, self.hosts())
        found = aggregates.get_uuids_by_hosts(self.ctxt, ['H'])
        self.assertEqual({'a'}, found)

    def test_by_name_or_value_of_other_aggregates(self):
        self.use({'zone': 'z_a', 'x': 'y'}, {'owner': 'me'}, {'zone': 'nova'})
        found = self.by_name_or_value(['b'], 'zone', ['z_'])
        self.assertEqual({'a': {'zone': 'z_a'}, 'b': {'owner': 'me'}}, found)

    def test_nova_reads_a_copy_as_its_database(self):
        """Databases differ in how they compare text."""
        for name, metadata in (
            ('a', {'trait:X': 'required'}),
            ('b', {'trait:X': 'Required', 'owner': 'me '}),
            ('c', {'Trait:X': 'required '}),
            ('d', {'trait:Y': 'forbidden', 'owner': 'Me'}),
        ):
            self.add(name, [f'h{name}'], metadata)
        asked = nova_aggregate.AggregateList

        def read():
            without = asked.get_non_matching_by_metadata_keys
            wanted = 'trait:', 'required'
            return [
                sorted(one.name for one in found)
                for found in (
                    without(self.ctxt, [], *wanted),
                    without(self.ctxt, ['trait:x'], *wanted),
                    asked.get_by_metadata(self.ctxt, value='me'),
                    asked.get_by_metadata_key(self.ctxt, 'OWNER'),
                    asked.get_by_host(self.ctxt, 'HA'),
                )
            ]

        expected = read()
        all_ = asked.get_all(self.ctxt)
        copy = change.copy_aggregates(all_, self.engine.dialect.name)
        self.add('of the database alone', metadata={'trait:X': 'required'})
        with change.used(copy, {}):
            self.assertEqual(expected, read())

    def test_error_is_raised(self):
        models.BASE.metadata.drop_all(self.engine, tables=TABLES)
        # oslo.db leaves this one of MySQL's untranslated.
        errors = db_exception.DBError, sa_exc.SQLAlchemyError
        self.assertRaises(errors, self.keys, 'trait:')


class SQLiteTestCase(AggregatesMixin, testtools.TestCase):
    backend = 'sqlite'


class WithoutCaseTestCase(ValuesMixin, testtools.TestCase):
    """Text is compared as MySQL does it by default."""

    backend = 'sqlite'

    def create_tables(self):
        copies = sa.MetaData()
        for table in TABLES:
            for column in table.to_metadata(copies).columns:
                if isinstance(column.type, sa.String):
                    column.type = sa.String(255, collation='NOCASE')
        copies.create_all(self.engine)
