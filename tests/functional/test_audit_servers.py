# SPDX-License-Identifier: Apache-2.0

"""Which servers the audit judges, by which request, and what it cannot."""

from nova import context as nova_context
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models as api_models
import sqlalchemy as sa

from tests.functional import audits


def change_spec(server, **values):
    """Change the stored request spec behind nova's back, or delete it."""
    specs = api_models.RequestSpec
    statement = (
        sa.update(specs).values(**values) if values else sa.delete(specs)
    )
    engine = api_db.context_manager.writer.get_engine()
    with engine.begin() as connection:
        connection.execute(
            statement.where(specs.instance_uuid == server['id'])
        )


class JudgedServersTestCase(audits.AuditTestCase):
    def setUp(self):
        super().setUp()
        self.aggregate('windows', list(self.weights))

    def isolate_all(self):
        self.set_metadata('windows', {'trait:CUSTOM_WINDOWS': 'required'})

    def test_servers(self):
        self.flavor_after_a_resize()
        self.keys_of_the_image()
        self.servers_that_stand_nowhere()
        self.image_after_a_refused_rebuild()

    def clear(self):
        """Delete the servers, and let none be refused."""
        self.set_metadata(
            'windows',
            {
                'trait:CUSTOM_WINDOWS': None,
                'ssd': None,
                'reservation:a': None,
            },
        )
        for server in self.admin_api.get_servers():
            self._delete_server(server)

    def servers_that_stand_nowhere(self):
        self.flags(shelved_offload_time=0)
        self._create_trait('CUSTOM_ELSEWHERE')
        gone = self.boot()
        self._delete_server(gone)
        shelved = self.boot()
        self.api.post_server_action(shelved['id'], {'shelve': {}})
        self._wait_for_state_change(shelved, 'SHELVED_OFFLOADED')
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
        self.api.post_server_action(
            server['id'],
            {'resize': {'flavorRef': self.flavor(ssd='false')}},
        )
        self._wait_for_state_change(server, 'VERIFY_RESIZE')
        self.set_metadata('windows', {'ssd': 'true'})
        finding = (
            server['id'],
            self.host_of(server),
            'aggregate-instance-type',
        )
        self.assertEqual([finding], self.found())
        self.api.post_server_action(server['id'], {'confirmResize': None})
        self._wait_for_state_change(server, 'ACTIVE')
        self.assertEqual([finding], self.found())
        self.clear()

    def image_after_a_refused_rebuild(self):
        """The request spec has the image that the server never got."""
        for host in self.weights:
            self.add_traits(host, 'CUSTOM_WINDOWS')
        self.isolate_all()
        licensed = self.image(props={'trait:CUSTOM_WINDOWS': 'required'})
        server = self.boot(image=licensed)
        self.api.post_server_action(
            server['id'], {'rebuild': {'imageRef': self.image()}}
        )
        self._wait_for_state_change(server, 'ERROR')
        spec = objects.RequestSpec.get_by_instance_uuid(
            nova_context.get_admin_context(), server['id']
        )
        self.assertNotEqual(licensed, spec.image.id)
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

    def keys_of_the_image(self):
        self.flags(member_sources=['flavor', 'image'], group='nova_ext_sched')
        self.set_metadata('windows', {'reservation:a': 'true'})
        # Its group is deleted, which makes no difference.
        group = self.api.post_server_groups(
            {'name': 'test', 'policy': 'anti-affinity'}
        )['id']
        image = self.image(props={'reservation:a': 'true'})
        self.boot(image=image, hints={'group': group})
        self.api.delete_server_group(group)
        self.assertEqual([], self.found())
        self.clear()

    def test_request_specs_that_are_broken_or_gone(self):
        servers = [self.boot() for _ in range(3)]
        self.broken_request_specs(servers)
        server, other = servers[1:]
        change_spec(server)
        self.isolate_all()
        status, rows = self.audit()
        self.assertEqual(1, status)
        rows = {row['server']: row for row in rows}
        self.assertEqual(
            (
                'not-judged',
                'nova has no request spec of the server, and nova cannot '
                'move it either',
            ),
            (rows[server['id']]['policy'], rows[server['id']]['reason']),
        )
        self.assertEqual('isolation', rows[other['id']]['policy'])

    def broken_request_specs(self, servers):
        change_spec(servers[0], spec='{"nova_object.name": "Requ')
        change_spec(servers[1], spec='[]')
        status, rows = self.audit()
        self.assertEqual(1, status)
        self.assertEqual(
            {servers[0]['id'], servers[1]['id']},
            {row['server'] for row in rows},
        )
        for row in rows:
            self.assertEqual('not-judged', row['policy'])
            self.assertStartsWith(
                row['reason'],
                'its request spec cannot be read, and nova cannot move it '
                'either: ',
            )

    def assertStartsWith(self, text, prefix):
        self.assertEqual(prefix, text[: len(prefix)])
