# SPDX-License-Identifier: Apache-2.0

"""Hosts that fail: nova evacuates their servers in the order that was said."""

import contextlib
import pathlib
from unittest import mock

import ddt
import fixtures
from nova.tests.functional.api import client
from prometheus_client import parser

from nova_ext_sched.cmd.ask import candidates
from nova_ext_sched.cmd.moves import command
from nova_ext_sched.cmd.moves import shared
from tests.functional import audits
from tests.functional import explain
from tests.functional import plans
from tests.functional import test_capacity_devices


class EvacuationMixin:
    def survive(self, *argv):
        """Run the command; return its document."""
        found = explain.Output(
            *explain.call(command.Survive, 'survive', *argv, '-f', 'json')
        )
        document = found.read('moves/schema.json')
        stuck = [one for one in document['failures'] if one['without_place']]
        self.assertEqual(3 if stuck else 0, found.status, found.err)
        return document

    def fail_hosts(self, failure):
        """Let hosts fail, and nova evacuate; it does what was said.

        :param failure: of the document
        """
        for host in failure['hosts']:
            self.computes[host].stop()
            [service] = self.admin_api.get_services(
                binary='nova-compute', host=host
            )
            self.admin_api.put_service_force_down(service['id'], True)
        went, said = {}, {}
        for one in (*failure['moves'], *failure['without_place']):
            server = {'id': one['server']}
            said[one['server']] = one.get('to', one['host'])
            if one.get('cause') != 'state':
                # Where conductor is called in place of cast, it is nova-api
                # that finds no host.
                with contextlib.suppress(client.OpenStackApiException):
                    self.admin_api.post_server_action(
                        one['server'], {'evacuate': {}}
                    )
                self._wait_for_migration_status(server, ['done', 'error'])
                self._wait_for_server_parameter(
                    server, {'OS-EXT-STS:task_state': None}
                )
            went[one['server']] = self.host_of(server)
        self.assertEqual(said, went)

    def assertFailure(self, name, *argv, stuck=(), moves=None):
        """Let one fail; check who finds no host, and the causes.

        :param stuck: cause and name of each
        """
        document = self.survive(*argv)
        [failure] = [
            one for one in document['failures'] if one['failure'] == name
        ]
        self.fail_hosts(failure)
        self.assertEqual(
            sorted(stuck),
            sorted(
                (one['cause'], one['name_of_cause'])
                for one in failure['without_place']
            ),
        )
        if moves is not None:
            self.assertEqual(
                moves, [one['to'] for one in failure['moves']], failure
            )
        return document


class SurviveTestCase(EvacuationMixin, plans.PlanTestCase):
    options = {
        **audits.AuditTestCase.options,
        'max_server_per_failure_domain': 0,
    }
    weights = {'host1': 400, 'host2': 300, 'host3': 200, 'host4': 100}


