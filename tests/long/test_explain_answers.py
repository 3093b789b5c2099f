# SPDX-License-Identifier: Apache-2.0

"""Corners of explain that were wrong once, or that only one test sees."""

import threading

import fixtures
from nova import context
from nova import exception
from nova import objects
from nova.scheduler import utils

from tests.functional import base
from tests.functional import explain


class AnswersTestCase(base.CloudTestCase):
    weights = {'host1': 100, 'host2': 50, 'host3': 10}

    def test_new_servers(self):
        self.a_trait_that_placement_does_not_know()
        self.instances_of_one_request_are_members_of_the_group()

    def instances_of_one_request_are_members_of_the_group(self):
        self.set_service('host3', forced_down=True)
        args = ('--flavor', self.flavor())
        args += ('--server-group', self.create_group())
        answer = explain.read(*args, '--num-instances', '2')
        self.assertEqual(0, answer.status, answer.out)
        answer = explain.read(*args, '--num-instances', '3')
        self.assertEqual(3, answer.status)
        self.assertIn(
            'Only 2 of 3 instances find a host, so nova creates none.',
            answer.sentence,
        )

    def a_trait_that_placement_does_not_know(self):
        flavor = self.flavor(specs={'trait:CUSTOM_UNHEARD_OF': 'required'})
        answer = explain.read('--flavor', flavor)
        self.assertIn(
            '0 of 3 hosts can take it. '
            '3 lack the trait CUSTOM_UNHEARD_OF, which '
            'placement does not know.',
            answer.sentence,
        )
        self._create_trait('CUSTOM_UNHEARD_OF')
        answer = explain.read('--flavor', flavor)
        self.assertIn('CUSTOM_UNHEARD_OF.', answer.sentence)

    def test_servers_that_never_landed(self):
        self.conductor_never_got_it()
        for host in self.weights:
            self.set_service(host, forced_down=True)
        self.a_host_is_left_now()

    def a_host_is_left_now(self):
        server = self.assertNoValidHost(flavor=self.flavor())
        args = ('--server', server['id'])
        self.assertEqual([], explain.read(*args).document['remarks'])
        self.set_service('host2', forced_down=False)
        answer = explain.read(*args)
        self.assertEqual(['host2'], answer.order)
        [remark] = answer.document['remarks']
        self.assertIn('"host"', remark)
        self.assertIn('the cloud has changed since', remark)
        self.assertIn("UTC nova recorded 'No valid host was found. ", remark)

    def conductor_never_got_it(self):
        """nova notes no end of it."""
        with fixtures.MonkeyPatch(
            'nova.conductor.api.ComputeTaskAPI.schedule_and_build_instances',
            lambda *_, **__: None,
        ):
            server = self.post(name='web')
        answer = explain.read('--server', server['id'])
        self.assertEqual(0, answer.status)
        self.assertEqual('web', answer.document['request']['server_name'])
        [remark] = answer.document['remarks']
        self.assertIn('The server is in BUILD for 0 minutes: nova ', remark)
        self.assertIn('delete the server and create it anew', remark)

    def test_builds_that_failed(self):
        """nova found hosts, and the scheduler is not to blame."""
        self.every_host_failed()
        self.one_host_ended_it()
        self.nova_compute_started_anew()
        self.it_failed_after_it_ran()

    def fail_builds(self, problem):
        def spawn(*_, **__):
            raise problem

        return fixtures.MonkeyPatch(
            'nova.virt.fake.MediumFakeDriver.spawn', spawn
        )

    def remark(self, server):
        """Return the only remark; every host can take the server."""
        answer = explain.read('--server', server['id'])
        self.assertEqual(['host1', 'host2', 'host3'], answer.order)
        [remark] = answer.document['remarks']
        self.assertNotIn('found no host', remark)
        return remark

    def every_host_failed(self):
        with self.fail_builds(OSError('no space left on the image store')):
            server = self.boot(expected_state='ERROR')
        self.assertRegex(
            self.remark(server),
            r'^The server is in ERROR\. nova chose a host, and the build '
            r'failed there \(host1, host2, host3\): see the nova-compute '
            r"log\. At [\d-]+ [\d:]+ UTC nova recorded 'Exceeded "
            r'maximum number of retries\. .*no space left on the image store',
        )

    def one_host_ended_it(self):
        problem = exception.BuildAbortException(
            instance_uuid='x', reason='the volume is in error'
        )
        with self.fail_builds(problem):
            server = self.boot(expected_state='ERROR')
        self.assertRegex(
            self.remark(server), r'failed there \(host1\).* volume is in error'
        )

    def nova_compute_started_anew(self):
        begun, ends = threading.Event(), threading.Event()
        self.addCleanup(ends.set)

        def spawn(*_, **__):
            begun.set()
            ends.wait(60)
            raise OSError('gone')

        with fixtures.MonkeyPatch(
            'nova.virt.fake.MediumFakeDriver.spawn', spawn
        ):
            server = self.post()
            self.assertTrue(begun.wait(60))
            with self.cell() as cctxt:
                instance = objects.Instance.get_by_uuid(cctxt, server['id'])
                self.computes['host1'].manager._init_instance(cctxt, instance)
        self.assertIn(
            'no fault for the build that nova-compute began on host1.',
            self.remark(server),
        )

    def it_failed_after_it_ran(self):
        server = self.boot()
        self.reset_state(server, 'error')
        answer = explain.read('--server', server['id'])
        self.assertEqual([], answer.document['remarks'])

    def test_of_a_server(self):
        server = self.boot(hints={'group': self.create_group()})
        self.a_database_that_is_down(server)
        self.the_flavor_after_a_resize(server)
        self.conductor_checks_the_image_before_the_group(server)

    def a_database_that_is_down(self, server):
        for engine, table, expected in (
            (self.api_engine(), 'request_specs', '[api_database] connection'),
            (self.cell_engine(), 'instances', 'the database of cell cell1'),
        ):
            with base.table_away(engine, table):
                answer = explain.read('--server', server['id'])
            self.assertEqual(1, answer.status, answer)
            self.assertIn(expected, answer.err)
            self.assertNotIn('SELECT', answer.err)
            self.assertEqual(1, answer.err.count('\n'))

    def the_flavor_after_a_resize(self, server):
        """A migration has the server's, whatever the request says."""
        spec = self.stored_spec(server)
        spec.flavor = objects.Flavor.get_by_flavor_id(
            context.get_admin_context(), self.flavor(memory_mb=99999)
        )
        spec.save()
        answer = explain.of_server(server, 'migrate')
        self.assertEqual(['host2', 'host3'], answer.order)
        self.assertEqual(64, answer.document['request']['flavor']['memory_mb'])

    def conductor_checks_the_image_before_the_group(self, server):
        self.patch(utils, '_SUPPORTS_ANTI_AFFINITY', False)
        for value, expected in (
            ('trait:CUSTOM_ABSENT=required', 'image traits'),
            ('hw_vif_model=virtio', 'server group'),
        ):
            changed = ('--image-property', value)
            answer = explain.of_server(server, 'rebuild', *changed)
            self.assertEqual(
                expected, answer.document['answer']['end']['name']
            )
