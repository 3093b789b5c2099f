# SPDX-License-Identifier: Apache-2.0

"""A volume driver that stores nothing."""

from cinder.volume import driver


class StoresNothing(driver.VolumeDriver):
    """Says yes to everything; there is room for a petabyte."""

    def do_setup(self, context):
        pass

    def check_for_setup_error(self):
        pass

    def get_volume_stats(self, refresh=False):
        return {
            'volume_backend_name': 'nothing',
            'vendor_name': 'nobody',
            'driver_version': '1',
            'storage_protocol': 'nothing',
            'total_capacity_gb': 1000000,
            'free_capacity_gb': 1000000,
            'reserved_percentage': 0,
            'multiattach': True,
        }

    def create_volume(self, volume):
        pass

    def delete_volume(self, volume):
        pass

    def create_cloned_volume(self, volume, src_vref):
        pass

    def create_volume_from_snapshot(self, volume, snapshot):
        pass

    def clone_image(
        self, context, volume, image_location, image_meta, image_service
    ):
        # Else cinder would look at the image with qemu-img.
        return {}, True

    def create_snapshot(self, snapshot):
        pass

    def delete_snapshot(self, snapshot):
        pass

    def extend_volume(self, volume, new_size):
        pass

    def copy_image_to_volume(
        self, context, volume, image_service, image_id, **kwargs
    ):
        pass

    def copy_volume_to_image(self, context, volume, image_service, image_meta):
        image_service.update(context, image_meta['id'], {}, b'nothing')

    def ensure_export(self, context, volume):
        pass

    def create_export(self, context, volume, connector):
        pass

    def remove_export(self, context, volume):
        pass

    def initialize_connection(self, volume, connector, **kwargs):
        return {'driver_volume_type': 'nothing', 'data': {}}

    def terminate_connection(self, volume, connector, **kwargs):
        pass
