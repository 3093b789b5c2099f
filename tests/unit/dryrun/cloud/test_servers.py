# SPDX-License-Identifier: Apache-2.0

"""What is read of servers; tests/functional reads real ones."""

import types
from unittest import mock

from nova import context
from nova import exception as nova_exception
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models
from nova.objects import fields as nova_fields
from oslo_serialization import jsonutils
from oslo_utils.fixture import uuidsentinel as uuids
import sqlalchemy as sa
from sqlalchemy import orm
import testtools

from nova_ext_sched.dryrun.cloud import servers
from tests import databases

objects.register_all()

CCTXT = object()
#: Of each server.
IMAGES = {'a': 'image', 'b': '', 'c': 'image'}


class ReadTestCase(testtools.TestCase):
    def test_pages(self):
        cloud = mock.Mock(cells={'cell': objects.CellMapping()})
        cloud.ask_cell = lambda _cell, select, *args: select(None, *args)
        asked = []

        def get_by_filters(ctxt, filters, **_):
            asked.append(filters)
            return [
                types.SimpleNamespace(uuid=one, image_ref=IMAGES[one])
                for one in filters['uuid']
            ]

        with (
            mock.patch.object(servers, 'PAGE', 3),
            mock.patch.object(servers, '_UUIDS', 2),
            mock.patch.object(objects, 'InstanceList') as listed,
            mock.patch.object(servers, '_select_specs') as select,
        ):
            select.return_value = {'a': ('text', False), 'c': (None, False)}
            on = {'h': ['b', 'a'], 'i': ['c']}
            listed.get_uuids_by_hosts.return_value = on
            listed.get_by_filters = get_by_filters
            reader = servers.Reader(cloud, project='p')
            found = [*reader.read_on('cell', ['h', 'i', 'j'])]
            with mock.patch.object(objects, 'BlockDeviceMappingList') as bdms:
                bdms.bdms_by_instance_uuid.side_effect = [{'b': 'disks of b'}]
                again = [
                    *reader.read_on('cell', ['h', 'i', 'j'], with_disks=True)
                ]
            # Without system metadata more are read at once.
            [*reader.read_on('cell', ['h', 'i', 'j'], attrs=['flavor'])]
        read = [(one.uuid, one.text) for one in found]
        self.assertEqual([('a', 'text'), ('b', None), ('c', None)], read)
        self.assertEqual(['b'], [one.uuid for one in found if one.is_grouped])
        common = {'deleted': False, 'host': [*'hij'], 'project_id': 'p'}
        expected = [{**common, 'uuid': ['a', 'b']}, {**common, 'uuid': ['c']}]
        whole = {**common, 'uuid': ['a', 'b', 'c']}
        self.assertEqual([*expected, *expected, whole], asked)
        self.assertEqual({None}, {one.disks for one in found})
        # Those of servers without an image are read, of a page at once.
        bdms.bdms_by_instance_uuid.assert_called_once_with(None, ['b'])
        read = [one.disks for one in again]
        self.assertEqual([None, 'disks of b', None], read)

    def test_hosts_of_a_page(self):
        for counts, pages in (
            ({}, []),
            ({'a': 9}, ['a']),
            ({'a': 3, 'b': 2, 'c': 1}, ['ab', 'c']),
            ({'a': 4, 'b': 2, 'c': 3}, ['a', 'bc']),
            ({'a': 1, 'b': 6, 'c': 1}, ['a', 'b', 'c']),
        ):
            with mock.patch.object(servers, 'PAGE', 5):
                found = [''.join(page) for page in servers.in_pages(counts)]
            self.assertEqual(pages, found)


