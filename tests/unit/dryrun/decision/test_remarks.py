# SPDX-License-Identifier: Apache-2.0

import types

import testtools

from nova_ext_sched.dryrun.decision import asking
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.decision import remarks
from tests.unit.request_filters import base


class ZoneTestCase(testtools.TestCase):
    def test_a_zone_that_no_aggregate_has_any_more(self):
        for zone, ignored in (
            # What the request is for, and whether nova ignores it.
            (None, False),
            ('az1', False),
            # Of hosts that are in no zone.
            ('nova', False),
            ('gone', True),
        ):
            aggregates = {
                name: types.SimpleNamespace(availability_zone=name)
                for name in ('az1', None)
            }
            cloud = types.SimpleNamespace(unmapped=(), aggs_by_id=aggregates)
            spec, found = base.request_spec(), matrix.Matrix({})
            spec.availability_zone, spec.scheduler_hints = zone, {}
            remarks.add(asking.Asking(cloud, None, spec, found))
            said = (
                'No aggregate has the availability zone gone that the request '
                'is for: nova ignores it'
            )
            self.assertEqual([said] * ignored, found.remarks)


class OwnHostTestCase(testtools.TestCase):
    """Host a is the server's own; b is full in each case."""

    def test_a_resize(self):
        for operation, names, said in (
            ('resize', ['ignored'], 'allow_resize_to_same_host is on'),
            ('migrate', ['ignored'], None),
            ('resize', ['ignored', 'full'], None),
            ('resize', ['ignored', 'isolated'], None),
            ('resize', ['full'],
             'the server holds its old MEMORY_MB and VCPU'),
            ('resize', ['full', 'isolated'],
             'holds its old MEMORY_MB and VCPU'),
            ('resize', ['isolated'], None),
        ):  # fmt: skip
            cloud = types.SimpleNamespace(unmapped=set(), aggs_by_id={})
            found = matrix.Matrix({'a': 'hosta', 'b': 'hostb'})
            full = refusals.full(['VCPU'])
            known = {
                'ignored': [refusals.IGNORED],
                'full': [full, refusals.full(['MEMORY_MB'])],
                'isolated': [refusals.Refusal('are isolated', 'isolation')],
            }
            found.add('host filter', 'F', refused={'b': full})
            for name in names:
                for one in known[name]:
                    found.add('host filter', name, refused={'a': one})
            mine = types.SimpleNamespace(node='a', building_since=None)
            asked = asking.Asking(cloud, None, base.request_spec(), found)
            remarks.add(asked, operation, mine)
            self.assertEqual(bool(said), bool(found.remarks))
            if said:
                self.assertIn(said, found.remarks[0])
