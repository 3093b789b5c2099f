# SPDX-License-Identifier: Apache-2.0

"""The capacity that watch exports is what the command says."""

import fixtures
from keystoneauth1 import exceptions as ks_exc
from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.main import api as main_db
import prometheus_client

from nova_ext_sched.cmd.watch import capacity as watched
from nova_ext_sched.cmd.watch import metrics
from tests import samples
from tests.functional import base
from tests.functional import capacity

TRAIT = 'CUSTOM_LICENSED_WINDOWS'


class WatchCapacityTestCase(capacity.CapacityTestCase):
    host_filters = ('IsolatedAggregatesFilter', 'JsonFilter')
    options = {'enable_isolated_aggregate_filtering': True}

    def setUp(self):
        super().setUp()
        self.isolate('windows', ['host1'], TRAIT)
        for flavor in self.admin_api.get_flavors():
            self.admin_api.delete_flavor(flavor['id'])
        self.small = self._create_flavor(
            name='small', vcpu=4, memory_mb=512, disk=0, ephemeral=0
        )
        self.licensed = self.image(props={f'trait:{TRAIT}': 'required'})
        self.metrics = metrics.Metrics()
        self.capacity_of = watched.Capacity(
            self.metrics, [('small', ''), ('small', self.licensed)]
        )

    def count(self):
        """Count; return the figures without an image and with it."""
        self.capacity_of.count()
        return [
            self.metrics.registry.get_sample_value(
                'nova_ext_sched_capacity_servers',
                {'flavor': 'small', 'image': image},
            )
            for image in ('', self.licensed)
        ]

    def test_figures(self):
        self.assertEqual([4, 2], self.count())
        for number, args in ((4, ()), (2, ('--image', self.licensed))):
            [one] = capacity.run(
                '--flavor', 'small', *args, '-f', 'json'
            ).flavors
            self.assertEqual(number, one['servers'])
        self.boot(flavor=self.small)
        self.assertEqual([3, 2], self.count())
        self.no_end()
        self.what_is_away()
        self.what_is_gone()

    @samples.compares('tools/watch/capacity.txt')
    def test_the_page(self):
        samples.skip_other_releases(self)
        self.count()
        name = 'nova_ext_sched_capacity_servers'
        text = prometheus_client.generate_latest(self.metrics.registry)
        lines = [
            line
            for line in text.decode().splitlines()
            if line.startswith(name)
        ]
        samples.check(
            self,
            'tools/watch/capacity.txt',
            f'$ curl -s http://127.0.0.1:9653/metrics | grep ^{name}\n'
            + '\n'.join([*sorted(lines), '']),
            width=120,
        )

    def no_end(self):
        """As of hosts that would take that many."""
        with fixtures.MonkeyPatch('nova_ext_sched.cmd.capacity.room.MOST', 1):
            self.assertEqual([float('inf')] * 2, self.count())

    def what_is_away(self):
        """There is no figure, and then there is one again."""
        for fault in (self.no_placement(), self.no_hosts(), self.no_cell()):
            with fault:
                self.assertEqual([None, None], self.count())
            self.assertEqual([3, 2], self.count())

    def what_is_gone(self):
        # Glance shows it to nobody.
        self.glance.images.pop(self.licensed)
        self.assertEqual([3, None], self.count())
        self.admin_api.delete_flavor(self.small)
        self.assertEqual([None, None], self.count())
        lines = [
            line.partition('fit of ')[2]
            for line in self.stdlog.logger.output.splitlines()
            if 'Nobody knows how many servers' in line
        ]
        both = f'small, small,{self.licensed}: '
        starts = [
            f'{both}PlacementFailed: ',
            f'{both}DBNonExistentTable: ',
            f'{both}CellFailed: ',
            f'small,{self.licensed}: InvalidValue: --image: ',
            # What has not changed is not repeated.
            'small: InvalidValue: --flavor: ',
        ]
        self.assertEqual(
            starts,
            [
                line[: len(start)]
                for line, start in zip(lines, starts, strict=True)
            ],
        )

    def no_placement(self):
        def fail(*args, **kwargs):
            raise ks_exc.ConnectFailure('no route to placement')

        client = 'nova.scheduler.client.report.SchedulerReportClient'
        return fixtures.MonkeyPatch(f'{client}.get', fail)

    def no_hosts(self):
        return base.table_away(
            api_db.context_manager.writer.get_engine(), 'aggregates'
        )

    def no_cell(self):
        mapping = self.cell_mappings['cell1']
        with nova_context.target_cell(
            nova_context.get_admin_context(), mapping
        ) as cell:
            engine = main_db.get_context_manager(cell).writer.get_engine()
        return base.table_away(engine, 'compute_nodes')
