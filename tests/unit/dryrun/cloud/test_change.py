# SPDX-License-Identifier: Apache-2.0

import pathlib
from unittest import mock

import fixtures
from nova import context
from nova import objects
import nova.conf
from nova.db.api import api as api_db
from nova.db.api import models
from nova.objects import aggregate
from oslo_config import fixture as config_fixture
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched import conf
from nova_ext_sched import exception
from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.queries import aggregates
from tests import databases

objects.register_all()

CONF = nova.conf.CONF


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
        listed = mock.patch.object(objects.HostMappingList, 'get_all')
        self.enterContext(listed).return_value = mapped
        self.before = self.read()

    def read(self):
        """Return what nova's objects say."""
        found = objects.AggregateList.get_all(self.ctxt)
        known = [(one.id, one.uuid) for one in found]
        third = getattr(uuids, '1')
        self.assertEqual([(1, uuids.gpu), (2, uuids.bare), (3, third)], known)
        return {one.name: (one.metadata, {*one.hosts}) for one in found}

    def make(self, **supposed):
        return change.made(change.Change(**supposed))

    def test_one_aggregate_changes(self):
        for what, item, name, wanted in (
            ('metadata', ('gpu', 'b', '2'), 'gpu', {'a': '1', 'b': '2'}),
            ('metadata', (uuids.gpu, 'a', '2=3'), 'gpu', {'a': '2=3'}),
            ('metadata', ('2', 'a', '1'), 'bare', {'a': '1'}),
            ('no_metadata', ('gpu', 'a'), 'gpu', {}),
            ('hosts', ('bare', 'h1'), 'bare', {'h1'}),
            ('hosts', ('gpu', 'h4'), 'gpu', {'h1', 'h2', 'h4'}),
            ('hosts', ('gpu', 'h1'), 'gpu', {'h1', 'h2'}),
            ('no_hosts', ('gpu', 'h1'), 'gpu', {'h2'}),
        ):
            metadata, hosts = self.before[name]
            is_metadata = isinstance(wanted, dict)
            now = (wanted, hosts) if is_metadata else (metadata, wanted)
            with self.make(**{what: [item]}):
                expected = {**self.before, name: now}
                self.assertEqual(expected, self.read())
            self.assertEqual(self.before, self.read())

    def test_every_query(self):
        """nova's and ours see the change, and nothing of it is left."""
        asked = objects.AggregateList

        def queries():
            others = asked.get_non_matching_by_metadata_keys
            found = (
                asked.get_by_host(self.ctxt, 'h4'),
                asked.get_by_host(self.ctxt, 'h4', key='b'),
                asked.get_by_metadata(self.ctxt, value='2'),
                asked.get_by_metadata_key(self.ctxt, 'b', ['h4']),
                others(self.ctxt, ['a'], 'b', '2'),
                aggregates.get_metadata(self.ctxt, ['b']),
            )
            return [[one.name for one in each] for each in found]

        self.assertEqual([[]] * 6, queries())
        with self.make(metadata=[('bare', 'b', '2')], hosts=[('bare', 'h4')]):
            self.assertEqual([['bare']] * 6, queries())
        self.assertEqual([[]] * 6, queries())

    def test_a_key_in_another_case(self):
        expected_of = {'mysql': ['gpu'], 'postgresql': [], 'sqlite': []}
        for dialect, expected in expected_of.items():
            found = objects.AggregateList.get_all(self.ctxt)
            with change.used(change.copy_aggregates(found, dialect), {}):
                asked = objects.AggregateList.get_by_metadata
                found = asked(self.ctxt, key='A')
            self.assertEqual(expected, [one.name for one in found])

    def test_nothing_is_left_after_an_error(self):
        supposed = {'metadata': [('bare', 'b', '2')]}
        with (
            testtools.ExpectedException(ZeroDivisionError),
            self.make(options=[('scheduler.workers', '77')], **supposed),
        ):
            1 / 0  # noqa: B018
        self.assertEqual(self.before, self.read())
        self.assertNotEqual(77, CONF.scheduler.workers)

    def test_no_change(self):
        """The databases are asked, and nothing is copied."""
        with mock.patch.object(change, 'copy_aggregates') as copy, self.make():
            self.read()
        copy.assert_not_called()

    def test_what_does_not_exist(self):
        for what, item, part in (
            ('options', ('nova_ext_sched.nothing', '1'),
             'an option of nova.conf'),
            ('options', ('scheduler.workers', 'x'),
             '--option scheduler.workers'),
            ('metadata', ('gpus', 'a', 'b'),
             'no aggregate gpus. Did you mean gpu?'),
            ('metadata', ('1', 'a', 'b'), '2 aggregates are named 1: '),
            ('no_metadata', ('gpu', 'b'), 'aggregate gpu: a, got'),
            ('no_metadata', ('bare', 'b'), 'bare: it has none'),
            ('hosts', ('gpu', 'h5'), 'no host h5. Did you mean h1, h2 or h3?'),
            ('no_hosts', ('gpu', 'h3'),
             'h3 in aggregate gpu. Did you mean h1 or h2?'),
            ('no_hosts', ('bare', 'h3'),
             'There is no host h3 in aggregate bare.'),
        ):  # fmt: skip
            supposed = {'options': [('scheduler.workers', '7')], what: [item]}
            made = self.make(**supposed)
            error = self.assertRaises(exception.InvalidValue, made.__enter__)
            self.assertIn(part, str(error))
            self.assertEqual(self.before, self.read())
            self.assertNotEqual(7, CONF.scheduler.workers)


