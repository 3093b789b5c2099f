# SPDX-License-Identifier: Apache-2.0

"""Corners of explain that were wrong once, or that only one test sees."""

import threading
import time

import fixtures
from nova import context as nova_context
from nova import objects
from oslo_db import exception as db_exception
import yaml

from tests.functional import base
from tests.functional import explain

TRAIT = 'CUSTOM_LICENSED_WINDOWS'


class AnswersTestCase(base.CloudTestCase):
    weights = {'host1': 100, 'host2': 50, 'host3': 10}
    host_filters = ('IsolatedAggregatesFilter',)
    options = explain.OPTIONS

    def explain(self, *args):
        return explain.run(*args, '-f', 'json')

    def line(self, answer, constraint):
        [found] = [r for r in answer.rows if r['constraint'] == constraint]
        return found

    def test_one_after_the_other(self):
        self.the_weights_of_the_order()
        self.table_of_chosen_columns()
        self.a_trait_that_placement_does_not_know()
        self.every_format_of_every_kind_of_request()
        self.a_reservation_of_a_project()

    def test_instances_of_one_request_are_members_of_the_group(self):
        self.set_service('host3', forced_down=True)
        group = self.create_group()
        args = ('--flavor', self.flavor(), '--server-group', group)
        answer = self.explain(*args, '--num-instances', '2')
        self.assertEqual(0, answer.status, answer.out)
        answer = self.explain(*args, '--num-instances', '3')
        self.assertEqual(3, answer.status)
        self.assertIn(
            'Only 2 of 3 instances find a host, and nova then creates none.',
            answer.sentence,
        )
        text = explain.run(*args, '--num-instances', '3').out
        self.assertIn('No host for every instance: 2 of 3 hosts', text)

    def test_a_scheduler_that_failed_several_instances(self):
        """nova keeps what it picked for them until a host's next report."""
        self.set_service('host3', forced_down=True)
        group = self.create_group()

        manager = self.scheduler_service.manager.host_manager

        def report(until):
            """Report until what the scheduler knows of host1 is so."""
            for _ in range(600):
                for compute in self.computes.values():
                    compute.manager._sync_scheduler_instance_info(
                        nova_context.get_admin_context()
                    )
                known = manager._instance_info.get('host1')
                if known and until(known):
                    return
                time.sleep(0.1)
            self.fail('the scheduler does not hear of the instances')

        # What it was told is what it knew.
        report(lambda known: known['updated'])
        flavor, hints = self.flavor(), {'group': group}
        request = self._build_server(flavor_id=flavor, networks='none')
        self.api.post_server(
            {
                'server': {**request, 'min_count': 3},
                'os:scheduler_hints': hints,
            }
        )
        self.wait_for_errors(3)
        args = ('--flavor', flavor, '--server-group', group)
        self.assertNoValidHost(flavor=flavor, hints=hints)
        self.assertEqual(2, len(self.explain(*args).order))
        report(lambda known: not known['instances'])
        self.assertBootsOn('host1', flavor=flavor, hints=hints)

    def test_the_filter_that_forbade_an_aggregate_says_why(self):
        """Not its traits: only one of two is missing, or none counts."""
        self.isolate('windows', ['host1'], TRAIT, 'HW_CPU_X86_AVX')
        self.aggregate(
            'gpu',
            ['host2'],
            metadata={'reservation:gpu': 'true', 'trait:X': 'forbidden'},
        )
        flavor = self.flavor(specs={'trait:HW_CPU_X86_AVX': 'required'})
        answer = self.explain('--flavor', flavor)
        self.assertEqual(
            {
                'aggregate windows is isolated and the request does not '
                f'require {TRAIT}',
                'aggregate gpu is reserved by reservation:gpu=true and the '
                'request has no key with that prefix',
            },
            {
                one['detail']
                for row in answer.rows
                for reason in row['reasons']
                for one in reason['details']
            },
        )
        for name, kind in (
            ('isolate_aggregates of nova_ext_sched', 'are isolated'),
            ('reserved_aggregates of nova_ext_sched', 'are reserved'),
        ):
            [reason] = self.line(answer, name)['reasons']
            self.assertEqual(kind, reason['reason'])

    def test_what_frees_hosts(self):
        self.isolate('windows', ['host1', 'host2'], TRAIT)
        self.set_service('host3', status='disabled')
        answer = self.explain('--flavor', self.flavor())
        self.assertFreed(answer, isolation=2, **{'disabled service': 1})
        # One cause at both stages.
        self.assertEqual(
            2, self.line(answer, 'IsolatedAggregatesFilter')['alone']
        )
        # No flavor of this size fits anywhere, whatever is lifted.
        large = self._create_flavor(vcpu=1, memory_mb=99999, disk=0)
        self.assertFreed(self.explain('--flavor', large))
        # Two causes of one host.
        self.add_host('windows', 'host3')
        answer = self.explain('--flavor', self.flavor())
        self.assertFreed(answer, isolation=2)
        for host in ('host1', 'host2'):
            self.set_service(host, status='disabled')
        self.assertFreed(self.explain('--flavor', self.flavor()))

    def assertFreed(self, answer, **expected):
        """Check how many hosts are freed by what is lifted, the most first."""
        self.assertEqual(
            [
                {'cause': cause, 'hosts': hosts}
                for cause, hosts in expected.items()
            ],
            answer.document['answer']['freed'],
        )

    def a_trait_that_placement_does_not_know(self):
        flavor = self.flavor(specs={'trait:CUSTOM_UNHEARD_OF': 'required'})
        answer = self.explain('--flavor', flavor)
        self.assertIn(
            '0 of 3 hosts can take it. '
            '3 lack the trait CUSTOM_UNHEARD_OF, which '
            'placement does not know.',
            answer.sentence,
        )
        self._create_trait('CUSTOM_UNHEARD_OF')
        answer = self.explain('--flavor', flavor)
        self.assertIn('CUSTOM_UNHEARD_OF.', answer.sentence)

    def a_reservation_of_a_project(self):
        self.aggregate(
            'gpu',
            ['host2'],
            metadata={'reservation:gpu': 'true', 'filter_tenant_id': 'abc'},
        )
        flavor = self.flavor(specs={'reservation:gpu': 'true'})
        answer = self.explain('--flavor', flavor)
        self.assertEqual(3, answer.status)
        end = answer.document['answer']['end']
        self.assertEqual(
            'no aggregate that a request without a project may use has the '
            'metadata key reservation:gpu',
            end['reason'],
        )
        self.assertEqual(
            'a request without a project may not use reservation:gpu: '
            'aggregate gpu has filter_tenant_id=abc',
            end['detail'],
        )
        self.assertEqual(
            [
                'No project was given (--project), and the reservation '
                'depends on it: aggregate gpu has filter_tenant_id=abc'
            ],
            answer.document['remarks'],
        )
        answer = self.explain('--flavor', flavor, '--project', 'abc')
        self.assertEqual(['host2'], answer.order)
        self.assertEqual([], answer.document['remarks'])

    def test_servers_that_never_landed(self):
        self.conductor_never_got_it()
        for host in self.weights:
            self.set_service(host, forced_down=True)
        self.its_fault_could_not_be_stored()
        self.a_host_is_left_now()

    def a_host_is_left_now(self):
        server = self.assertNoValidHost(flavor=self.flavor())
        args = ('--server', server['id'])
        self.assertEqual([], self.explain(*args).document['remarks'])
        self.set_service('host2', forced_down=False)
        answer = self.explain(*args)
        self.assertEqual(['host2'], answer.order)
        [remark] = answer.document['remarks']
        self.assertIn('"host"', remark)
        self.assertIn('the cloud has changed since', remark)

    def create(self):
        """Create a server of which nova notes no end; return its UUID."""
        return self.api.post_server(
            {'server': self._build_server(networks='none', name='web')}
        )['id']

    def assertInBuild(self, server):
        self.assertEqual('BUILD', self.api.get_server(server)['status'])
        answer = self.explain('--server', server)
        self.assertEqual('web', answer.document['request']['server_name'])
        [remark] = answer.document['remarks']
        self.assertIn('The server is in BUILD for 0 minutes: nova ', remark)
        self.assertIn('delete the server and create it anew', remark)
        return answer

    def conductor_never_got_it(self):
        with fixtures.MonkeyPatch(
            'nova.conductor.api.ComputeTaskAPI.schedule_and_build_instances',
            lambda *_, **__: None,
        ):
            server = self.create()
        self.assertEqual(0, self.assertInBuild(server).status)

    def its_fault_could_not_be_stored(self):
        """As nova's tables do where a fault has four bytes in a character."""
        failed = threading.Event()

        def fail(*_):
            failed.set()
            raise db_exception.DBError

        with fixtures.MonkeyPatch(
            'nova.conductor.manager.ComputeTaskManager.'
            '_create_instance_action_for_cell0',
            fail,
        ):
            server = self.create()
            self.assertTrue(failed.wait(30))
        self.assertEqual(3, self.assertInBuild(server).status)

    def every_format_of_every_kind_of_request(self):
        flavor = self.flavor(specs={'hw:cpu_policy': 'shared'})
        group = self.create_group()
        server = self.boot(
            flavor=flavor, hints={'group': group, 'rack': ['1', '2']}
        )['id']
        new = ('--flavor', flavor)
        for args in (
            new,
            (*new, '--image', self.image(), '--boot-from-volume'),
            (*new, '--image-property', 'hw_vif_model=virtio', '--host=host1'),
            (*new, '--availability-zone', 'nova', '--num-instances', '2'),
            (*new, '--availability-zone', 'nova:host2:host2', '--hosts'),
            (*new, '--server-group', group, '--project', 'p', '--all'),
            (*new, '--hint', 'rack=1', '--hint', 'rack=2'),
            (*new, '--destination', 'host2'),
            ('--server', server),
            ('--server', server, '--operation', 'migrate'),
            ('--server', server, '--operation', 'resize', *new),
        ):
            answers = {
                name: explain.run(*args, '-f', name)
                for name in ('json', 'yaml', 'table', 'value', 'csv')
            }
            for name, answer in answers.items():
                self.assertEqual(0, answer.status, (args, name, answer))
            document = answers['json'].document
            loaded = yaml.safe_load(answers['yaml'].out)
            for one in (document, loaded):
                del one['time']
            self.assertEqual(document, loaded)

    def the_weights_of_the_order(self):
        json_ = self.explain('--flavor', self.flavor()).document
        [weigher] = json_['order'][0]['weights']
        self.assertEqual(
            [one['weight'] for one in json_['order']],
            [one['weights'][weigher] for one in json_['order']],
        )

    def table_of_chosen_columns(self):
        answer = explain.run(
            '--flavor', self.flavor(), '--all', '-c', 'Constraint', '-c',
            'Left', '-f', 'value',
        )  # fmt: skip
        self.assertIn('\nComputeFilter 3\n', answer.out)
        self.assertNotIn('None', answer.out)
        self.assertEqual(
            '3 of 3 hosts can take it. The scheduler prefers host1, then '
            'host2, host3; it may\n  be host2 without HostNameWeigher.\n',
            answer.err,
        )

    def test_a_database_that_is_down(self):
        server = self.boot()
        for engine, table, expected in (
            (self.api_engine(), 'request_specs', '[api_database] connection'),
            (self.cell_engine(), 'instances', 'the database of cell cell1'),
        ):
            with base.table_away(engine, table):
                answer = self.explain('--server', server['id'])
            self.assertEqual(1, answer.status, answer)
            self.assertIn(expected, answer.err)
            self.assertNotIn('SELECT', answer.err)
            self.assertEqual(1, answer.err.count('\n'))