@ddt.ddt
class SituationsTestCase(SurviveTestCase):
    def test_plain(self):
        small = self.sized(3)
        for flavor, host in (
            (small, 'host1'),
            (small, 'host1'),
            (self.sized(1), 'host1'),
            (self.sized(2), 'host2'),
            (self.sized(6), 'host3'),
            (self.sized(10), 'host4'),
        ):
            self.boot(flavor=flavor, az=f'nova:{host}')
        self.boot(flavor=self.sized(1), az='nova:host1')
        self.assertFailure('host1', moves=['host2'] * 4)

    def test_of_two_with_one_host_the_larger_goes_first(self):
        for host, number in (
            ('host1', 3),
            ('host1', 7),
            ('host2', 3),
            ('host3', 8),
            ('host4', 8),
        ):
            self.boot(flavor=self.sized(number), az=f'nova:{host}')
        self.assertFailure('host1', moves=['host2'], stuck=[('VCPU', '')])

    def test_full(self):
        for host in self.weights:
            for _ in range(2):
                self.boot(flavor=self.sized(4), az=f'nova:{host}')
        self.boot(flavor=self.sized(2), az='nova:host1')
        document = self.assertFailure(
            'host1',
            stuck=[('VCPU', '')] * 2,
            moves=['host2'],
        )
        self.assertEqual(
            '0 of 4 hosts can fail, one at a time; 4 cannot.',
            document['answer']['sentence'],
        )

    def test_isolated(self):
        self.isolate('windows', ['host1', 'host3'], 'CUSTOM_WINDOWS')
        specs = {'trait:CUSTOM_WINDOWS': 'required'}
        for _ in range(3):
            self.boot(flavor=self.sized(3, specs), host='host1')
        self.boot(flavor=self.sized(4, specs), host='host3')
        # It stands where it may not.
        self.flags(
            enable_isolated_aggregate_filtering=False, group='nova_ext_sched'
        )
        self.boot(flavor=self.sized(1), az='nova:host1')
        self.flags(
            enable_isolated_aggregate_filtering=True, group='nova_ext_sched'
        )
        self.assertFailure(
            'host1',
            moves=['host3', 'host3', 'host2'],
            stuck=[('required=CUSTOM_WINDOWS', '')],
        )

    def test_plain_ones_beside_isolated_hosts(self):
        self.isolate('windows', ['host2', 'host3', 'host4'], 'CUSTOM_WINDOWS')
        self.boot(host='host1')
        self.assertFailure('host1', stuck=[('isolation', 'windows')])

    def test_reserved(self):
        key = {'reservation:lease': 'true'}
        self.aggregate('lease', ['host1', 'host2'], metadata=key)
        self.boot(flavor=self.sized(4, key), host='host1')
        self.boot(flavor=self.sized(4, key), host='host1')
        self.boot(flavor=self.sized(5, key), host='host2')
        self.boot(flavor=self.sized(1), host='host3')
        self.assertFailure('host1', moves=['host2'], stuck=[('VCPU', '')])

    def test_a_group_whose_rule_is_just_met(self):
        hints = self.group(limit=2)
        for host in self.weights:
            self.boot(hints=hints, az=f'nova:{host}')
        for host in ('host1', 'host2', 'host4'):
            self.boot(hints=hints, az=f'nova:{host}')
        self.boot(az='nova:host1')
        self.assertFailure(
            'host1', moves=['host3', 'host2'], stuck=[('anti-affinity', '')]
        )

    def racks(self):
        for number in (1, 2):
            name = f'rack{number}'
            hosts = [f'host{number}', f'host{number + 2}']
            self.aggregate(name, hosts, failure_domain=name)
        self.flags(max_server_per_failure_domain=2, group='nova_ext_sched')

    def test_racks(self):
        """A host fails: its rack has another one, the other rack is full."""
        self.racks()
        hints = self.group(limit=9)
        for host in ('host1', 'host2', 'host4'):
            self.boot(hints=hints, az=f'nova:{host}')
        self.boot(flavor=self.sized(10), az='nova:host3')
        self.assertFailure('host1', stuck=[('VCPU', '')], moves=[])

    def test_a_rack_fails(self):
        self.racks()
        hints = self.group(limit=9)
        for host in ('host1', 'host3', 'host2'):
            self.boot(hints=hints, az=f'nova:{host}')
        self.boot(flavor=self.sized(7), az='nova:host1')
        self.boot(flavor=self.sized(9), az='nova:host4')
        document = self.assertFailure(
            'rack1',
            '--by',
            'domain',
            moves=['host2', 'host2'],
            stuck=[('failure-domain', 'rack2')],
        )
        self.assertEqual(
            '0 of 2 failure domains can fail, one at a time; 2 cannot.',
            document['answer']['sentence'],
        )

    def test_a_full_zone(self):
        self.aggregate('zone', ['host1', 'host2'], zone='zone')
        for host, number in (('host1', 6), ('host1', 3), ('host2', 6)):
            self.boot(flavor=self.sized(number), az=f'zone:{host}')
        # It may go anywhere.
        self.boot(flavor=self.sized(1), host='host1')
        self.assertFailure(
            'host1',
            moves=['host2', 'host2'],
            stuck=[('availability zone', '')],
        )

    def test_states(self):
        servers = [self.boot(host='host1') for _ in range(4)]
        for server, action, status in (
            (servers[0], 'pause', 'PAUSED'),
            (servers[1], 'os-stop', 'SHUTOFF'),
        ):
            self.admin_api.post_server_action(server['id'], {action: None})
            self._wait_for_state_change(server, status)
        self.admin_api.post_server_action(
            servers[2]['id'], {'os-resetState': {'state': 'error'}}
        )
        self.assertFailure('host1', moves=['host2'] * 3, stuck=[('state', '')])


class CellsTestCase(EvacuationMixin, plans.PlanTestCase):
    NUMBER_OF_CELLS = 2
    weights = {'host1': 200, 'host2': 100}

    def test_no_server_leaves_its_cell(self):
        for name in ('host3', 'host4'):
            self._start_compute(name, cell_name='cell2')
        self.boot(flavor=self.sized(4), az='nova:host1')
        self.boot(flavor=self.sized(3), az='nova:host1')
        self.boot(flavor=self.sized(5), az='nova:host2')
        self.boot(flavor=self.sized(5), az='nova:host3')
        document = self.assertFailure(
            'host1', moves=['host2'], stuck=[('VCPU', '')]
        )
        self.assertEqual(
            '1 of 3 hosts can fail, one at a time; 2 cannot.',
            document['answer']['sentence'],
        )


