# SPDX-License-Identifier: Apache-2.0

"""explain beside a real nova and placement."""

from unittest import mock

import fixtures
from nova import exception as nova_exception
from nova.api.openstack import api_version_request
from nova.scheduler import request_filter
from nova.tests import fixtures as nova_fixtures
from oslo_utils.fixture import uuidsentinel as uuids
from placement.objects import allocation_candidate

from nova_ext_sched.cmd import capacity
from nova_ext_sched.dryrun.cloud import snapshot
from tests.functional import base
from tests.functional import explain

TRAIT = 'CUSTOM_LICENSED_WINDOWS'
UNPINS = api_version_request.APIVersionRequest('2.104')


def line(answer, constraint):
    """Return a constraint of the document."""
    [found] = [row for row in answer.rows if row['constraint'] == constraint]
    return found


def reasons(answer, host):
    """Return why each constraint refuses a host, by constraint."""
    [found] = [one for one in answer.document['hosts'] if one['host'] == host]
    return {
        answer.rows[one['constraint']]['constraint']: one['reason']
        for one in found['verdicts']
        if one['verdict'] == 'refused'
    }


class ExplainTestCase(base.CloudTestCase):
    weights = {'host1': 100, 'host2': 50, 'host3': 10}
    host_filters = ('IsolatedAggregatesFilter', 'JsonFilter')
    options = {
        'enable_isolated_aggregate_filtering': True,
        'request_filters': ['isolate_aggregates'],
    }

    def assertUsage(self, run, expected, *args):
        answer = run(*args)
        self.assertEqual((2, ''), (answer.status, answer.out), answer)
        self.assertIn(expected, answer.err)


