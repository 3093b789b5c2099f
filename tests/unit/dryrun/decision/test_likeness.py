# SPDX-License-Identifier: Apache-2.0

"""Hosts and requests that nothing can tell apart."""

import json
import types
from unittest import mock

import ddt
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
from tests.unit.request_filters import base as request_base

CONF = nova.conf.CONF
objects.register_all()

NOVAS = (num_instances_filter.NumInstancesFilter(), json_filter.JsonFilter())


class OthersFilter(base.PolicyFilter):
    """Of another package, and it may look at anything."""

    __module__ = 'others'

    def decisions(self, spec_obj):
        yield mock.sentinel.policy, lambda host_state: verdict.PASS


class OthersAggregatesFilter(base.PolicyFilter):
    """Of another package: it looks at aggregates alone."""

    __module__ = 'others'

    def decisions(self, spec_obj):
        yield (
            mock.sentinel.policy,
            base.ByAggregates(lambda aggregates: verdict.PASS),
        )


class OthersBothFilter(OthersFilter):
    """By one policy it looks at aggregates alone, by the other not."""

    def decisions(self, spec_obj):
        yield from OthersAggregatesFilter.decisions(self, spec_obj)
        yield from super().decisions(spec_obj)


def state(**fields):
    found = host_manager.HostState('host', 'node', 'cell')
    found.pci_stats = stats.PciDeviceStats(None)
    vars(found).update(fields)
    return found


AGGREGATE = objects.Aggregate(id=1, name='a', metadata={})


@ddt.ddt
class DescriptionTestCase(testtools.TestCase):
    """What tells two hosts apart."""

    @ddt.data(
        ({'host': 'other'}, True),
        ({'nodename': 'other'}, True),
        ({'uuid': 'other'}, True),
        ({'instances': {'uuid': None}}, True),
        ({'stats': {'num_proj_p': '1'}}, True),
        ({'service': {'disabled': False}}, True),
        ({'cell_uuid': 'other'}, True),
        ({'free_ram_mb': 1}, False),
        ({'free_disk_mb': 1}, False),
        ({'vcpus_used': 1}, False),
        ({'num_instances': 1}, False),
        ({'cpu_allocation_ratio': 2.0}, False),
        ({'aggregates': [AGGREGATE]}, False),
        ({'numa_topology': objects.NUMATopology(cells=[])}, False),
        # What a plugin adds, and nobody knows.
        ({'others_field': 1}, False),
        ({'others_object': object()}, False),
    )
    @ddt.unpack
    def test_fields(self, fields, alike):
        one, other = (
            likeness.key_of_state(state()),
            likeness.key_of_state(state(**fields)),
        )
        self.assertIs(alike, one == other)

    def test_devices(self):
        one, other = state(), state()
        self.assertEqual(
            likeness.key_of_state(one), likeness.key_of_state(other)
        )
        other.pci_stats.pools = [{'vendor_id': '8086', 'count': 1}]
        self.assertNotEqual(
            likeness.key_of_state(one), likeness.key_of_state(other)
        )

    def test_objects_without_a_text_are_like_nothing_else(self):
        states = [state(others_object=object()) for _ in range(2)]
        self.assertNotEqual(*map(likeness.key_of_state, states))


