# SPDX-License-Identifier: Apache-2.0

import prometheus_client
from prometheus_client import parser
import testtools

from nova_ext_sched.watch import metrics

PREFIX = 'nova_ext_sched_'


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
        expected = {f'{PREFIX}refusals_waiting', f'{PREFIX}cells_unread'}
        for histogram in ('explanation_duration', 'record_delay'):
            for name in ('bucket', 'count', 'sum'):
                expected.add(f'{PREFIX}{histogram}_seconds_{name}')
        found = {name for name in self.read() if name.startswith(PREFIX)}
        self.assertEqual(expected, found)

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
                    f'{PREFIX}cell_look_timestamp_seconds', {'cell': cell}
                )
                self.assertEqual(is_there, value is not None, cell)

    def test_the_usual_ones_of_a_process(self):
        self.fill()
        found = self.read()
        of_process = (
            'resident_memory_bytes cpu_seconds_total start_time_seconds'
        )
        of_python = 'info gc_collections_total'
        usual = {f'process_{name}' for name in of_process.split()}
        usual |= {f'python_{name}' for name in of_python.split()}
        self.assertEqual(set(), usual - found)
        created = [name for name in found if name.endswith('_created')]
        self.assertEqual([], created)