class DevicesTestCase(EvacuationMixin, test_capacity_devices.DevicesBase):
    def test_numa_cells_and_devices(self):
        """In placement the other host has CPUs for both."""
        self.admin_api = self.api
        pinned = test_capacity_devices.PINNED
        nic = {'pci_passthrough:alias': 'nic:1'}
        flavor = self.large(4, **pinned)
        for _ in range(3):
            self.boot(flavor)
        self.boot(self.large(1, **pinned, **nic))
        document = self.survive()
        stuck = [one for one in document['failures'] if one['without_place']]
        self.assertNotEqual([], stuck)
        self.fail_hosts(stuck[0])


@ddt.ddt
class CommandTestCase(SurviveTestCase):
    def test_text(self):
        self.isolate('windows', ['host1'], 'CUSTOM_WINDOWS')
        specs = {'trait:CUSTOM_WINDOWS': 'required'}
        self.boot(flavor=self.sized(1, specs), name='dc')
        self.boot(flavor=self.sized(1), name='web')
        text, _, status = explain.call(command.Survive, 'survive')
        self.assertEqual(3, status)
        lines = text.splitlines()
        self.assertEqual(
            '1 of 2 hosts can fail, one at a time; 1 cannot:', lines[0]
        )
        self.assertTrue(
            lines[1].startswith('  host1  1 of 1 servers find no host: '),
            lines,
        )

    @ddt.data(
        ((), ['host1', 'host2', 'host4']),
        (('--host', 'host2'), ['host2']),
        (('--host', 'host3'), []),
        (('--aggregate', 'row'), ['host1', 'host2']),
        (
            ('--host', 'host4', '--aggregate', 'row'),
            ['host1', 'host2', 'host4'],
        ),
        (('--by', 'domain'), ['a', 'b']),
        (('--by', 'domain', '--host', 'host1'), ['a']),
    )
    @ddt.unpack
    def test_which(self, argv, expected):
        self.aggregate('row', ['host1', 'host2', 'host3'], failure_domain='a')
        self.aggregate('racks', ['host2'], failure_domain='b, a')
        for host in ('host1', 'host2', 'host4'):
            self.boot(host=host)
        document = self.survive(*argv)
        self.assertEqual(
            expected, [one['failure'] for one in document['failures']]
        )
        sentence = document['answer']['sentence']
        if argv == ('--by', 'domain'):
            self.assertIn('1 host is in no domain', sentence)

    def test_before_a_change(self):
        self.aggregate('others', ['host2', 'host3', 'host4'])
        self._create_trait('CUSTOM_A')
        self.boot(host='host1')
        self.assertEqual([], self.survive()['failures'][0]['without_place'])
        [failure] = self.survive(
            '--aggregate-property', 'others', 'trait:CUSTOM_A=required'
        )['failures']
        self.assertEqual('isolation', failure['without_place'][0]['cause'])

    def test_metrics(self):
        self.boot(host='host1')
        self.boot(flavor=self.sized(10), az='nova:host2')
        self.boot(flavor=self.sized(1), az='nova:host3')
        self.boot(flavor=self.sized(1), az='nova:host4')
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        path /= 'survive.prom'
        self.survive('--metrics', str(path))
        families = parser.text_string_to_metric_families(path.read_text())
        self.assertEqual(
            {'yes': 3, 'no': 1},
            {
                one.labels['survived']: one.value
                for family in families
                if family.name == 'nova_ext_sched_failures'
                for one in family.samples
            },
        )

    @contextlib.contextmanager
    def counting(self):
        """Yield a list of the requests that all hosts are asked about."""
        asked, ask = [], candidates.ask
        with mock.patch.object(
            candidates,
            'ask',
            lambda *args, **kwargs: asked.append(1) or ask(*args, **kwargs),
        ):
            yield asked

    def alone(self):
        """Let no two requests be alike."""
        return mock.patch.object(shared, 'find_key', lambda *_: None)

    def test_equal_requests_are_judged_once(self):
        """What is shared says what each one by itself would."""
        image = self.image()
        for flavor in (self.sized(1), self.sized(4)):
            for host in ('host1', 'host2', 'host3', 'host3'):
                self.boot(flavor=flavor, image=image, az=f'nova:{host}')
        with self.counting() as judged:
            shared = self.survive()
        self.assertEqual(2, len(judged))
        with self.counting() as judged, self.alone():
            each = self.survive()
        self.assertLessEqual(16, len(judged))
        self.assertEqual(shared['failures'], each['failures'])
