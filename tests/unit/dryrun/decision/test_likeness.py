# SPDX-License-Identifier: Apache-2.0

"""Hosts and requests that nothing can tell apart."""

import json
import types
from unittest import mock

from nova import objects
import nova.conf
from nova.pci import stats
from nova.scheduler import host_manager
from nova.scheduler.filters import json_filter
from nova.scheduler.filters import num_instances_filter
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.filters import base
from nova_ext_sched.filters import isolation
from nova_ext_sched.policy import verdict
from tests.unit.dryrun.cloud import clouds

CONF = nova.conf.CONF
objects.register_all()

NOVAS = (num_instances_filter.NumInstancesFilter(), json_filter.JsonFilter())
ANYTHING = (mock.sentinel.policy, lambda state: verdict.PASS)
NUMA, PORT_GROUP = objects.InstanceNUMATopology(), objects.RequestGroup()
AGGREGATES = (mock.sentinel.policy, base.ByAggregates(lambda _: verdict.PASS))


class OthersFilter(base.PolicyFilter):
    """Of another package, with policies that may look at anything, or not."""

    __module__ = 'others'

    def __init__(self, *found):
        self.found = found

    def decisions(self, spec_obj):
        yield from self.found


def state(**fields):
    found = host_manager.HostState('host', 'node', 'cell')
    found.pci_stats = stats.PciDeviceStats(None)
    vars(found).update(fields)
    return likeness.key_of_state(found)


class HostsTestCase(testtools.TestCase):
    def test_what_tells_two_hosts_apart(self):
        aggregate = objects.Aggregate(id=1, name='a', metadata={})
        devices = stats.PciDeviceStats(None)
        devices.pools = [{'vendor_id': '8086', 'count': 1}]
        for alike, fields in (
            (True, {'host': 'other', 'nodename': 'other', 'uuid': 'other'}),
            (True, {'instances': {'uuid': None}, 'cell_uuid': 'other'}),
            (True, {'stats': {'num_proj_p': '1'}}),
            (True, {'service': {'disabled': False}}),
            (True, {'pci_stats': stats.PciDeviceStats(None)}),
            (False, {'pci_stats': devices}),
            (False, {'free_ram_mb': 1}),
            (False, {'free_disk_mb': 1}),
            (False, {'vcpus_used': 1}),
            (False, {'num_instances': 1}),
            (False, {'cpu_allocation_ratio': 2.0}),
            (False, {'aggregates': [aggregate]}),
            (False, {'numa_topology': objects.NUMATopology(cells=[])}),
            # What a plugin adds, and nobody knows.
            (False, {'others_field': 1}),
            (False, {'others_object': object()}),
        ):
            self.assertIs(alike, state() == state(**fields), fields)
        # What has no text of its own is like nothing else.
        one, other = object(), object()
        self.assertNotEqual(state(mine=one), state(mine=other))

    def test_what_placement_says_of_two_hosts(self):
        for alike, room, more in (
            (True, (8, 2), {}),
            (False, (9, 2), {}),
            (False, (8, 3), {}),
            # A sharing provider.
            (False, (8, 2), {'shared': {'DISK_GB': 1}}),
        ):
            keys = set()
            for host, its in (('a', (8, 2)), ('b', room)):
                found = {
                    host: clouds.make_summary(VCPU=its),
                    'shared': clouds.make_summary(DISK_GB=(8, 2)),
                }
                for uuid, one in found.items():
                    one['root_provider_uuid'] = uuid
                requests = [clouds.make_request(**{host: {'VCPU': 2}}, **more)]
                tree = {host: found[host]}
                key = likeness.of_host(host, None, requests, found, tree)
                keys.add(key)
            self.assertIs(alike, len(keys) == 1, (room, more))

    def test_what_requests_and_filters_allow(self):
        """A host stands for all like it, each server takes the same of it,
        and it is known what filters read.
        """
        one = objects.InstancePCIRequest(count=1)
        device = objects.InstancePCIRequests(requests=[one])
        none = objects.InstancePCIRequests(requests=[])
        group, hints = 'instance_group', 'scheduler_hints'
        for expected, fields, *more in (
            ('shared even known', {}),
            ('shared even known', {}, isolation.IsolatedAggregatesFilter()),
            ('shared even known', {}, OthersFilter(AGGREGATES)),
            ('', {}, OthersFilter(ANYTHING)),
            ('', {}, OthersFilter(AGGREGATES, ANYTHING)),
            ('known', {group: objects.InstanceGroup()}),
            ('shared even known', {hints: {'other': ['x']}}),
            # The hint of the JSON filter.
            ('known', {hints: {'query': ['["=", "$host", "x"]']}}),
            ('shared even known', {'specs': {'hw:x': '1', 'x:y': '2'}}),
            ('shared known', {'specs': {'vcpus_used': '>= 4'}}),
            ('shared known', {'specs': {'capabilities:free_ram_mb': '1'}}),
            ('shared known', {'numa_topology': NUMA}),
            ('shared known', {'requested_resources': [PORT_GROUP]}),
            ('shared even known', {'pci_requests': none}),
            ('shared known', {'pci_requests': device}),
        ):
            extra_specs = fields.pop('specs', {})
            spec = clouds.make_spec(**fields)
            spec.flavor.extra_specs = extra_specs
            asked = [*NOVAS, *more], spec
            found = {
                'shared': likeness.are_shared(*asked),
                'even': likeness.are_even(*asked),
                'known': likeness.are_known(*asked),
            }
            said = ' '.join(name for name in found if found[name])
            self.assertEqual(expected, said, (fields, extra_specs, more))


