# SPDX-License-Identifier: Apache-2.0

import types

from nova.scheduler.filters import affinity_filter as same_host_filter
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
            ('gone', True),
            # Of hosts that are in no zone.
            ('nova', True),
        ):
            aggregates = {
                name: types.SimpleNamespace(availability_zone=name)
                for name in ('az1', None)
            }
            cloud = make_cloud(aggs_by_id=aggregates)
            spec, found = base.request_spec(), matrix.Matrix({'a': 'host1'})
            spec.availability_zone, spec.scheduler_hints = zone, {}
            remarks.add(asking.Asking(cloud, None, spec, found))
            said = (
                'No aggregate has the availability zone gone that the request '
                'is for: nova ignores it'
            )
            if zone == 'nova':
                said = (
                    'nova ignores the availability zone nova: it is what '
                    'hosts without a zone are shown in '
                    '(default_availability_zone), and no aggregate has it'
                )
            self.assertEqual([said] * ignored, found.remarks)

    def test_the_default_zone_of_a_server_that_there_is(self):
        spec, found = base.request_spec(), matrix.Matrix({'a': 'host1'})
        spec.availability_zone, spec.scheduler_hints = 'nova', {}
        asked = asking.Asking(make_cloud(), None, spec, found)
        mine = types.SimpleNamespace(node='a', building_since=None)
        remarks.add(asked, 'migrate', mine)
        # Nor beside a host that is forced.
        spec.force_hosts = ['host1']
        remarks.add(asked)
        self.assertEqual([], found.remarks)


class IgnoredTestCase(testtools.TestCase):
    def ask(self, cloud, hints=(), **hosts):
        spec, found = base.request_spec(), matrix.Matrix(hosts)
        spec.scheduler_hints = dict.fromkeys(hints, ['x'])
        remarks.add(asking.Asking(cloud, None, spec, found))
        return found.remarks

    def test_hints_that_no_filter_reads(self):
        enabled = [same_host_filter.SameHostFilter()]
        cloud = make_cloud(enabled_filters=enabled)
        hints = 'same_host', 'query', 'whatever'
        self.assertEqual(
            [
                'nova ignores the scheduler hint query: JsonFilter is not in '
                '[filter_scheduler] enabled_filters'
            ],
            self.ask(cloud, hints, a='host1'),
        )

    def test_no_host_at_all(self):
        [said] = self.ask(make_cloud())
        self.assertIn('No nova-compute has registered.', said)
        # A silent cell may have some.
        self.assertEqual([], self.ask(make_cloud(silent_cells={'c': 'x'})))


def make_cloud(**fields):
    return types.SimpleNamespace(
        **{
            'unmapped': set(),
            'aggs_by_id': {},
            'enabled_filters': [],
            'silent_cells': {},
            **fields,
        }
    )


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
            cloud = make_cloud()
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
