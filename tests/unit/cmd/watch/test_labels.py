# SPDX-License-Identifier: Apache-2.0

import ddt
import nova.conf
import testtools

from nova_ext_sched.cmd.watch import explainer
from nova_ext_sched.cmd.watch import labels
from nova_ext_sched.cmd.watch import metrics
from nova_ext_sched.cmd.watch import refusals

CONF = nova.conf.CONF


@ddt.ddt
class LabelsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        for name, value in {
            'available_filters': [
                'nova.scheduler.filters.all_filters',
                'nova_ext_sched.filters.all_filters',
            ],
            'enabled_filters': ['ComputeFilter', 'NUMATopologyFilter'],
        }.items():
            CONF.set_override(name, value, 'filter_scheduler')
            self.addCleanup(CONF.clear_override, name, 'filter_scheduler')
        self.metrics = metrics.Metrics()
        self.labels = labels.Labels(self.metrics)

    @ddt.data(
        *explainer.REASONS,
        'none',
        'no hosts',
        # Policies, kinds, filters, request filters of nova, and resources.
        'isolation',
        'disabled service',
        'query length',
        'failure-domain',
        'NUMATopologyFilter',
        'requested host',
        'service that is down',
        'require_image_type_support',
        'PCPU',
    )
    def test_what_the_code_or_nova_conf_knows(self, cause):
        self.assertIn(cause, self.labels.constraints)
        self.assertEqual(cause, self.labels.constraint(cause))

    @ddt.data(
        ('required=CUSTOM_MEMBER_1', 'required traits'),
        ('required=!HW_A', 'required traits'),
        ('root_required=!CUSTOM_A', 'required traits'),
        ("'required=CUSTOM_A,CUSTOM_B'...", 'required traits'),
        ('CUSTOM_MEMBER_1', 'custom resource'),
        ('NotEnabledFilter', 'other'),
        ('a host=required', 'other'),
        ('', 'other'),
    )
    @ddt.unpack
    def test_what_a_member_writes(self, cause, expected):
        self.assertEqual(expected, self.labels.constraint(cause))
        self.assertIn(expected, self.labels.constraints)

    def test_what_is_known_begins_with_0(self):
        """An alert on an increase does not see the first of a new series."""
        self.labels.count('', 'isolation')
        for operation in (*refusals.OPERATIONS.values(), 'other'):
            for constraint in self.labels.constraints:
                self.assertEqual(
                    (operation, constraint) == ('other', 'isolation'),
                    self.metrics.registry.get_sample_value(
                        'nova_ext_sched_refusals_total',
                        {'operation': operation, 'constraint': constraint},
                    ),
                )
        for reason in explainer.REASONS:
            self.assertEqual(
                0,
                self.metrics.registry.get_sample_value(
                    'nova_ext_sched_refusals_unexplained_total',
                    {'reason': reason},
                ),
            )

    def test_no_more_than_there_can_be(self):
        """Each is a series for each operation."""
        self.assertLess(len(self.labels.constraints), 100)