UUIDS = [f'af497212-0000-4000-8000-{number:012}' for number in range(2)]


def stored(changes=('id',), **fields):
    """Return an object of nova's as it is stored."""
    return {
        'nova_object.name': 'X',
        'nova_object.changes': [*changes],
        'nova_object.data': fields,
    }


def devices(*requests, changes=()):
    """Return the request for devices, each with fields as given."""
    values = {'alias_name': 'gpu', 'count': 1}
    found = [stored(changes, **values, **one) for one in requests]
    return {'pci_requests': stored(requests=found)}


def ports(*found, network='p'):
    """Return ports of a network, each with fields as given."""
    meta = {'physical_network': network, 'tunneled': False}
    of_all = {'network': {'id': 'net', 'meta': meta}}
    return {'vifs': [{**of_all, **one} for one in found]}


def make_key(number=0, **changed):
    """Return the key of a server's request, with fields as given."""
    uuid, values = UUIDS[number], dict(changed)
    vifs = values.pop('vifs', ())
    instance = types.SimpleNamespace(
        uuid=uuid,
        image_ref=values.pop('image_ref', 'image'),
        get_network_info=lambda: vifs,
        system_metadata={
            'image_hw': values.pop('copied', 'qemu'),
            'boot_roles': uuid,
        },
    )
    kind, text = values.pop('kind', 'live'), values.pop('text', None)
    spec = {
        'instance_uuid': uuid,
        'id': number,
        'user_id': f'user{number}',
        'project_id': 'p',
        'flavor': stored(name='small'),
        'image': stored(id='image'),
        'pci_requests': stored(instance_uuid=uuid),
        'instance_group': None,
        'scheduler_hints': {},
        'ignore_hosts': [f'host{number}'],
        **values,
    }
    if text is None:
        text = json.dumps(stored(['id', 'flavor'][:number], **spec))
    return likeness.of_request(kind, instance, text)


# Whether it is like another, whole, and whether nova-api reads no more of it.
SAME, OTHER = (True, True, True), (False, True, True)
# nova reads more of it; without that it is like others.
PROPOSES, IMAGE = (True, False, True), (False, False, True)
PORT = (False, False, False)

# A request, and what changes.
LIKENESS = (
    ({}, (
        (SAME, {}),
        (OTHER, {'kind': 'cold'}),
        (OTHER, {'project_id': 'other'}),
        # It was rebuilt with the same image, which had other properties.
        (OTHER, {'copied': 'vmware'}),
        (OTHER, {'flavor': stored(name='large')}),
        (OTHER, {'availability_zone': 'z'}),
        (OTHER, {'numa_topology': stored(cells=[])}),
        (OTHER, {'image': stored(id='i'), 'image_ref': 'i'}),
        # Of a volume nova stores the image that Cinder knows.
        (OTHER, {'image': stored(), 'image_ref': ''}),
        (OTHER, {'image': None}),
        (OTHER, ports({})),
        (OTHER, devices({})),
        (PROPOSES, {'instance_group': stored(uuid='g')}),
        (PROPOSES, {'scheduler_hints': {'different_host': ['x']}}),
        # Which other image it runs is the scheduler's matter.
        (IMAGE, {'image_ref': 'rebuilt'}),
        (IMAGE, {'image_ref': ''}),
    )),
    (ports({}), (
        # A network counts once.
        (SAME, ports({'id': 'x'}, {'id': 'y'})),
        (SAME, ports({'profile': {'allocation': None}}, {'profile': None})),
        (OTHER, ports({}, network='q')),
        (OTHER, ports({}, network=None)),
        # Neutron asks about it.
        (PORT, ports({'profile': {'allocation': {'g': 'rp'}}})),
    )),
    (devices({}), (
        # nova numbers each request of a device.
        (SAME, devices({'request_id': 'x'})),
        (SAME, devices({}, changes=['count'])),
        (OTHER, devices({}, {})),
        (OTHER, devices({'spec': ['x']})),
        (PORT, devices({'requester_id': 'port'})),
    )),
    # It cannot be read.
    ({}, (
        *((None, {'text': one}) for one in ('{', '[]', '""', '{}')),
        (None, {'text': '{"nova_object.data": null}'}),
        (None, {'pci_requests': 'flavor'}),
        (None, {'pci_requests': [1]}),
        (None, {'pci_requests': stored(requests=[1])}),
    )),
)  # fmt: skip


class RequestTestCase(testtools.TestCase):
    """What nova reads of a request."""

    def test_likeness(self):
        for plain, rows in LIKENESS:
            for expected, changed in rows:
                found = make_key(**changed)
                # Of another server too.
                self.assertEqual(found, make_key(1, **changed))
                if found is not None:
                    is_like = found.text == make_key(**plain).text
                    found = is_like, found.is_whole, found.has_all
                self.assertEqual(expected, found, changed)

    def test_routed_networks(self):
        """Their segments are aggregates, which nova asks Neutron about."""
        name = 'query_placement_for_routed_network_aggregates'
        config = self.useFixture(config_fixture.Config(CONF))
        config.config(group='scheduler', **{name: True})
        self.assertTrue(make_key().is_whole)
        self.assertFalse(make_key(**ports({})).is_whole)