class SelectSpecsTestCase(testtools.TestCase):
    def test_a_few_at_once(self):
        database = self.useFixture(databases.Database('sqlite'))
        engine = database.replace(api_db.context_manager)
        used = models.RequestSpec, models.InstanceGroupMember
        tables = [model.__table__ for model in used]
        models.BASE.metadata.create_all(engine, tables=tables)
        with orm.Session(engine) as session, session.begin():
            for uuid in 'abc':
                row = models.RequestSpec(instance_uuid=uuid, spec=f'of {uuid}')
                session.add(row)
            member = {'instance_uuid': 'b', 'group_id': 1}
            session.add(models.InstanceGroupMember(**member))
        asked = []
        sa.event.listen(
            engine,
            'before_cursor_execute',
            lambda *args: asked.append('request_specs' in args[2]),
        )
        ctxt = context.get_admin_context()
        with mock.patch.object(servers, '_UUIDS', 2):
            found = servers._select_specs(ctxt, [*'abcd'])
        expected = {uuid: (f'of {uuid}', uuid == 'b') for uuid in 'abc'}
        self.assertEqual(expected, found)
        self.assertEqual(2, sum(asked))


class LoadTestCase(testtools.TestCase):
    """tests/long compares specs with nova's."""

    def load(self, spec, **groups):
        """Load a spec twice; return both and the groups that were read."""
        text = jsonutils.dumps(spec.obj_to_primitive())
        reader, group = servers.Reader(None), objects.InstanceGroup
        with mock.patch.object(group, 'get_by_uuid', **groups) as read:
            first, second = (
                reader.load(servers.Stored(uuid, None, None, text))
                for uuid in (uuids.other, uuids.server)
            )
        self.assertEqual(uuids.server, second.instance_uuid)
        return first, second, [call.args[1] for call in read.mock_calls]

    def test_a_group_is_read_once(self):
        group = objects.InstanceGroup(uuid=uuids.group)
        full = objects.InstanceGroup(uuid=uuids.group, members=['a'])
        spec = objects.RequestSpec(instance_group=group)
        first, second, read = self.load(spec, return_value=full)
        self.assertEqual([uuids.group], read)
        # What is made of one request is not the other's.
        first.instance_group.members.append('b')
        self.assertEqual(['a'], second.instance_group.members)

    def test_group_that_only_the_hint_names(self):
        spec = objects.RequestSpec(
            instance_group=objects.InstanceGroup(),
            scheduler_hints={'group': [uuids.group]},
        )
        *_, read = self.load(spec, return_value=objects.InstanceGroup())
        self.assertEqual([uuids.group], read)

    def test_group_that_was_deleted(self):
        spec = objects.RequestSpec(
            instance_group=objects.InstanceGroup(uuid=uuids.group),
            scheduler_hints={'group': [uuids.group], 'other': ['x']},
        )
        gone = nova_exception.InstanceGroupNotFound(group_uuid=uuids.group)
        _, loaded, _ = self.load(spec, side_effect=gone)
        self.assertIsNone(loaded.instance_group)
        self.assertEqual({'other': ['x']}, loaded.scheduler_hints)

    def test_what_is_of_one_request_alone(self):
        spec = objects.RequestSpec(
            ignore_hosts=['h1'],
            retry=objects.SchedulerRetries(num_attempts=2),
            requested_destination=objects.Destination(host='h2'),
        )
        _, loaded, _ = self.load(spec)
        self.assertIsNone(loaded.ignore_hosts)
        self.assertIsNone(loaded.retry)
        self.assertNotIn('requested_destination', loaded)
        # The copy that nova-api makes for a rebuild has none.
        self.assertIn('id', loaded)

    def test_dedicated_cpus_of_an_old_release(self):
        cpus = {'cpuset': {0, 1}, 'pcpuset': set()}
        cpus['cpu_policy'] = nova_fields.CPUAllocationPolicy.DEDICATED
        cell = objects.InstanceNUMACell(id=0, memory=1, **cpus)
        cell.VERSION = '1.4'
        topology = objects.InstanceNUMATopology(cells=[cell])
        _, loaded, _ = self.load(objects.RequestSpec(numa_topology=topology))
        [cell] = loaded.numa_topology.cells
        self.assertEqual((set(), {0, 1}), (cell.cpuset, cell.pcpuset))


