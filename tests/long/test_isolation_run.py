# SPDX-License-Identifier: Apache-2.0

"""Runs of a plan that meet, on a placement in a process of its own."""

from concurrent import futures

from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
from oslo_utils import uuidutils
from oslotest import base as test_base

from nova_ext_sched import placement
from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.osc import isolation_plan
from nova_ext_sched.osc import isolation_run
from nova_ext_sched.osc import isolation_step
from nova_ext_sched.policy import isolation
from tests.functional.placement import servers

HOSTS = 8
TRAIT = 'CUSTOM_LICENSED_WINDOWS'
RECORD = isolation.RECORD + TRAIT


class MeetingTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        if reason := servers.missing('gunicorn'):
            self.skipTest(reason)
        server = self.useFixture(servers.Placement('gunicorn'))
        raw = adapter.Adapter(
            session.Session(auth=token_endpoint.Token(server.url, 'admin')),
            service_type='placement',
        )
        self.client = placement.PlacementClient(raw, 'the test')
        self.aggregate = uuidutils.generate_uuid()
        nodes = []
        for number in range(HOSTS):
            name, uuid = f'host{number}', uuidutils.generate_uuid()
            raw.post(
                '/resource_providers',
                json={'name': name, 'uuid': uuid},
                microversion='1.14',
            )
            nodes.append(
                isolation_cloud.Node(
                    name, name, uuid, frozenset(), frozenset()
                )
            )
        self.cloud = isolation_cloud.Cloud(
            (
                isolation_cloud.Aggregate(
                    1,
                    self.aggregate,
                    'windows',
                    tuple(node.host for node in nodes),
                    {f'trait:{TRAIT}': 'required'},
                ),
            ),
            tuple(nodes),
            self.client.traits(),
        )

    def sync(self):
        steps = isolation_plan.make(self.cloud)
        isolation_run.carry_out(steps, self.client)
        return steps

    def write(self, node):
        self.client.update_traits(
            node.uuid, lambda current: current | {'CUSTOM_OTHER'}
        )
        self.client.update_aggregates(
            node.uuid, lambda current: current | {self.other}
        )

    def test_two_syncs_and_other_writers(self):
        self.other = uuidutils.generate_uuid()
        self.client.ensure_traits(['CUSTOM_OTHER'])
        with futures.ThreadPoolExecutor(4) as pool:
            syncs = [pool.submit(self.sync) for _ in range(2)]
            writers = [
                pool.submit(self.write, node) for node in self.cloud.nodes
            ]
            for future in writers:
                future.result()
            for future in syncs:
                self.assertEqual(
                    {isolation_step.Status.DONE},
                    {step.status for step in future.result()},
                )
        for node in self.cloud.nodes:
            self.assertEqual(
                {TRAIT, RECORD, 'CUSTOM_OTHER'},
                self.client.update_traits(node.uuid, frozenset),
            )
            self.assertEqual(
                {self.aggregate, self.other},
                self.client.update_aggregates(node.uuid, frozenset),
            )