@ddt.ddt
class KindsTestCase(testtools.TestCase):
    """Whether hosts a and b share an answer."""

    def are_alike(self, more=NOVAS[0], hints=None, group=None, **rooms):
        spec = request_base.request_spec(
            scheduler_hints=hints or {}, instance_group=group
        )
        summaries = {
            host: {
                **clouds.make_summary(VCPU=rooms.get(host, (8, 2))),
                'root_provider_uuid': host,
            }
            for host in 'ab'
        }
        summaries['shared'] = {
            **clouds.make_summary(DISK_GB=(8, 2)),
            'root_provider_uuid': 'shared',
        }
        shared = rooms.get('shared', {})
        one, other = (
            likeness.of_host(
                host,
                None,
                [clouds.make_request(**{host: {'VCPU': 2}}, **shared)],
                summaries,
                {host: summaries[host]},
            )
            for host in 'ab'
        )
        return likeness.are_shared([*NOVAS, more], spec) and one == other

    @ddt.data(
        ({}, True),
        ({'b': (9, 2)}, False),
        ({'b': (8, 3)}, False),
        # A sharing provider.
        ({'shared': {'shared': {'DISK_GB': 1}}}, False),
        ({'group': objects.InstanceGroup()}, False),
        # The hint of the JSON filter.
        ({'hints': {'other': ['x']}}, True),
        ({'hints': {'query': ['["=", "$host", "x"]']}}, False),
        ({'more': isolation.IsolatedAggregatesFilter()}, True),
        ({'more': OthersAggregatesFilter()}, True),
        ({'more': OthersFilter()}, False),
        ({'more': OthersBothFilter()}, False),
    )
    @ddt.unpack
    def test_alike(self, asked, expected):
        self.assertIs(expected, self.are_alike(**asked))

    @ddt.data(
        ({}, True),
        ({'extra_specs': {'hw:x': '1', 'capabilities:y': '2'}}, True),
        ({'extra_specs': {'vcpus_used': '>= 4'}}, False),
        ({'extra_specs': {'capabilities:free_ram_mb': '1'}}, False),
        ({'numa_topology': objects.InstanceNUMATopology()}, False),
        ({'requested_resources': [objects.RequestGroup()]}, False),
        ({'instance_group': objects.InstanceGroup()}, False),
        ({'devices': []}, True),
        ({'devices': [objects.InstancePCIRequest(count=1)]}, False),
        ({'more': OthersFilter()}, False),
    )
    @ddt.unpack
    def test_even(self, asked, expected):
        extra_specs = asked.pop('extra_specs', {})
        more = [asked.pop('more')] if 'more' in asked else []
        devices = asked.pop('devices', None)
        if devices is not None:
            asked['pci_requests'] = objects.InstancePCIRequests(
                requests=devices
            )
        spec = request_base.request_spec(
            **{
                'flavor': request_base.flavor(extra_specs=extra_specs),
                'instance_group': None,
                'numa_topology': None,
                'pci_requests': None,
                **asked,
            }
        )
        self.assertIs(expected, likeness.are_even([*NOVAS, *more], spec))


UUIDS = [f'af497212-0000-4000-8000-{number:012}' for number in range(2)]


def make_object(changes=('id',), **fields):
    """Return an object of nova's as it is stored."""
    return {
        'nova_object.name': 'X',
        'nova_object.changes': [*changes],
        'nova_object.data': fields,
    }


def make_device(**fields):
    return make_object(alias_name='gpu', count=1, **fields)


def make_devices(*requests, **fields):
    return make_object(requests=[*requests], **fields)


def make_vif(physical_network='p', **fields):
    meta = {'physical_network': physical_network, 'tunneled': False}
    return {'network': {'id': 'net', 'meta': meta}, **fields}


def make_key(
    number=0,
    kind='live',
    vifs=(),
    image_ref='image',
    copied='qemu',
    text=None,
    **changed,
):
    """Return the key of a server's request, with fields as given."""
    uuid = UUIDS[number]
    spec = {
        'instance_uuid': uuid,
        'id': number,
        'user_id': f'user{number}',
        'project_id': 'p',
        'flavor': make_object(name='small'),
        'image': make_object(id='image'),
        'pci_requests': make_devices(instance_uuid=uuid),
        'instance_group': None,
        'scheduler_hints': {},
        'ignore_hosts': [f'host{number}'],
        **changed,
    }
    instance = types.SimpleNamespace(
        uuid=uuid,
        image_ref=image_ref,
        get_network_info=lambda: vifs,
        system_metadata={'image_hw': copied, 'boot_roles': uuid},
    )
    stored = json.dumps(make_object(['id', 'flavor'][:number], **spec))
    return likeness.of_request(
        kind, instance, stored if text is None else text
    )