class GroupsTestCase(testtools.TestCase):
    """nova-conductor's own look at where the members of a group are."""

    def setUp(self):
        super().setUp()
        self.asked = []
        name = 'setup_instance_group'
        self.enterContext(mock.patch.object(servers.utils, name, self.set_up))
        self.reader = servers.Reader(None)

    def set_up(self, ctxt, spec_obj):
        self.asked.append(spec_obj.instance_uuid)
        if spec_obj.instance_group:
            spec_obj.instance_group.hosts = [f'h{len(self.asked)}']

    def ask(self, uuid, group, cell=uuids.cell, ctxt=CCTXT, is_grouped=True):
        """Return where the members are, as conductor would find it."""
        spec_obj = objects.RequestSpec(instance_uuid=uuid)
        spec_obj.instance_group = group and objects.InstanceGroup(
            uuid=group, members=[uuids.one, uuids.two]
        )
        mapping = objects.CellMapping(uuid=cell)
        with self.reader.keeping(CCTXT, uuid, mapping, is_grouped):
            servers.utils.setup_instance_group(ctxt, spec_obj)
        return spec_obj.instance_group

    def test_each_is_read_once(self):
        first = self.ask(uuids.one, uuids.group)
        self.assertEqual(['h1'], first.hosts)
        # A fork moves them for one request alone.
        first.hosts.append('h9')
        self.assertEqual(['h1'], self.ask(uuids.two, uuids.group).hosts)
        self.assertEqual([uuids.one], self.asked)
        # nova is as before then.
        self.assertEqual(self.set_up, servers.utils.setup_instance_group)

    def test_what_nova_reads_of_another(self):
        self.ask(uuids.one, uuids.group)
        self.ask(uuids.one, uuids.others)
        # nova takes its policy and members for one that is none any more.
        self.ask(uuids.left, uuids.group)
        self.ask(uuids.one, uuids.group, uuids.cell2)
        self.ask(uuids.alone, None)
        self.ask(uuids.alone, None)
        # A request of nova's in the same process.
        self.ask(uuids.one, uuids.group, ctxt=object())
        self.assertEqual(7, len(self.asked))

    def test_one_of_no_group(self):
        """nova need not look for its group; for that of a request it does."""
        self.assertIsNone(self.ask(uuids.alone, None, is_grouped=False))
        self.assertEqual([], self.asked)
        self.ask(uuids.alone, None, ctxt=object(), is_grouped=False)
        self.ask(uuids.left, uuids.group, is_grouped=False)
        self.assertEqual([uuids.alone, uuids.left], self.asked)

    def test_the_cell_is_known(self):
        """nova-conductor looks for the cell of the server, and of no other."""
        cell = objects.CellMapping(uuid=uuids.cell)
        mapped = objects.InstanceMapping
        not_found = nova_exception.InstanceMappingNotFound(uuid=uuids.one)
        asked = mock.Mock(side_effect=not_found)
        name = '_get_by_instance_uuid_from_db'
        self.enterContext(mock.patch.object(mapped, name, asked))
        find = mapped.get_by_instance_uuid
        with self.reader.keeping(CCTXT, uuids.one, cell):
            found = mapped.get_by_instance_uuid(CCTXT, uuids.one)
            for ask, *asked in (
                (mapped.get_by_instance_uuid, CCTXT, uuids.two),
                # A request of nova's in the same process.
                (mapped.get_by_instance_uuid, object(), uuids.one),
                (find, CCTXT, uuids.one),
            ):
                self.assertRaises(
                    nova_exception.InstanceMappingNotFound, ask, *asked
                )
        self.assertEqual(cell, found.cell_mapping)
        self.assertEqual(find, mapped.get_by_instance_uuid)