class OptionsTestCase(testtools.TestCase):
    """As if nova.conf had them, until the end."""

    def setUp(self):
        super().setUp()
        self.useFixture(config_fixture.Config(CONF))
        self.folder = self.useFixture(fixtures.TempDir())

    def configure(self, **options):
        text = ''.join(f'{name} = {options[name]}\n' for name in options)
        file = pathlib.Path(self.folder.join('nova.conf'))
        file.write_text(f'[scheduler]\n{text}')
        CONF([], default_config_files=[str(file)])

    def made(self, *options):
        return change.made(change.Change(options))

    def test_default_and_a_group(self):
        self.configure(workers=3)
        before = CONF.host
        option = 'scheduler.workers'
        # The last one of an option counts.
        with self.made(('host', 'here'), (option, 'x'), (option, '7')):
            self.assertEqual(('here', 7), (CONF.host, CONF.scheduler.workers))
        self.assertEqual((before, 3), (CONF.host, CONF.scheduler.workers))
        # Nothing stands before what nova.conf says.
        self.configure(workers=4)
        self.assertEqual(4, CONF.scheduler.workers)

    def test_one_of_several_lines(self):
        """Not its letters; each value is a line."""
        options, name = CONF.filter_scheduler, 'available_filters'
        before = options.available_filters
        lines = 'nova.scheduler.filters.all_filters', 'mine.all_filters'
        for given in (lines, lines[1:]):
            asked = [(f'filter_scheduler.{name}', line) for line in given]
            with self.made(*asked):
                self.assertEqual([*given], options.available_filters)
        with self.made(('filter_scheduler.enabled_filters', 'A,B')):
            self.assertEqual(['A', 'B'], options.enabled_filters)
        self.assertEqual(before, options.available_filters)

    def test_names(self):
        """nova.conf may have it by an old one too."""
        for option, group, name, given, expected in (
            ('quota_cores', 'quota', 'cores', '7', 7),
            ('DEFAULT.quota_cores', 'quota', 'cores', '7', 7),
            ('pci.passthrough_whitelist', 'pci', 'device_spec', '{}', ['{}']),
            ('libvirt.iscsi_transport', 'libvirt', 'iscsi_iface', 'x', 'x'),
            ('DEFAULT.host', None, 'host', 'here', 'here'),
        ):
            options = CONF[group] if group else CONF
            before = options[name]
            with self.made((option, given)):
                self.assertEqual(expected, options[name])
            self.assertEqual(before, options[name])
        for option in ('nothing.workers', 'scheduler.nothing', 'nothing'):
            made = self.made((option, '7'))
            error = self.assertRaises(exception.InvalidValue, made.__enter__)
            self.assertIn('--option', str(error))

    def test_one_that_was_overridden_already(self):
        CONF.set_override('workers', 5, 'scheduler')
        with self.made(('scheduler.workers', '7')):
            pass
        self.assertEqual(5, CONF.scheduler.workers)

    def test_one_that_nova_conf_has_in_another_form(self):
        """What would be if it were mended can be asked."""
        self.configure(workers='many')
        with self.made(('scheduler.workers', '7')):
            self.assertEqual(7, CONF.scheduler.workers)
        self.assertRaises(ValueError, getattr, CONF.scheduler, 'workers')


class FoldTestCase(testtools.TestCase):
    def test_texts_that_mysql_calls_equal(self):
        """As utf8_general_ci: no case, accents, or blanks at the end."""
        for text, folded in (
            ('', ''),
            ('  ', ''),
            ('Rack 1  ', 'RACK 1'),
            (' rack', ' RACK'),
            ('tab\t', 'TAB\t'),
            ('Köln ', 'KOLN'),
            ('CAFE\N{COMBINING ACUTE ACCENT}', 'CAFE'),
            ('я', 'Я'),
        ):
            self.assertEqual(folded, change.fold(text))

    def test_order(self):
        for one, other, expected in (
            ('a', 'B', -1),
            ('b', 'A', 1),
            ('köln', 'KOLN  ', 0),
        ):
            self.assertEqual(expected, change._compare(one, other))