class MatrixTestCase(ExplainTestCase):
    def test_requests(self):
        self.hosts_are_left_in_the_scheduler_s_order()
        self.each_request_filter_is_told_of()
        self.what_placement_says_in_place_of_an_answer()
        self.pinned_cpus_are_asked_for_in_two_forms()
        self.more_instances_than_fit()
        self.a_group_whose_policy_is_not_configured()
        self.what_is_named_and_not_there()
        self.a_forced_host_runs_no_filter()

    def test_faults(self):
        self.wrong_usage()
        self.the_query_s_limit()
        self.a_request_filter_ends_the_request()
        self.a_filter_that_raises_is_a_fault()
        self.a_query_that_placement_fails()
        self.a_cell_that_is_down()
        self.a_disabled_cell()

    def test_isolation(self):
        self.isolate('windows', ['host1'], TRAIT)
        self.traits_of_images_open_nothing()
        self.add_host('windows', 'host2')
        self.isolation_and_a_resource()
        self.every_constraint_says_its_word_of_a_host()

    def traits_of_images_open_nothing(self):
        self.add_traits('host2', TRAIT)
        image = self.image(props={f'trait:{TRAIT}': 'required'})
        args = ('--flavor', self.flavor(), '--image', image)
        self.assertEqual(['host1', 'host2'], explain.read(*args).order)
        with nova_fixtures.ConfPatcher(
            isolation_trait_sources=['flavor'], group='nova_ext_sched'
        ):
            answer = explain.read(*args)
        self.assertEqual(['host2'], answer.order)
        found = reasons(answer, 'host1')
        self.assertEqual(2, len(found), found)
        for reason in found.values():
            self.assertIn('not allowed in windows', reason)

    def hosts_are_left_in_the_scheduler_s_order(self):
        flavor = self.flavor()
        answer = explain.read('--flavor', flavor, '--hosts')
        self.assertEqual(0, answer.status)
        self.assertEqual(['host1', 'host2', 'host3'], answer.order)
        self.assertEqual(
            '3 of 3 hosts can take it. The scheduler prefers host1, then '
            'host2, host3. Without HostNameWeigher it would be host2.',
            answer.sentence,
        )
        self.assertEqual('', answer.err)
        self.assertEqual(
            [('host1', []), ('host2', []), ('host3', [])],
            [(h['host'], h['verdicts']) for h in answer.document['hosts']],
        )
        for args, expected in (
            (['--availability-zone', 'nova'], ['host1', 'host2', 'host3']),
            (['--availability-zone', 'nova:host2'], ['host2']),
            (['--destination', 'host2'], ['host2']),
        ):
            answer = explain.read('--flavor', flavor, *args)
            self.assertEqual(expected, answer.order)

    def each_request_filter_is_told_of(self):
        answer = explain.read('--flavor', self.flavor())
        self.assertEqual(
            [fn.__name__ for fn in request_filter.ALL_REQUEST_FILTERS],
            [
                row['constraint'].removesuffix(' of nova_ext_sched')
                for row in answer.rows
                if row['stage'] == 'request filter'
            ],
        )
        self.assertEqual(
            'root_required=!COMPUTE_STATUS_DISABLED',
            line(answer, 'compute_status_filter')['asks'],
        )

    def isolation_and_a_resource(self):
        flavor = self._create_flavor(vcpu=1, memory_mb=99999, disk=0)
        answer = explain.read('--flavor', flavor)
        self.assertEqual(3, answer.status)
        # In truth no host is large enough, whatever isolates the others.
        self.assertEqual(
            '0 of 3 hosts can take it. 3 are too small (MEMORY_MB).',
            answer.sentence,
        )
        self.assertEqual([], answer.document['answer']['freed'])
        isolation = line(answer, 'isolate_aggregates of nova_ext_sched')
        self.assertEqual(
            ('not in aggregates windows', 2, 1),
            tuple(isolation[key] for key in ('asks', 'refused', 'left')),
        )
        memory = line(answer, 'resources=MEMORY_MB:99999')
        self.assertEqual(
            (3, 0, 0), tuple(memory[k] for k in ('refused', 'alone', 'left'))
        )

    def every_constraint_says_its_word_of_a_host(self):
        self.set_service('host1', forced_down=True)
        flavor = self._create_flavor(vcpu=1, memory_mb=99999, disk=0)
        answer = explain.read(
            '--flavor',
            flavor,
            '--host',
            'host1',
            '--hint',
            'query=["<", 2, 1]',
        )
        self.assertEqual(3, answer.status)
        why = (
            'is isolated (the request is not allowed in windows: it does not '
            f'require {TRAIT})'
        )
        self.assertEqual(
            {
                'isolate_aggregates of nova_ext_sched': why,
                'resources=MEMORY_MB:99999': 'is too small (MEMORY_MB)',
                'ComputeFilter': 'is down',
                'JsonFilter': 'is refused by JsonFilter (the hint query wants '
                '\'["<", 2, 1]\' and the host has no part in it)',
                'IsolatedAggregatesFilter': why,
            },
            reasons(answer, 'host1'),
        )

    def a_request_filter_ends_the_request(self):
        def refuse(ctxt, request_spec):
            raise nova_exception.RequestFilterFailed(reason='no\nway.')

        with mock.patch.object(
            request_filter, 'ALL_REQUEST_FILTERS', [refuse]
        ):
            answer = explain.read('--flavor', self.flavor())
        self.assertEqual(3, answer.status)
        self.assertEqual(
            "refuse of tests ends the request: 'no\\nway'.", answer.sentence
        )

    def a_filter_that_raises_is_a_fault(self):
        with fixtures.MonkeyPatch(
            'nova.scheduler.filters.json_filter.JsonFilter.host_passes',
            lambda *_: 1 / 0,
        ):
            answer = explain.read('--flavor', self.flavor())
        self.assertEqual(1, answer.status)
        self.assertIn('JsonFilter: expected an answer, got ZeroD', answer.err)

    def a_forced_host_runs_no_filter(self):
        self.set_service('host3', forced_down=True)
        answer = explain.read(
            '--flavor', self.flavor(), '--availability-zone', 'nova:host3'
        )
        self.assertEqual(0, answer.status)
        self.assertIn('forces a host', line(answer, 'none')['asks'])
        self.assertEqual(
            2,
            sum(
                row['refused']
                for row in answer.rows
                if row['constraint'].startswith('in_tree=')
            ),
        )
        self.assertEqual('host3', answer.order[0])

    def what_is_named_and_not_there(self):
        self.aggregate('earth', ['host1'], zone='earth')
        self.aggregate('void', zone='void')
        flavor = self.flavor()
        zone = '--availability-zone'
        for args, expected in (
            ((zone, 'mars'), 'There is no zone with hosts mars.'),
            ((zone, 'void'), 'There is no zone with hosts void.'),
            ((zone, 'nova:host9'), 'Did you mean host1, host2 or host3?'),
            (('--destination', 'compute9'), 'There is no host compute9.'),
            (('--host', 'host'), 'Did you mean host1, host2 or host3?'),
            (('--server-group', 'nothing'), 'no server group nothing.'),
        ):
            self.assertUsage(explain.run, expected, '--flavor', flavor, *args)

        def run_capacity(*args):
            return explain.call(capacity.Capacity, 'capacity', *args)

        for host in ('host2', 'host3'):
            self.add_host('earth', host)
        # No host is outside the zones.
        for run in (explain.run, run_capacity):
            self.assertUsage(
                run,
                'There is no zone with hosts nova.',
                *('--flavor', flavor, zone, 'nova'),
            )

    def the_query_s_limit(self):
        with nova_fixtures.ConfPatcher(
            max_placement_results=1, group='scheduler'
        ):
            answer = explain.read('--flavor', self.flavor())
        self.assertEqual(0, answer.status)
        self.assertIn(
            '2 are cut off by max_placement_results (1)', answer.sentence
        )
        [query] = answer.document['query']
        self.assertIn('limit=1', query)

    def what_placement_says_in_place_of_an_answer(self):
        flavor = self.flavor(specs={'resources:CUSTOM_ABSENT': '1'})
        answer = explain.read('--flavor', flavor)
        self.assertEqual(3, answer.status)
        self.assertEqual(
            3, line(answer, 'resources=CUSTOM_ABSENT:1')['refused']
        )

    def a_query_that_placement_fails(self):
        """As with MariaDB, which takes 61 tables in a join."""

        def fail(*_, **__):
            raise RuntimeError('(1116, "Too many tables")\n[SQL: SELECT 1]')

        traits = [f'trait:CUSTOM_{number}=required' for number in range(120)]
        with mock.patch.object(
            allocation_candidate.AllocationCandidates, 'get_by_requests', fail
        ):
            answer = explain.read(
                *('--flavor', self.flavor()),
                *(f'--image-property={trait}' for trait in traits),
            )
        self.assertEqual(3, answer.status, answer)
        self.assertEqual(
            'query refused ends the request: placement answers '
            '500 The server has either erred or is incapable of performing '
            'the requested operation. (1116, "Too many tables").',
            answer.sentence,
        )

    def pinned_cpus_are_asked_for_in_two_forms(self):
        flavor = self.flavor(specs={'hw:cpu_policy': 'dedicated'})
        answer = explain.read('--flavor', flavor)
        self.assertEqual(0, answer.status)
        self.assertEqual(2, len(answer.document['query']))

    def more_instances_than_fit(self):
        flavor = self._create_flavor(vcpu=1, memory_mb=7000, disk=0)
        answer = explain.read('--flavor', flavor, '--num-instances', '3')
        self.assertEqual(0, answer.status, answer)
        answer = explain.read('--flavor', flavor, '--num-instances', '6')
        self.assertEqual(3, answer.status)
        self.assertIn('Only ', answer.sentence)
        self.assertIn(' of 6 instances find a host', answer.sentence)

    def a_group_whose_policy_is_not_configured(self):
        # As the weigher of the tests is the only one.
        group = self.create_group(policy='soft-anti-affinity')
        flavor = self.flavor()
        server = self.boot(
            flavor=flavor, hints={'group': group}, expected_state='ERROR'
        )
        self.assertIn('not supported', server['fault']['message'])
        for args in (
            ('--flavor', flavor, '--server-group', group),
            ('--server', server['id']),
        ):
            answer = explain.read(*args)
            self.assertEqual(3, answer.status)
            self.assertIn('policy is not supported', answer.sentence)

    def a_cell_that_is_down(self):
        flavor = self.flavor()
        with base.table_away(self.cell_engine(), 'compute_nodes'):
            answer = explain.read('--flavor', flavor)
        self.assertEqual(1, answer.status)
        self.assertRegex(
            answer.sentence,
            r'^The hosts of cell cell1 are not counted, because its database '
            r'does not answer: .*\. 0 of 0 hosts can take it\.$',
        )

    def a_disabled_cell(self):
        mapping = self.cell_mappings['cell1']
        mapping.disabled = True
        mapping.save()
        answer = explain.read('--flavor', self.flavor())
        self.assertEqual(3, answer.status)
        self.assertEqual(
            '0 of 3 hosts can take it. 3 are in a disabled cell.',
            answer.sentence,
        )

    def wrong_usage(self):
        """It ends with status 2, and says what was expected."""
        for args, expected in (
            ([], 'Name a request: --server SERVER for an existing server'),
            (['--flavor', 'absent'], 'There is no flavor absent.'),
            (['--server', 'absent'], 'There is no server absent.'),
            (['--server', uuids.absent], 'There is no server'),
            (['--flavor', 'm1.tiny', '--operation', 'migrate'], 'say which'),
            (['--server', 'x', '--project', 'y'],
             '--project cannot be combined with --server to boot'),
            (['--server', 'x', '--operation', 'resize'], 'what: --flavor.'),
            (['--server', 'x', '--operation', 'rebuild'], 'what: --image.'),
            (['--server', 'x', '--flavor', 'y'],
             'flavor is --operation resiz'),
            (
                [
                    *('--server', 'x', '--operation', 'migrate'),
                    *('--hint', 'a=b', '--destination', 'h'),
                ],
                '--hint cannot be combined with --server to migrate it: '
                'nova has stored its request. Only --destination can.',
            ),
            (['--recorded', 'req-x', '--hint', 'a=b'], '--hint cannot be'),
            (['--recorded', 'req-x', '--hosts'], '--hosts cannot be'),
            (['--recorded', 'req-x', '--operation', 'migrate'],
             '--operation cannot be combined with --recorded: a record'),
            (['--recorded', 'req-x', '--records', '/absent'],
             'in /absent cannot be read: No such file or directory.'),
            (['--flavor', 'm1.tiny', '--server-group', 'absent'], 'group'),
        ):  # fmt: skip
            answer = explain.read(*args)
            self.assertEqual(2, answer.status, answer)
            self.assertIn(expected, answer.err)
            self.assertEqual('', answer.out)
        for args in (
            ['--hint', 'x'],
            ['--num-instances', '0'],
            ['--server', 'x', '--recorded', 'req-x'],
            ['--host', 'x', '--hosts'],
        ):
            self.assertRaises(SystemExit, explain.read, '--flavor', 'x', *args)


