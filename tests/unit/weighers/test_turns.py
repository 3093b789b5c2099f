# SPDX-License-Identifier: Apache-2.0

import math

import ddt
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids

from nova_ext_sched.weighers import turns
from tests.unit.request_filters import base as test_base

SPREAD = {'different_failure_domain': ['true']}


@ddt.ddt
class TurnsTestCase(test_base.RequestFilterTestCase):
    @ddt.data(
        ('anti-affinity', {}, {}, (1, None)),
        ('anti-affinity', {}, {'max_server_per_host': '3'}, (3, None)),
        # ServerGroupAntiAffinityFilter refuses every host.
        ('anti-affinity', {}, {'max_server_per_host': 'x'}, (1, None)),
        ('soft-anti-affinity', {}, {}, (math.inf, None)),
        ('anti-affinity', SPREAD, {}, (1, 1)),
        ('affinity', SPREAD, {}, (math.inf, 1)),
        ('affinity', {}, {}, None),
        ('soft-affinity', {}, {}, None),
        ('anti-affinity', {'different_failure_domain': ['x']}, {}, None),
    )
    @ddt.unpack
    def test_table(self, policy, hints, rules, expected):
        group = objects.InstanceGroup(
            uuid=uuids.group, policy=policy, members=[], _rules=rules
        )
        spec = objects.RequestSpec(scheduler_hints=hints, instance_group=group)
        self.assertEqual(expected, turns.find(spec))

    def test_no_group(self):
        self.assertIsNone(turns.find(objects.RequestSpec()))
        spec = objects.RequestSpec(instance_group=None)
        self.assertIsNone(turns.find(spec))

    def test_members_that_are_not_read(self):
        group = objects.InstanceGroup(policy='anti-affinity')
        spec = objects.RequestSpec(instance_group=group)
        self.assertIsNone(turns.find(spec))
