# SPDX-License-Identifier: Apache-2.0

"""What nova-api refuses is said, and what is said to help, helps."""

from unittest import mock

from nova.tests.functional.api import client
from nova.virt import fake

from tests.functional import explain
from tests.functional import test_survive


class AdmissionTestCase(test_survive.SurviveTestCase):
    weights = {'host1': 300, 'host2': 200, 'host3': 100}

    def assertMoveRefused(self, server, **action):
        self.assertRaises(
            client.OpenStackApiException,
            self.admin_api.post_server_action,
            server['id'],
            action,
        )

    def find_stuck(self, host):
        """Return the server that survive names, and what would help."""
        [failure] = self.survive('--host', host)['failures']
        [stuck] = failure['without_place']
        self.assertEqual('state', stuck['cause'])
        return stuck['server'], stuck['would_help']

    def assertEvacuated(self, server, expected):
        self.evacuate(server['id'])
        self._wait_for_migration_status(server, ['done'])
        self.wait_until_idle(server)
        self.assertEqual(expected, self.host_of(server))


class NeverTestCase(AdmissionTestCase):
    def test_a_vtpm(self):
        """nova-api evacuates none, and a host that has one is not safe."""
        server = self.boot(az='nova:host1')
        self.boot(az='nova:host2')
        self.set_image(
            server['id'], hw_tpm_version='2.0', hw_tpm_model='tpm-crb'
        )
        for operation, participle in (
            ('evacuate', 'evacuated'),
            ('live-migrate', 'live-migrated'),
        ):
            answer = explain.of_server(server, operation)
            self.assertEqual(3, answer.status)
            end = answer.document['answer']['end']
            self.assertEqual(
                ('nova-api', f'never {participle}'),
                (end['stage'], end['cause']),
            )
            self.assertIn('vTPM', end['reason'])
        # It is stopped, and moved.
        answer = explain.of_server(server, 'migrate')
        self.assertEqual(
            (0, ['host2', 'host3']), (answer.status, answer.order)
        )
        live = {'host': None, 'block_migration': 'auto'}
        self.assertMoveRefused(server, **{'os-migrateLive': live})
        document = self.assertFailure(
            'host1', stuck=[('never evacuated', '')], moves=[]
        )
        self.assertEqual(
            '1 of 2 hosts can fail, one at a time; 1 cannot. 1 server has its '
            'root disk on a host that failed: unless disks are shared, it '
            'comes back from its image. nova never evacuates 1 server, in '
            'any state.',
            document['answer']['sentence'],
        )


class StateTestCase(AdmissionTestCase):
    def test_a_stopped_server(self):
        """nova-api does not live-migrate it; its hosts are named."""
        server = self.boot_stopped(az='nova:host1')
        live = {'host': None, 'block_migration': 'auto'}
        self.assertMoveRefused(server, **{'os-migrateLive': live})
        answer = explain.of_server(server, 'live-migrate')
        self.assertEqual(
            (3, ['host2', 'host3']), (answer.status, answer.order)
        )
        found = answer.document['answer']
        self.assertEqual(
            (False, 'state', None),
            (found['finds_host'], found['cause'], found['best']),
        )
        self.assertEqual(
            'nova-api refuses to live-migrate it: its vm_state is stopped. '
            'First, bring it into another state. Then 2 of 3 hosts can take '
            'it. The scheduler prefers host2, then host3. Without '
            'HostNameWeigher it would be host3. 1 is excluded by the request.',
            found['sentence'],
        )
        for operation in ('migrate', 'evacuate'):
            answer = explain.of_server(server, operation)
            self.assertEqual(
                (0, ''), (answer.status, answer.document['answer']['refusal'])
            )

    def test_a_resize_that_waits(self):
        """It is confirmed by its source, and evacuated then."""
        server = self.boot(az='nova:host1')
        self.act(
            server, 'resize', 'VERIFY_RESIZE', flavorRef=self.flavor(vcpu=2)
        )
        self.assertEqual('host2', self.host_of(server))
        uuid, helps = self.find_stuck('host2')
        self.assertEqual(server['id'], uuid)
        self.assertTrue(helps.startswith('confirm its resize'), helps)
        self.assertNotIn('set its state', helps)
        self.lose('host2')
        self.assertMoveRefused(server, evacuate={})
        self.act(server, 'confirmResize', 'ACTIVE')
        self.assertEvacuated(server, 'host1')

    def test_paused_and_shelved_servers(self):
        """Their state is set; of a shelved one the base image comes back."""
        self.flags(shelved_offload_time=-1)
        images, spawn = {}, fake.FakeDriver.spawn

        def note_image(driver, ctxt, instance, image_meta, *args, **kwargs):
            images[instance.uuid] = image_meta.id
            return spawn(driver, ctxt, instance, image_meta, *args, **kwargs)

        for host, to, action, status, said in (
            ('host1', 'host2', 'pause', 'PAUSED', 'set its state to active'),
            ('host2', 'host3', 'shelve', 'SHELVED',
             'without what was shelved'),
        ):  # fmt: skip
            server = self.boot(az=f'nova:{host}')
            self.act(server, action, status)
            uuid, helps = self.find_stuck(host)
            self.assertEqual(server['id'], uuid)
            self.assertIn(said, helps)
            self.lose(host)
            self.assertMoveRefused(server, evacuate={})
            self.reset_state(server, 'active')
            with mock.patch.object(fake.FakeDriver, 'spawn', note_image):
                self.assertEvacuated(server, to)
            self.assertEqual(server['image']['id'], images[server['id']])
            # Away with it, for the next.
            self._delete_server(server)
