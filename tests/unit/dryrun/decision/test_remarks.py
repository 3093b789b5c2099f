# SPDX-License-Identifier: Apache-2.0

import types

import ddt
import testtools

from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import remarks
from tests.unit.request_filters import base


@ddt.ddt
class ZoneTestCase(testtools.TestCase):
    @ddt.data(
        # What the request is for, and whether nova ignores it.
        (None, False),
        ('az1', False),
        # Of hosts that are in no zone.
        ('nova', False),
        ('gone', True),
    )
    @ddt.unpack
    def test_a_zone_that_no_aggregate_has_any_more(self, zone, ignored):
        cloud = types.SimpleNamespace(
            unmapped=set(),
            aggs_by_id={
                1: types.SimpleNamespace(availability_zone='az1'),
                2: types.SimpleNamespace(availability_zone=None),
            },
        )
        spec = base.request_spec()
        spec.availability_zone = zone
        spec.scheduler_hints = {}
        found = matrix.Matrix({})
        remarks.add(cloud, found, 'boot', spec, None)
        self.assertEqual(
            [
                'No aggregate has the availability zone gone that the '
                'request is for: nova ignores it'
            ]
            * ignored,
            found.remarks,
        )
