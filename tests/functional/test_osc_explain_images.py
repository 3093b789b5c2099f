# SPDX-License-Identifier: Apache-2.0

"""openstack scheduler explain --server: the image that nova goes by."""

from nova.tests import fixtures as nova_fixtures
from nova.tests.functional.api import client

from tests.functional import explain

WINDOWS = 'CUSTOM_LICENSED_WINDOWS'
BUS = 'COMPUTE_STORAGE_BUS'
PREFILTER = ('--option', 'scheduler.image_metadata_prefilter=True')


class ImageTestCase(explain.ThreeHostsTestCase):
    """A server of an image that only host1 and host2 support."""

    def setUp(self):
        self.flags(image_metadata_prefilter=True, group='scheduler')
        super().setUp()
        self.add_traits('host1', f'{BUS}_VIRTIO')
        self.add_traits('host2', f'{BUS}_VIRTIO')
        self.add_traits('host3', f'{BUS}_SCSI')
        self.image_id = self.image(hw_disk_bus='virtio')
        self.server = self.boot(image=self.image_id)
        self.assertEqual('host1', self.host_of(self.server))
        self.told = ('--server', self.server['id'], *PREFILTER)

    def assertAsTheScheduler(self, expected):
        results = self.results(*self.told)
        self.assertEqual(
            expected, {host for host in results if not results[host]}
        )
        self.scheduled.clear()
        self.migrate()
        ((from_placement, _),) = self.scheduled
        self.assertEqual(expected, from_placement)

    def migrate(self):
        try:
            self.admin_api.post_server_action(
                self.server['id'], {'migrate': None}
            )
        except client.OpenStackApiException as exc:
            # The services of the tests answer one another at once.
            self.assertIn('No valid host', str(exc))
        return self._wait_for_server_parameter(
            self.server, {'OS-EXT-STS:task_state': None}
        )

    def change_image(self, **properties):
        self.glance.images[self.image_id]['properties'].update(properties)


class ServerImageTestCase(ImageTestCase):
    """Glance has something else today than nova stored with the server."""

    def test_property_changed_after_boot(self):
        self.change_image(hw_disk_bus='scsi')
        self.assertAsTheScheduler({'host1', 'host2'})

    def test_property_added_after_boot(self):
        self.change_image(hw_cdrom_bus='scsi', architecture='amd64')
        self.assertAsTheScheduler({'host1', 'host2'})

    def test_traits_are_those_of_today_and_that_is_said(self):
        self.isolate('windows', ['host3'], WINDOWS)
        self.change_image(**{f'trait:{WINDOWS}': 'required'})
        self.assertEqual('traits', self.results(*self.told)['host2'])
        said = (
            '(not known: which trait: properties the image had when the '
            'server was given it; those count for nova, and those of today '
            'are used here)\n'
        )
        self.assertIn(said, self.explain_text(*self.told)[1])
        # Not of an image that the command names.
        named = ('--image', self.image_id)
        self.assertNotIn(said, self.explain_text(*self.told, *named)[1])

    def test_image_is_deleted(self):
        del self.glance.images[self.image_id]
        output = self.explain_text(*self.told)[1]
        self.assertIn(
            f'(not known: the traits that image {self.image_id} required, '
            'which Glance does not have any more)\n',
            output,
        )
        self.assertAsTheScheduler({'host1', 'host2'})

    def test_deleted_image_that_the_command_names(self):
        del self.glance.images[self.image_id]
        status, output = self.explain_text(
            *self.told, '--image', self.image_id
        )
        self.assertEqual(1, status)
        self.assertIn(f'No Image found for {self.image_id}', output)
        # Another image needs nothing of the server's.
        other = self.image(hw_disk_bus='scsi')
        results = self.results(*self.told, '--image', other)
        self.assertEqual(
            {'host1': 'traits', 'host2': 'traits', 'host3': ''}, results
        )

    def test_refused_rebuild(self):
        """Traits are those of its own image, the rest of the refused one.

        nova puts the image of the server back, and not its properties, by
        which image_metadata_prefilter goes.
        """
        self.isolate('windows', ['host2'], WINDOWS)
        licensed = self.image(
            hw_disk_bus='scsi', props={f'trait:{WINDOWS}': 'required'}
        )
        for action, state in (
            ({'rebuild': {'imageRef': licensed}}, 'ERROR'),
            ({'os-resetState': {'state': 'active'}}, 'ACTIVE'),
        ):
            self.admin_api.post_server_action(self.server['id'], action)
            self.server = self._wait_for_state_change(self.server, state)
        self.assertEqual(self.image_id, self.server['image']['id'])
        self.assertAsTheScheduler({'host3'})


class KeysOfImagesTestCase(ImageTestCase):
    """Reserved aggregates are looked up in Glance for each request."""

    options = {
        'placement_req_required_member_prefix': ['reservation:'],
        'placement_req_default_forbidden_member_prefix': ['reservation:'],
        'member_sources': ['image'],
    }

    def setUp(self):
        super().setUp()
        self.aggregate('win', ['host2'], metadata={'reservation:win': ''})
        for name, (value,) in self.options.items():
            self.told += ('--option', f'{name}={value}')

    def test_key_added_after_boot(self):
        self.change_image(**{'reservation:win': ''})
        self.assertAsTheScheduler({'host2'})

    def test_property_changed_after_boot(self):
        self.change_image(hw_disk_bus='scsi')
        self.assertAsTheScheduler({'host1'})

    def test_image_is_deleted(self):
        """The scheduler cannot read the keys, and finds no host."""
        del self.glance.images[self.image_id]
        self.assertEqual(
            {'keys of the image: not in Glance any more': 2},
            {
                words: count
                for words, count in self.removed(*self.told).items()
                if words.startswith('keys')
            },
        )
        self.assertEqual(
            {'reservation'},
            set(self.results(*self.told).values()) - {'traits'},
        )
        self.scheduled.clear()
        self.migrate()
        self.assertEqual([], self.scheduled)


class VolumeFromImageTestCase(explain.ThreeHostsTestCase):
    """nova knows the image of a volume that it makes from one."""

    def test_keys_of_the_image_count(self):
        self.useFixture(nova_fixtures.CinderFixture(self))
        prefixes = {
            f'placement_req_{name}_member_prefix': ['reservation:']
            for name in ('required', 'default_forbidden')
        }
        self.flags(
            group='nova_ext_sched', member_sources=['image'], **prefixes
        )
        self.aggregate('lease', ['host2'], metadata={'reservation:1': 'true'})
        image = self.image(props={'reservation:1': 'true'})
        flavor = self.flavor()
        conf = self.nova_conf(
            nova_ext_sched={'member_sources': 'image', **prefixes}
        )
        results = self.results(
            *('--flavor', flavor, '--image', image, '--boot-from-volume'),
            *('--nova-conf', conf),
        )
        self.assertEqual(
            {'host2'}, {host for host in results if not results[host]}
        )
        self.boot_or_fail(
            {
                'flavorRef': flavor,
                'block_device_mapping_v2': [
                    {
                        'boot_index': 0,
                        'source_type': 'image',
                        'destination_type': 'volume',
                        'uuid': image,
                        'volume_size': 1,
                    }
                ],
            }
        )
        self.assertEqual([({'host2'}, {'host2'})], self.scheduled)