class ServerTestCase(ExplainTestCase):
    def test_servers(self):
        self.server = self.boot()
        self.migrations_leave_the_source_out()
        self.a_client_that_only_reads()
        self.absent = self.assertNoValidHost(flavor=self.flavor(vcpu=1000))
        self.a_server_that_was_created_with_another()
        self.names_go_where_ids_go()
        self.rebuild()
        self.set_metadata('windows', {f'trait:{TRAIT}': None})
        self.an_evacuation_goes_where_explain_says()

    def names_go_where_ids_go(self):
        """Also of a server that is in cell0; members choose names."""
        # What looks like an ID is never a name.
        posing = self.absent['id']
        for name in ('web', 'twice', 'twice', posing):
            self.boot(name=name)
        for name in (self.absent['name'], 'web'):
            request = explain.read('--server', name).document['request']
            self.assertEqual(name, request['server_name'])
        request = explain.read('--server', posing).document['request']
        self.assertEqual(self.absent['name'], request['server_name'])
        self.assertUsage(
            explain.run, '2 servers are named twice: ', '--server', 'twice'
        )
        self.assertUsage(
            explain.run,
            'There is no server we. Did you mean web?',
            *('--server', 'we'),
        )
        answer = explain.run('--flavor', self.plain_flavor, '--project', 'x')
        self.assertEqual(1, answer.status)
        self.assertIn('Project x cannot be looked up (no cred', answer.err)
        group = self.create_group(name='apart')
        answer = explain.read(
            *('--flavor', self.plain_flavor, '--server-group', 'apart')
        )
        found = answer.document['request']['server_group']
        self.assertEqual(group, found['id'])

    def a_server_that_was_created_with_another(self):
        """nova stores how many there were; one of them moves alone."""
        self.post(flavor=self.flavor(memory_mb=5000), min_count=2)
        known = {self.server['id'], self.absent['id']}
        for server in self.api.get_servers(detail=False):
            if server['id'] not in known:
                self.created = self._wait_for_state_change(server, 'ACTIVE')
        # The other one fills the second of three hosts.
        answer = explain.of_server(self.created, 'migrate')
        self.assertEqual(0, answer.status, answer)
        self.assertEqual('host3', answer.order[0])

    def migrations_leave_the_source_out(self):
        server = self.server
        for operation in ('migrate', 'live-migrate', 'evacuate'):
            answer = explain.of_server(server, operation)
            self.assertEqual(1, line(answer, 'ignore_hosts')['refused'])
            self.assertEqual('host2', answer.order[0])
        answer = explain.of_server(server, 'migrate', '--destination', 'host3')
        self.assertEqual('host3', answer.order[0])

    def an_evacuation_goes_where_explain_says(self):
        server = self.created
        self.set_service(self.host_of(server), forced_down=True)
        answer = explain.of_server(server, 'evacuate')
        self.assertEqual(['host3'], answer.order)
        self.act(server, 'evacuate')
        self._wait_for_server_parameter(
            server,
            {'OS-EXT-SRV-ATTR:host': 'host3', 'OS-EXT-STS:task_state': None},
        )

    def rebuild(self):
        self.isolate('windows', ['host1'], TRAIT)
        server = self.boot(
            image=self.image(props={f'trait:{TRAIT}': 'required'})
        )
        args = ('--server', server['id'], '--operation', 'rebuild')
        answer = explain.read(*args, '--image', self.image())
        self.assertEqual(3, answer.status)
        self.assertIn('take it. 1 is isolated (windows), ', answer.sentence)
        # It stays on its host: to lift that is no help.
        self.assertEqual(
            [
                'take host1 out of windows',
                f'remove trait:{TRAIT} from aggregate windows',
            ],
            answer.acts,
        )
        answer = explain.read(*args, '--image-property', 'hw_vif_model=virtio')
        self.assertEqual(3, answer.status)
        answer = explain.read(
            *args, '--image-property', 'trait:CUSTOM_OTHER=required'
        )
        self.assertEqual(3, answer.status)
        self.assertIn('Image traits cannot be satisfied', answer.sentence)
        self.assertEqual('conductor', answer.rows[0]['stage'])

    def a_client_that_only_reads(self):
        client = snapshot.Snapshot().client
        for method in (client.post, client.put, client.delete):
            self.assertRaises(RuntimeError, method, '/traits/CUSTOM_X', {})