@ddt.ddt
class RequestTestCase(testtools.TestCase):
    """What nova reads of a request."""

    @ddt.data(
        {},
        {'vifs': [make_vif(id='x'), make_vif(id='y')]},
        # nova numbers each request of a device.
        {'pci_requests': make_devices(make_device(request_id='x'))},
        # Of a volume nova stores the image that Cinder knows.
        {'image': make_object(), 'image_ref': ''},
        {'image': None},
    )
    def test_requests_of_two_servers_are_alike(self, changed):
        one = make_key(0, **changed)
        self.assertEqual(one, make_key(1, **changed))
        self.assertTrue(one.is_whole)

    def test_a_network_counts_once(self):
        one, *others = (
            make_key(vifs=vifs).text
            for vifs in (
                [make_vif(id='a'), make_vif(id='b')],
                [make_vif('q')],
                [make_vif(None)],
            )
        )
        self.assertEqual(make_key(vifs=[make_vif(id='c')]).text, one)
        self.assertEqual(3, len({one, *others}))

    def test_requests_of_a_device_have_ids_and_the_order_of_fields(self):
        def make(request_id, changes):
            one = make_device(request_id=request_id)
            one['nova_object.changes'] = changes
            return make_key(
                pci_requests=make_devices(one, make_device(request_id='z'))
            )

        self.assertEqual(make('x', ['a', 'b']), make('y', ['b', 'a']))
        self.assertNotEqual(
            make('x', []), make_key(pci_requests=make_devices(make_device()))
        )

    @ddt.data(
        {'kind': 'cold'},
        {'project_id': 'other'},
        # It was rebuilt with the same image, which had other properties then.
        {'copied': 'vmware'},
        {'flavor': make_object(name='large')},
        {'availability_zone': 'z'},
        {'image': make_object(id='i'), 'image_ref': 'i'},
        {'numa_topology': make_object(cells=[])},
        {'pci_requests': make_devices(make_device())},
        {'pci_requests': make_devices(make_device(spec=['x']))},
        {'vifs': [make_vif()]},
        {'vifs': [make_vif('q')]},
    )
    def test_what_tells_them_apart(self, changed):
        found = make_key(**changed)
        self.assertTrue(found.is_whole)
        self.assertNotEqual(make_key().text, found.text)

    @ddt.data(
        # nova reads more of them; without it they are like others.
        {'instance_group': make_object(uuid='g')},
        {'scheduler_hints': {'different_host': ['x']}},
    )
    def test_one_of_which_nova_reads_more(self, changed):
        # nova-api reads no more of them.
        self.assertEqual((make_key().text, False, True), make_key(**changed))

    @ddt.data('rebuilt', '')
    def test_one_that_runs_another_image(self, image_ref):
        """It says nothing of those that have all in themselves."""
        plain, odd = make_key(), make_key(image_ref=image_ref)
        # Which one matters to the scheduler alone.
        self.assertEqual((False, True), odd[1:])
        self.assertNotEqual(plain.text, odd.text)
        self.assertEqual(odd, make_key(1, image_ref=image_ref))

    def assertOdd(self, plain, odd):
        self.assertTrue(plain.is_whole)
        self.assertEqual((False, False), odd[1:])
        self.assertNotEqual(plain.text, odd.text)

    def test_a_port_that_neutron_asks_about(self):
        ports = [make_vif(profile={'allocation': {'g': 'rp'}})]
        self.assertOdd(make_key(vifs=[make_vif()]), make_key(vifs=ports))
        ports = [
            make_vif(profile={'allocation': None}),
            make_vif(profile=None),
        ]
        self.assertTrue(make_key(vifs=ports).is_whole)
        # The same port's device.
        one, other = (
            make_key(pci_requests=make_devices(make_device(**more)))
            for more in ({}, {'requester_id': UUIDS[1]})
        )
        self.assertOdd(one, other)

    def test_routed_networks(self):
        """Their segments are aggregates, which nova asks Neutron about."""
        config = self.useFixture(config_fixture.Config(CONF)).config
        config(
            group='scheduler',
            query_placement_for_routed_network_aggregates=True,
        )
        self.assertTrue(make_key().is_whole)
        self.assertFalse(make_key(vifs=[make_vif()]).is_whole)

    @ddt.data('{', '[]', '{"nova_object.data": null}', '""', '{}')
    def test_one_that_cannot_be_read(self, text):
        self.assertIsNone(make_key(text=text))

    @ddt.data('flavor', [1], {'nova_object.data': {'requests': [1]}})
    def test_a_part_that_cannot_be_read(self, part):
        self.assertIsNone(make_key(pci_requests=part))


@ddt.ddt
class KnownTestCase(testtools.TestCase):
    @ddt.data(
        ((*NOVAS, isolation.IsolatedAggregatesFilter()), True),
        ((OthersAggregatesFilter(),), True),
        ((OthersFilter(),), False),
        ((NOVAS[0], OthersBothFilter()), False),
    )
    @ddt.unpack
    def test_whether_it_is_known_what_filters_read(self, host_filters, known):
        """Hints and groups do not matter: their filters are asked again."""
        spec = request_base.request_spec(
            scheduler_hints={'query': ['["="]']},
            instance_group=objects.InstanceGroup(),
        )
        self.assertIs(known, likeness.are_known(host_filters, spec))
