# SPDX-License-Identifier: Apache-2.0

import types

from nova import objects
import testtools

from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.decision import reasons
from nova_ext_sched.dryrun.decision import record
from nova_ext_sched.policy import isolation
from tests.unit.dryrun.cloud import clouds
from tests.unit.request_filters import base

DISABLED = '!COMPUTE_STATUS_DISABLED'
SYNC = 'run nova-manage placement sync_aggregates'
SET = 'use openstack resource provider aggregate set'
MISSING = 'aggregate missing in placement'
LEFT = 'aggregate left in placement'
ZONE = reasons.AVAILABILITY_ZONE

AGGREGATES = [
    objects.Aggregate(uuid=uuid, name=name, hosts=hosts, metadata={})
    for uuid, name, hosts in (
        ('u1', 'rack1', ['h1', 'metal']),
        ('U2', 'lab\n', ['h1']),
    )
]


def service(disabled, reason=None):
    return {'disabled': disabled, 'disabled_reason': reason}


class RecordTestCase(testtools.TestCase):
    def compare(self, uuid, key, value, policy=None, zone=None, **service_):
        states = {}
        if service_:
            states[uuid] = types.SimpleNamespace(service=service_)
        hosts = {'h1': 'h1', 'h2': 'h2', 'm1': 'metal', 'm2': 'metal'}
        cloud = clouds.stub(
            hosts,
            states=states,
            aggs_by_id=dict(enumerate(AGGREGATES)),
            aggregates_of=lambda on: [a for a in AGGREGATES if on in a.hosts],
            nodes_of=lambda host: [one for one in hosts if hosts[one] == host],
        )
        spec = base.request_spec(availability_zone=zone)
        words = reasons.Reasons(cloud, spec)
        part = query.Part(key, value)
        return record.compare(words, part, policy, [uuid]).get(uuid)

    def test_services(self):
        for given, kind, cause, detail in (
            # nova's record of the service; why it is refused, and what is
            # said.
            (service(True), 'are disabled', 'disabled service', ''),
            (service(True, 'OPS-1234'), 'are disabled', 'disabled service',
             'OPS-1234'),
            (service(True, 'a\nb'), 'are disabled', 'disabled service',
             "'a\\nb'"),
            (service(False),
             'are enabled in nova, but disabled in placement (trait '
             'COMPUTE_STATUS_DISABLED): restart nova-compute there',
             'disabled in placement', ''),
            ({}, 'have no nova-compute service record', 'service record',
             'restart nova-compute there'),
        ):  # fmt: skip
            found = self.compare('h1', 'root_required', DISABLED, **given)
            found = found.phrase, found.cause, found.detail
            self.assertEqual((kind, cause, detail), found)

    def test_aggregates(self):
        for host, value, policy, zone, kind, cause in (
            # The host, what placement misses, the policy and the zone; what is
            # said, and the cause. None where nova says the same.
            (*('h1', 'in:u1,u9', None, None),
             f'are in aggregate rack1 in nova, but not in placement: {SYNC}',
             MISSING),
            # Names that operators wrote; UUIDs in any case.
            (*('h1', 'in:u2', None, 'az1'),
             "are in aggregate 'lab\\n' in nova, but not in placement: "
             f'{SYNC}', MISSING),
            # Its aggregates have names that no user knows.
            (*('h1', 'in:u1', ZONE, 'az1'),
             'are in availability zone az1 in nova, but not in placement: '
             f'{SYNC}', MISSING),
            # nova-manage fails where a nova-compute has several nodes.
            (*('m2', 'in:u1', None, None),
             f'are in aggregate rack1 in nova, but not in placement: {SET}',
             MISSING),
            ('h2', 'in:u1,u2', ZONE, 'az1', None, None),
            ('h1', '!in:u1', isolation.DECLARATION, None, None, None),
            (*('h2', '!in:u1', isolation.DECLARATION, None),
             'are isolated in placement, but in no such aggregate in nova: '
             f'{SET}', LEFT),
            (*('h2', '!in:u1', None, None),
             'are in a forbidden aggregate in placement, but in no such '
             f'aggregate in nova: {SET}', LEFT),
        ):  # fmt: skip
            found = self.compare(host, 'member_of', value, policy, zone)
            found = found and found.phrase, found and found.cause
            self.assertEqual((kind, cause), found)

    def test_of_what_placement_has_no_copy(self):
        for key, value in (
            ('required', 'T'),
            ('root_required', '!T'),
            ('resources', 'VCPU:1'),
            ('in_tree', 'h1'),
            ('group', '1: resources=VGPU%3A1'),
        ):
            self.assertIsNone(self.compare('h1', key, value))