class HeadlineTestCase(ExplainTestCase):
    """host1 and host2 are isolated, and host3 is disabled."""

    def test_what_is_in_the_way(self):
        servers = [self.boot(az=f'nova:host{n}') for n in (1, 3)]
        self.isolate('windows', ['host1', 'host2'], TRAIT)
        self.set_service('host3', status='disabled')
        for args, said in (
            (('--flavor', self.flavor()),
             '1 is disabled, 2 are isolated (windows).'),
            # Neither goes where it is; what is disabled has one name.
            (('--server', servers[0]['id'], '--operation', 'migrate'),
             '1 is disabled, 1 is isolated (windows), 1 is excluded by '
             'the request.'),
            (('--server', servers[1]['id'], '--operation', 'migrate'),
             '2 are isolated (windows), 1 is disabled.'),
        ):  # fmt: skip
            answer = explain.read(*args)
            self.assertEqual(
                f'0 of 3 hosts can take it. {said}', answer.sentence
            )
        self.assertEqual(
            [
                'take host1, host2 out of windows',
                'enable host3, if meant to take servers again',
                f'remove trait:{TRAIT} from aggregate windows',
            ],
            explain.read('--flavor', self.flavor()).acts,
        )
        # What it says would free a host, does.
        self.assertNoValidHost()
        self.set_service('host3', status='enabled')
        self.assertBootsOn('host3')


