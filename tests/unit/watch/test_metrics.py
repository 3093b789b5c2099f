# SPDX-License-Identifier: Apache-2.0

import prometheus_client
from prometheus_client import parser
import testtools

from nova_ext_sched.watch import metrics

HISTOGRAMS = (
    'nova_ext_sched_explanation_duration_seconds',
    'nova_ext_sched_record_delay_seconds',
)


class MetricsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.metrics = metrics.Metrics()

    def fill(self):
        """Let every metric have a value."""
        self.metrics.refusals.labels('boot', 'isolation').inc()
        self.metrics.unexplained.labels('limit').inc()
        self.metrics.explanations.observe(0.2)
        self.metrics.looked_at({'uuid1': 'cell1'}, ())
        self.metrics.worked()
        self.metrics.delay.observe(7)

    def read(self):
        """Return the names of what Prometheus reads."""
        text = prometheus_client.generate_latest(self.metrics.registry)
        families = parser.text_string_to_metric_families(text.decode())
        return {
            sample.name for family in families for sample in family.samples
        }

    def test_what_is_not_known_is_not_there(self):
        """A look that never was is not 56 years ago."""
        self.assertEqual(
            {
                'nova_ext_sched_refusals_waiting',
                'nova_ext_sched_cells_unread',
                *(
                    f'{histogram}_{name}'
                    for histogram in HISTOGRAMS
                    for name in ('bucket', 'count', 'sum')
                ),
            },
            {
                name
                for name in self.read()
                if name.startswith('nova_ext_sched_')
            },
        )

    def test_cells(self):
        """One that is silent keeps its time; one that is gone has none."""
        names = {'uuid1': 'cell1', 'uuid2': 'cell2', 'uuid3': 'cell3'}
        for silent, gone, expected in (
            ({'uuid3'}, (), {'cell1': True, 'cell2': True, 'cell3': False}),
            ({'uuid2'}, ['uuid1'], {'cell1': False, 'cell2': True}),
            ((), (), {'cell1': True, 'cell2': True, 'cell3': True}),
        ):
            self.metrics.looked_at(
                {one: names[one] for one in names if one not in gone}, silent
            )
            for cell, is_there in expected.items():
                value = self.metrics.registry.get_sample_value(
                    'nova_ext_sched_cell_look_timestamp_seconds',
                    {'cell': cell},
                )
                self.assertEqual(is_there, value is not None, cell)

    def test_the_usual_ones_of_a_process(self):
        self.fill()
        found = self.read()
        for name in (
            'process_resident_memory_bytes',
            'process_cpu_seconds_total',
            'process_start_time_seconds',
            'python_info',
            'python_gc_collections_total',
        ):
            self.assertIn(name, found)
        self.assertEqual(
            [], [name for name in found if name.endswith('_created')]
        )