class PinnedCpusTestCase(base.CloudTestCase):
    """nova asks with PCPU, then with VCPU; a host passes with either."""

    weights = {'host1': 100, 'host2': 50, 'host3': 10}

    def setUp(self):
        super().setUp()
        for host, resource in (('host1', 'PCPU'), ('host3', None)):
            uuid = self._get_provider_uuid_by_host(host)
            body = self.placement.get(
                f'/resource_providers/{uuid}/inventories'
            ).body
            vcpu = body['inventories'].pop('VCPU')
            if resource:
                body['inventories'][resource] = vcpu
            answer = self.placement.put(
                f'/resource_providers/{uuid}/inventories', body
            )
            self.assertEqual(200, answer.status, answer.body)
        self.flavor_id = self.flavor(specs={'hw:cpu_policy': 'dedicated'})

    def refused(self):
        found = explain.run('--flavor', self.flavor_id, '-f', 'json')
        return {
            host['host']: [
                found.rows[one['constraint']]['constraint']
                for one in host['verdicts']
                if found.rows[one['constraint']]['stage'] == 'placement'
                and one['verdict'] == 'refused'
            ]
            for host in found.document['hosts']
        }

    def test_forms(self):
        whole = 'query as a whole'
        self.assertEqual(
            {'host1': [], 'host2': [], 'host3': [whole]}, self.refused()
        )
        # Without the second form.
        self.flags(disable_fallback_pcpu_query=True, group='workarounds')
        pcpu = 'resources=PCPU:1'
        self.assertEqual(
            {'host1': [], 'host2': [pcpu], 'host3': [pcpu]}, self.refused()
        )


