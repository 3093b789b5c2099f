# SPDX-License-Identifier: Apache-2.0

"""Which servers the audit judges, by which request, and what it cannot."""

from nova.db.api import models as api_models
import sqlalchemy as sa

from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from tests.functional import audits
from tests.functional import base

# nova.objects.RequestSpec._from_db_object leaves them out or empties them.
NOT_STORED = set(
    'id retry ignore_hosts requested_destination requested_resources '
    'network_metadata request_level_params requested_networks'.split()
)


def describe(spec, field):
    """Return what a request spec has in a field, and whether it has it."""
    value = getattr(spec, field) if field in spec else None
    if hasattr(value, 'obj_to_primitive'):
        value.obj_reset_changes(recursive=True)
        value = value.obj_to_primitive()
    return field, field in spec, value


class JudgedServersTestCase(audits.AuditTestCase):
    def setUp(self):
        super().setUp()
        self.aggregate('windows', list(self.weights))

    def isolate_all(self):
        self.set_metadata('windows', {'trait:CUSTOM_WINDOWS': 'required'})

    def test_servers(self):
        self.request_specs()
        self.flavor_after_a_resize()
        self.keys_of_the_image()
        self.servers_that_stand_nowhere()
        self.image_after_a_refused_rebuild()

    def clear(self):
        """Delete the servers, and let none be refused."""
        self.set_metadata(
            'windows',
            {'trait:CUSTOM_WINDOWS': None, 'ssd': None, 'reservation:a': None},
        )
        for server in self.admin_api.get_servers():
            self._delete_server(server)

    def servers_that_stand_nowhere(self):
        self.flags(shelved_offload_time=0)
        self._create_trait('CUSTOM_ELSEWHERE')
        shelved = self.boot()
        self.act(shelved, 'shelve', 'SHELVED_OFFLOADED')
        self.assertNoValidHost(
            flavor=self.flavor(specs={'trait:CUSTOM_ELSEWHERE': 'required'})
        )
        server, deleted = self.boot(), self.boot()
        self.flags(reclaim_instance_interval=3600)
        self.api.delete_server(deleted['id'])
        self._wait_for_state_change(deleted, 'SOFT_DELETED')
        self.isolate_all()
        self.assertEqual([(server['id'], 'host1', 'isolation')], self.found())
        self.flags(reclaim_instance_interval=0)
        self.clear()

    def flavor_after_a_resize(self):
        """The flavor of the boot would do, that of the resize would not."""
        self.set_metadata('windows', {'ssd': 'false'})
        server = self.boot()
        self.act(
            server,
            'resize',
            'VERIFY_RESIZE',
            flavorRef=self.flavor(ssd='false'),
        )
        self.set_metadata('windows', {'ssd': 'true'})
        finding = (
            server['id'],
            self.host_of(server),
            'aggregate-instance-type',
        )
        self.assertEqual([finding], self.found())
        self.act(server, 'confirmResize', 'ACTIVE')
        self.assertEqual([finding], self.found())
        self.clear()

    def image_after_a_refused_rebuild(self):
        """The request spec has the image that the server never got."""
        for host in self.weights:
            self.add_traits(host, 'CUSTOM_WINDOWS')
        self.isolate_all()
        licensed = self.image(props={'trait:CUSTOM_WINDOWS': 'required'})
        server = self.boot(image=licensed)
        self.act(server, 'rebuild', 'ERROR', imageRef=self.image())
        self.assertNotEqual(licensed, self.stored_spec(server).image.id)
        self.assertEqual([], self.found())
        self.glance.delete(None, licensed)
        status, rows = self.audit()
        self.assertEqual(1, status)
        self.assertEqual('not-judged', rows[0]['policy'])
        self.assertEqual(
            f'the properties of image {licensed} cannot be read '
            f'(ImageNotFound: Image {licensed} could not be found.); Glance '
            f'takes the credentials of OS_CLOUD or other OS_* variables, '
            f'Cinder those of [cinder] in nova.conf',
            rows[0]['reason'],
        )
        with self.deleting(server, servers.Reader, 'load'):
            self.assertEqual([], self.found())

    def keys_of_the_image(self):
        self.flags(member_sources=['flavor', 'image'], group='nova_ext_sched')
        self.set_metadata('windows', {'reservation:a': 'true'})
        # Its group is deleted, which makes no difference.
        group = self.create_group()
        image = self.image(props={'reservation:a': 'true'})
        self.boot(image=image, hints={'group': group})
        self.api.delete_server_group(group)
        self.assertEqual([], self.found())
        self.clear()

    def request_specs(self):
        """In bulk they are as nova itself loads them."""
        uuids = [
            self.boot(hints={'group': self.create_group()})['id'],
            self.boot(flavor=self.flavor(ssd='true'), az='nova:host2')['id'],
        ]
        cloud = snapshot.Snapshot()
        reader = servers.Reader(cloud)
        stored = [
            one
            for cell, hosts in reader.count().items()
            for one in reader.read_on(cell, [*hosts], attrs=[])
        ]
        self.assertEqual({*uuids}, {one.uuid for one in stored})
        for one in stored:
            uuid, spec = one.uuid, reader.load(one)
            loaded = self.stored_spec({'id': uuid})
            for field in spec.fields:
                # What is not stored is of one request alone.
                if field not in NOT_STORED:
                    self.assertEqual(
                        *(describe(one, field) for one in (loaded, spec))
                    )
        self.a_request_spec_is_gone(*uuids)
        self.clear()

    def a_request_spec_is_gone(self, server, other):
        specs = api_models.RequestSpec
        with self.api_engine().begin() as connection:
            connection.execute(
                sa.delete(specs).where(specs.instance_uuid == server)
            )
        self.isolate_all()
        status, rows = self.audit('--policy', 'isolation')
        self.assertEqual(1, status)
        self.assertEqual(
            {server: 'not-judged', other: 'isolation'},
            {row['server']: row['policy'] for row in rows},
        )


class CellsTestCase(audits.AuditTestCase):
    """Servers of two cells, one of which does not answer."""

    NUMBER_OF_CELLS = 2
    started = ('host1', 'host2')
    cells = {'host2': 'cell2'}

    def setUp(self):
        super().setUp()
        self.aggregate('windows', ['host1', 'host2'])
        self.servers = {
            host: self.boot(host=host)['id'] for host in ('host1', 'host2')
        }
        self.set_metadata('windows', {'trait:CUSTOM_WINDOWS': 'required'})

    def instances_away(self, cell_name):
        """Take the table of a cell's servers away for a while."""
        return base.table_away(self.cell_engine(cell_name), 'instances')

    def finding(self, host):
        return (self.servers[host], host, 'isolation')

    def test_cells(self):
        # A disabled cell is judged too.
        mapping = self.cell_mappings['cell2']
        mapping.disabled = True
        mapping.save()
        self.assertEqual(
            sorted([self.finding('host1'), self.finding('host2')]),
            self.found(),
        )
        # One that is down is not.
        with self.instances_away('cell1'):
            status, rows = self.audit()
        self.assertEqual(1, status)
        self.assertEqual(
            [self.finding('host2')],
            [(row['server'], row['host'], row['policy']) for row in rows],
        )
