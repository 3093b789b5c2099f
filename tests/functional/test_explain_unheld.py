# SPDX-License-Identifier: Apache-2.0

"""Full hosts, and allocations that no server and no migration has."""

import datetime

import fixtures
from nova import context as nova_context
from nova.db.main import api as main_db
from oslo_utils import uuidutils

from tests.functional import base
from tests.functional import explain


class UnheldTestCase(explain.ExplainTestCase):
    """Each server fills a host."""

    weights = {'host1': 50, 'host2': 40, 'host3': 30, 'host4': 20, 'host5': 10}

    def setUp(self):
        super().setUp()
        self.big = self.named('big', memory_mb=7000)

    def patch(self, name, new):
        return fixtures.MonkeyPatch(name, new)

    def settle(self):
        """Let what has ended count as ended long ago."""
        self.useFixture(
            self.patch(
                'nova_ext_sched.cmd.ask.unheld._CLEARING', datetime.timedelta()
            )
        )

    def explain(self):
        return explain.run('--flavor', 'big', '-f', 'json').document

    def found(self):
        """Return whether a host is freed, and consumers, by host."""
        found = self.explain()['unheld']
        return found and {
            one['host']: (one['freed'], one['consumers'])
            for one in found['hosts']
        }

    def allocate(self, host, consumer, **of_version):
        body = {
            'allocations': {
                self._get_provider_uuid_by_host(host): {
                    'resources': {'MEMORY_MB': 7000}
                }
            },
            'project_id': self.api.project_id,
            'user_id': self.api.project_id,
            'consumer_generation': None,
            **of_version,
        }
        answer = self.placement.put(
            f'/allocations/{consumer}',
            body,
            version='1.38' if of_version else '1.28',
        )
        self.assertEqual(204, answer.status, answer.body)


class HeldTestCase(UnheldTestCase):
    def test_what_somebody_holds(self):
        self.flags(reclaim_instance_interval=3600)
        self.settle()
        server = self.boot(flavor=self.big)
        self._migrate_server(server)
        deleted = self.boot(flavor=self.big)
        self.api.delete_server(deleted['id'])
        self._wait_for_state_change(deleted, 'SOFT_DELETED')
        with self.patch(
            'nova.conductor.api.ComputeTaskAPI.schedule_and_build_instances',
            lambda *_, **__: None,
        ):
            built = self.api.post_server(
                {'server': self._build_server(networks='none')}
            )
        self.allocate('host4', built['id'])
        consumer = uuidutils.generate_uuid()
        self.allocate('host5', consumer, consumer_type='CONTAINER')
        self.assertEqual(0, self.explain()['answer']['left'])
        self.assertIsNone(self.found())
        self.placement.delete(f'/allocations/{consumer}')
        self.allocate('host5', consumer)
        self.assertEqual({'host5': (True, [consumer])}, self.found())
        ctxt = nova_context.get_admin_context()
        mapping = self.cell_mappings['cell1']
        with nova_context.target_cell(ctxt, mapping) as target:
            engine = main_db.get_engine(context=target)
        with base.table_away(engine, 'migrations'):
            self.assertIsNone(self.found())