class OperationsTestCase(base.CloudTestCase):
    weights = {'host1': 100, 'host2': 50}

    def explain(self, server, operation, *args):
        return explain.run(
            '--server', server['id'], '--operation', operation, *args,
            '-f', 'json',
        )  # fmt: skip

    def test_flavors(self):
        self.server = self.boot()
        self.a_resize_may_stay()
        self.the_flavor_of_a_resize()
        self.the_flavor_after_a_resize()

    def a_resize_may_stay(self):
        server = self.server
        flavor = self._create_flavor(vcpu=2, memory_mb=128, disk=0)
        for allowed, expected in (
            (True, ['host1', 'host2']),
            (False, ['host2']),
        ):
            self.flags(allow_resize_to_same_host=allowed)
            answer = self.explain(server, 'resize', '--flavor', flavor)
            self.assertEqual(expected, answer.order)
            # A migration never stays with this driver.
            answer = self.explain(server, 'migrate')
            self.assertEqual(['host2'], answer.order)

    def the_flavor_of_a_resize(self):
        server = self.server
        flavor = self._create_flavor(
            name='large', vcpu=1, memory_mb=99999, disk=0
        )
        answer = self.explain(server, 'resize', '--flavor', flavor)
        self.assertEqual(3, answer.status)
        self.assertEqual('large', answer.document['request']['flavor']['name'])

    def the_flavor_after_a_resize(self):
        """A migration has the server's, whatever the request says."""
        server = self.server
        ctxt = nova_context.get_admin_context()
        spec = self.stored_spec(server)
        spec.flavor = objects.Flavor.get_by_flavor_id(
            ctxt, self._create_flavor(vcpu=1, memory_mb=99999, disk=0)
        )
        spec.save()
        answer = self.explain(server, 'migrate')
        self.assertEqual(['host2'], answer.order)
        self.assertEqual(64, answer.document['request']['flavor']['memory_mb'])

    def test_conductor_checks_the_image_before_the_group(self):
        group = self.create_group()
        server = self.boot(hints={'group': group})
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.scheduler.utils._SUPPORTS_ANTI_AFFINITY', False
            )
        )
        for value, expected in (
            ('trait:CUSTOM_ABSENT=required', 'image traits'),
            ('hw_vif_model=virtio', 'server group'),
        ):
            answer = self.explain(server, 'rebuild', '--image-property', value)
            self.assertEqual(
                expected, answer.document['answer']['end']['name']
            )
