# SPDX-License-Identifier: Apache-2.0

"""How many servers may come; failures in cells, and of hosts with devices."""

import contextlib
from unittest import mock

from nova.tests.functional.api import client

from nova_ext_sched.dryrun.plan import spare
from tests.functional import plans
from tests.functional import test_survive
from tests.long import test_capacity_devices


class RackTestCase(test_survive.SurviveTestCase):
    def test_a_rack_fails(self):
        self.racks()
        hints = self.group(limit=9)
        for host in ('host1', 'host3', 'host2'):
            self.boot(hints=hints, az=f'nova:{host}')
        self.boot(flavor=self.flavor(vcpu=7), az='nova:host1')
        self.boot(flavor=self.flavor(vcpu=9), az='nova:host4')
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


class StatesTestCase(test_survive.SurviveTestCase):
    weights = {'host1': 200, 'host2': 100}

    def test_whether_there_would_be_room_otherwise(self):
        """In the order that is said; nova agrees once the state is set."""
        self.boot(flavor=self.flavor(vcpu=4), az='nova:host1')
        paused = [
            self.boot(flavor=self.flavor(vcpu=number), az='nova:host1')
            for number in (2, 3)
        ]
        for one in paused:
            self.admin_api.post_server_action(one['id'], {'pause': None})
            self._wait_for_state_change(one, 'PAUSED')
        self.assertEqual(0, self.count_bad(self.survive()))
        self.boot(flavor=self.flavor(vcpu=2), az='nova:host2')
        document = self.survive()
        # host1 has no room for that one either.
        self.assertEqual(2, self.count_bad(document))
        failure = document['failures'][0]
        # The large one first; there is no room for the other.
        self.assertEqual(
            [
                (paused[1]['id'], 'state', ''),
                (paused[0]['id'], 'state', 'VCPU'),
            ],
            [
                (one['server'], one['cause'], one['cause_then'])
                for one in failure['without_place']
            ],
        )
        self.fail_hosts(failure)
        for one, host in zip(paused[::-1], ('host2', 'host1'), strict=True):
            self.reset_state(one, 'active')
            with contextlib.suppress(client.OpenStackApiException):
                self.evacuate(one['id'])
            self._wait_for_server_parameter(
                one, {'OS-EXT-STS:task_state': None}
            )
            self.assertEqual(host, self.host_of(one))

    def count_bad(self, document):
        self.assertIn(
            'nova would not evacuate 2 servers as they are.',
            document['answer']['sentence'],
        )
        return sum(
            any(
                one['cause'] != 'state' or one['cause_then']
                for one in failure['without_place']
            )
            for failure in document['failures']
        )


class FlavorTestCase(test_survive.SurviveTestCase):
    """How many more servers may come: as many come, and perhaps one more."""

    def assertSpare(self, spare, fit, failure, flavor, *argv, more=1):
        """Let servers come and a host fail, and nova evacuate it.

        :param flavor: the ID of the new servers' flavor
        :param more: how many come that are not to come
        """
        self.assertEqual(
            (spare, fit, failure), self.count_spare(flavor, *argv)
        )
        for _ in range(spare):
            self.boot(flavor=flavor)
        # No failure is worse than before.
        self.assertEqual(0, self.find_most_stuck(self.survive(*argv)))
        for _ in range(more):
            self.boot(flavor=flavor)
        document = self.survive(*argv)
        self.assertEqual(more, self.find_most_stuck(document))
        [failed] = [
            one for one in document['failures'] if one['failure'] == failure
        ]
        self.assertEqual(more, len(failed['without_place']))
        self.fail_hosts(failed)

    def find_most_stuck(self, document):
        return max(len(one['without_place']) for one in document['failures'])

    def test_no_more_than_may_come(self):
        for number, host in ((4, 'host1'), (3, 'host2'), (6, 'host3')):
            self.boot(flavor=self.flavor(vcpu=number), az=f'nova:{host}')
        # Two on host1, two on host2, one on host3; then host4 gets one.
        self.assertSpare(5, 8, 'host1', self.flavor(vcpu=3), more=0)

    def test_isolated(self):
        self.isolate('windows', ['host1', 'host3'], 'CUSTOM_WINDOWS')
        specs = {'trait:CUSTOM_WINDOWS': 'required'}
        self.boot(flavor=self.flavor(vcpu=1), host='host2')
        self.assertSpare(3, 6, 'host1', self.flavor(vcpu=3, specs=specs))

    def test_a_group_whose_rule_is_just_met(self):
        hints = self.group(limit=2)
        member = self.flavor(vcpu=3)
        for host in (*self.weights, 'host1'):
            self.boot(flavor=member, hints=hints, az=f'nova:{host}')
        for number, host in ((6, 'host2'), (4, 'host3')):
            self.boot(flavor=self.flavor(vcpu=number), az=f'nova:{host}')
        # Two on host1; the next takes the room on host3, and host4 may have
        # one of the group alone.
        self.assertSpare(2, 6, 'host1', self.flavor(vcpu=2))

    def test_a_rack(self):
        self.racks()
        self.boot(flavor=self.flavor(vcpu=3), az='nova:host1')
        self.boot(flavor=self.flavor(vcpu=8), az='nova:host4')
        # Two on host1; the next takes the room on host2.
        self.assertSpare(2, 8, 'rack1', self.flavor(vcpu=3), '--by', 'domain')


class CellsTestCase(test_survive.EvacuationMixin, plans.PlanTestCase):
    NUMBER_OF_CELLS = 2
    weights = {'host1': 200, 'host2': 100, 'host3': 20, 'host4': 10}
    cells = {'host3': 'cell2', 'host4': 'cell2'}

    def test_no_server_leaves_its_cell(self):
        self.boot(flavor=self.flavor(vcpu=4), az='nova:host1')
        self.boot(flavor=self.flavor(vcpu=3), az='nova:host1')
        self.boot(flavor=self.flavor(vcpu=5), az='nova:host2')
        self.boot(flavor=self.flavor(vcpu=5), az='nova:host3')
        document = self.assertFailure(
            'host1', moves=['host2'], stuck=[('VCPU', '')]
        )
        self.assertEqual(
            '1 of 3 hosts can fail, one at a time; 2 cannot.',
            document['answer']['sentence'],
        )

    def test_more_servers_stay_in_their_cell_too(self):
        # Two on host1; the next takes the room of one of them on host2.
        flavor = self.flavor(vcpu=5)
        self.assertEqual((2, 8, 'host1'), self.count_spare(flavor))
        for most, expected in (
            (2, (2, 2, True, '')),
            (3, (2, 3, True, 'host1')),
        ):
            with mock.patch.object(spare, '_MOST', most):
                [found] = self.survive('--flavor', flavor)['flavors']
            self.assertEqual(
                expected,
                tuple(map(found.get, ('spare', 'fit', 'or_more', 'failure'))),
            )


class DevicesTestCase(
    test_survive.EvacuationMixin, test_capacity_devices.DevicesBase
):
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
        self.assertGreater(self.count_spare(flavor)[1], 0)
        self.fail_hosts(stuck[0])