class ZoneTestCase(ExplainTestCase):
    def test_what_would_help(self):
        """Each act that is named gives the server a host."""
        self.aggregate('z', ['host1'], zone='az1')
        server = self.boot(az='az1')
        asked = ('--server', server['id'], '--operation', 'migrate')
        answer = explain.read(*asked)
        self.assertEqual(3, answer.status)
        can_unpin = api_version_request.max_api_version() >= UNPINS
        self.assertEqual(
            [
                *['unpin the server from its zone (microversion 2.104)']
                * can_unpin,
                'put host2, host3 into z',
            ],
            answer.acts,
        )
        # A new one cannot be unpinned.
        self.set_service('host1', status='disabled')
        answer = explain.read(
            *('--flavor', self.flavor(), '--availability-zone', 'az1')
        )
        self.assertEqual(
            [
                'ask for no availability zone',
                'put host2, host3 into z',
                'enable host1, if meant to take servers again',
            ],
            answer.acts,
        )
        self.set_service('host1', status='enabled')
        self.add_host('z', 'host3')
        self.assertEqual(['host3'], explain.read(*asked).order)
        self.remove_host('z', 'host3')
        self.assertEqual([], explain.read(*asked).order)
        if not can_unpin:
            self.skipTest('this release of nova unpins no server')
        self.api.api_put(
            f'/servers/{server["id"]}',
            {'server': {'pinned_availability_zone': None}},
        )
        self.assertEqual(['host2', 'host3'], explain.read(*asked).order)
