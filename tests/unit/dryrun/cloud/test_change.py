# SPDX-License-Identifier: Apache-2.0

import argparse
from unittest import mock

import ddt
from nova import context
from nova import objects
import nova.conf
from nova.db.api import api as api_db
from nova.db.api import models
from nova.objects import aggregate
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched import conf
from nova_ext_sched import exception
from nova_ext_sched.cli import options
from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.queries import aggregates
from tests import databases

objects.register_all()


@ddt.ddt
class MadeTestCase(testtools.TestCase):
    """nova's databases have gpu, bare and one whose name is the first's ID."""

    def setUp(self):
        super().setUp()
        conf.register_opts(nova.conf.CONF)
        database = self.useFixture(databases.Database('sqlite'))
        engine = database.replace(api_db.context_manager)
        models.BASE.metadata.create_all(engine)
        self.ctxt = context.get_admin_context()
        for number, name, metadata, hosts in (
            (1, 'gpu', {'a': '1'}, ['h1', 'h2']),
            (2, 'bare', {}, []),
            (3, '1', {}, ['h3']),
        ):
            values = {'uuid': getattr(uuids, name), 'name': name}
            aggregate._aggregate_create_in_db(self.ctxt, values, metadata)
            for host in hosts:
                aggregate._host_add_to_db(self.ctxt, number, host)
        mapped = [objects.HostMapping(host=f'h{n}') for n in (1, 2, 3, 4)]
        self.enterContext(
            mock.patch.object(
                objects.HostMappingList, 'get_all', return_value=mapped
            )
        )
        self.before = self.read()

    def read(self):
        """Return what nova's objects say."""
        found = objects.AggregateList.get_all(self.ctxt)
        self.assertEqual(
            [(1, uuids.gpu), (2, uuids.bare), (3, getattr(uuids, '1'))],
            [(one.id, one.uuid) for one in found],
        )
        return {one.name: (one.metadata, {*one.hosts}) for one in found}

    def make(self, *argv):
        parser = argparse.ArgumentParser()
        options.add_change(parser)
        return change.made(parser.parse_args(argv))

    @ddt.data(
        (['--aggregate-property', 'gpu', 'b=2'], 'gpu', {'a': '1', 'b': '2'}),
        (['--aggregate-property', uuids.gpu, 'a=2=3'], 'gpu', {'a': '2=3'}),
        (['--aggregate-property', '2', 'a=1'], 'bare', {'a': '1'}),
        (['--no-aggregate-property', 'gpu', 'a'], 'gpu', {}),
        (['--aggregate-host', 'bare', 'h1'], 'bare', {'h1'}),
        (['--aggregate-host', 'gpu', 'h4'], 'gpu', {'h1', 'h2', 'h4'}),
        (['--aggregate-host', 'gpu', 'h1'], 'gpu', {'h1', 'h2'}),
        (['--no-aggregate-host', 'gpu', 'h1'], 'gpu', {'h2'}),
    )
    @ddt.unpack
    def test_one_aggregate_changes(self, argv, name, wanted):
        metadata, hosts = self.before[name]
        if isinstance(wanted, dict):
            metadata = wanted
        else:
            hosts = wanted
        with self.make(*argv):
            self.assertEqual(
                {**self.before, name: (metadata, hosts)}, self.read()
            )
        self.assertEqual(self.before, self.read())

    def test_every_query(self):
        """nova's and ours see the change, and nothing of it is left."""
        asked = objects.AggregateList

        def queries():
            return [
                [one.name for one in found]
                for found in (
                    asked.get_by_host(self.ctxt, 'h4'),
                    asked.get_by_host(self.ctxt, 'h4', key='b'),
                    asked.get_by_metadata(self.ctxt, value='2'),
                    asked.get_by_metadata_key(self.ctxt, 'b', ['h4']),
                    asked.get_non_matching_by_metadata_keys(
                        self.ctxt, ['a'], 'b', '2'
                    ),
                    aggregates.get_metadata(self.ctxt, ['b']),
                )
            ]

        self.assertEqual([[]] * 6, queries())
        with self.make(
            *('--aggregate-property', 'bare', 'b=2'),
            *('--aggregate-host', 'bare', 'h4'),
        ):
            self.assertEqual([['bare']] * 6, queries())
        self.assertEqual([[]] * 6, queries())

    @ddt.data(('mysql', ['gpu']), ('postgresql', []), ('sqlite', []))
    @ddt.unpack
    def test_a_key_in_another_case(self, dialect, expected):
        found = objects.AggregateList.get_all(self.ctxt)
        with change.used(change.copy_aggregates(found, dialect), {}):
            found = objects.AggregateList.get_by_metadata(self.ctxt, key='A')
        self.assertEqual(expected, [one.name for one in found])

    def test_nothing_is_left_after_an_error(self):
        with (
            testtools.ExpectedException(ZeroDivisionError),
            self.make('--aggregate-property', 'bare', 'b=2'),
        ):
            1 / 0  # noqa: B018
        self.assertEqual(self.before, self.read())

    def test_no_change(self):
        """The databases are asked, and nothing is copied."""
        with mock.patch.object(change, 'copy_aggregates') as copy, self.make():
            self.read()
        copy.assert_not_called()

    @ddt.data(
        (['--option', 'nova_ext_sched.nothing=1'], 'an option of nova.conf'),
        (['--aggregate-property', 'gpus', 'a=b'], 'gpu, '),
        (['--aggregate-property', '1', 'a=b'], 'because 2 aggregates'),
        (['--aggregate-property', 'gpu', 'a'], 'KEY=VALUE'),
        (['--aggregate-property', 'gpu', '=a'], 'KEY=VALUE'),
        (['--no-aggregate-property', 'gpu', 'b'], 'aggregate gpu: a, got'),
        (['--no-aggregate-property', 'bare', 'b'], 'bare: it has none'),
        (['--aggregate-host', 'gpu', 'h5'], 'nova: h1, h2, h3, h4, got'),
        (['--no-aggregate-host', 'gpu', 'h3'], 'aggregate gpu: h1, h2, got'),
        (['--no-aggregate-host', 'bare', 'h3'], 'bare: none, got'),
    )
    @ddt.unpack
    def test_what_does_not_exist(self, argv, part):
        error = self.assertRaises(
            exception.InvalidValue, self.make(*argv).__enter__
        )
        self.assertIn(part, str(error))
        self.assertEqual(self.before, self.read())
