# SPDX-License-Identifier: Apache-2.0

"""Queries without room for every aggregate; servers from before the mark."""

import inspect
from unittest import mock

from nova.cmd import manage

from nova_ext_sched.request_filters import isolation
from tests.functional import audits
from tests.functional import test_isolation

required = test_isolation.required
WINDOWS = 'CUSTOM_LICENSED_WINDOWS'


class BoundTestCase(test_isolation.IsolationTestCase):
    """max_forbidden_aggregates with the host filter to judge the rest."""

    options = {
        **test_isolation.IsolationTestCase.options,
        'max_forbidden_aggregates': 1,
    }
    weights = {'host1': 100, 'host2': 90, 'host3': 80, 'host4': 1}

    def member_of(self):
        (member_of,) = self.queries[-1]['member_of']
        return set(member_of.removeprefix('!in:').split(','))

    def test_largest_goes_in_and_the_host_filter_judges_the_rest(self):
        small = self.isolate('small', ['host1'], test_isolation.X)
        large = self.isolate('large', ['host2', 'host3'], test_isolation.Y)
        self.assertBootsOn('host4')
        self.assertEqual({large}, self.member_of())
        self.assertIn(
            'IsolatedAggregatesFilter checks the hosts of the other 1: small.',
            self.log,
        )
        # A forced host is not judged, so its aggregates go in.
        for zone, named in (
            ('nova:host1', {small}),
            ('nova:host2', {large}),
            ('nova::host1', {small}),
            ('nova::host3', {large}),
        ):
            self.assertNoValidHost(az=zone)
            self.assertEqual(named, self.member_of())
        # nova's own filter has put both in; ours adds none.
        self.flags(enable_isolated_aggregate_filtering=True, group='scheduler')
        self.assertBootsOn('host4')
        self.assertEqual({small, large}, self.member_of())


class BeforeTheMarkTestCase(audits.AuditTestCase):
    """Servers of an image that is marked after they were booted."""

    host_filters = ('IsolatedAggregatesFilter',)
    options = {'enable_isolated_aggregate_filtering': True}

    def setUp(self):
        super().setUp()
        image = self.image()
        self.server = self.boot(image=image, host='host1')
        self.outside = self.boot(image=image, host='host3')
        self.isolate('windows', ['host1', 'host2'], WINDOWS)
        marked = {'properties': {f'trait:{WINDOWS}': 'required'}}
        self.glance.update(None, image, marked, purge_props=False)

    def test_nova_manage_gives_a_server_the_trait(self):
        set_ = manage.ImagePropertyCommands()
        if "'trait:'" not in inspect.getsource(
            set_._validate_image_properties
        ).replace('"', "'"):
            self.skipTest('nova-manage refuses traits before nova 32')
        found = [(self.server['id'], 'host1', 'isolation')]
        self.assertEqual(found, self.found())
        self.act(self.server, 'os-stop', 'SHUTOFF')
        self.assertEqual(
            0, set_.set(self.server['id'], [f'trait:{WINDOWS}=required'])
        )
        self.assertEqual([], self.found())
        # The hosts that have no licence are closed to it from now on.
        self.act(self.server, 'migrate', 'VERIFY_RESIZE')
        self.assertEqual('host2', self.host_of(self.server))

    def test_a_resize_moves_one_in(self):
        licensed = self.flavor(specs={f'trait:{WINDOWS}': 'required'})
        self.act(self.outside, 'resize', 'VERIFY_RESIZE', flavorRef=licensed)
        self.assertEqual('host1', self.host_of(self.outside))


class FlavorAloneTestCase(test_isolation.IsolationTestCase):
    """isolation_trait_sources = flavor: no image opens an aggregate."""

    options = {
        **test_isolation.IsolationTestCase.options,
        'isolation_trait_sources': ['flavor'],
    }

    def test_boot_migrate_rebuild(self):
        uuid = self.isolate('windows', ['host1'], WINDOWS)
        # So that placement has a host for the image where it opens nothing.
        self.add_traits('host2', WINDOWS)
        windows = self.image(props=required(WINDOWS))
        licensed = self.flavor(specs=required(WINDOWS))
        self.assertBootsOn('host2', image=windows)
        self.assertEqual([f'!in:{uuid}'], self.queries[-1]['member_of'])
        self.assertNoValidHost(image=windows, az='nova:host1')
        by_flavor = self.assertBootsOn('host1', flavor=licensed)
        self.rebuild_server(by_flavor, self.image(), 'ACTIVE')
        # One that came by its image, before.
        self.flags(
            isolation_trait_sources=['flavor', 'image'], group='nova_ext_sched'
        )
        by_image = self.assertBootsOn('host1', image=windows)
        self.flags(isolation_trait_sources=['flavor'], group='nova_ext_sched')
        # Placement is not asked for a trait and against it.
        self.flags(forbid_by_trait=['CUSTOM_*'], group='nova_ext_sched')
        self._migrate_server(by_image)
        self.assertEqual('host2', self.host_of(by_image))
        self.assertEqual([f'!in:{uuid}'], self.queries[-1]['member_of'])
        self.a_member_contradicts_the_flavor()

    def a_member_contradicts_the_flavor(self):
        """nova refuses it too, later, and nobody else is concerned."""
        for specs, properties in (
            ({'os:secure_boot': 'required'}, {'os_secure_boot': 'disabled'}),
            (
                {'hw:maxphysaddr_mode': 'passthrough'},
                {'hw_maxphysaddr_mode': 'emulate'},
            ),
        ):
            # nova-api has no validator for each of them.
            with mock.patch.object(self.admin_api, 'microversion', '2.85'):
                flavor = self.flavor(specs=specs)
            wanted = {'flavor': flavor, 'image': self.image(**properties)}
            self.assertNoValidHost(**wanted)
            with mock.patch.object(
                isolation, '_find_usable', return_value=set()
            ):
                server = self.boot(**wanted, expected_state='ERROR')
                self.assertIsNone(server['OS-EXT-SRV-ATTR:host'])
        self.assertIn(
            'nova cannot read what flavor and image require '
            '(FlavorImageConflict: ',
            self.log,
        )
        self.assertNotIn('it could land on any host', self.log)


class SnapshotTestCase(test_isolation.IsolationTestCase):
    """What nova's non_inheritable_image_properties does, and does not."""

    def boot_from_snapshot(self, image=None, **metadata):
        """Boot a server from the snapshot of a new one; return its host."""
        snapshot = self.api.post_server_action(
            self.boot(image=image)['id'],
            {'createImage': {'name': 'snapshot', 'metadata': metadata}},
        )['image_id']
        return self.host_of(self.boot(image=snapshot))

    def test_the_owner_writes_the_trait_all_the_same(self):
        self.isolate('windows', ['host1'], WINDOWS)
        windows = self.image(props=required(WINDOWS))
        self.assertEqual('host1', self.boot_from_snapshot(windows))
        self.flags(non_inheritable_image_properties=[f'trait:{WINDOWS}'])
        # The snapshot of a licensed server is plain, ...
        self.assertEqual('host2', self.boot_from_snapshot(windows))
        # ... and whoever names the trait has it.
        self.assertEqual('host1', self.boot_from_snapshot(**required(WINDOWS)))
