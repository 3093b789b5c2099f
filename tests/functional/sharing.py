# SPDX-License-Identifier: Apache-2.0

"""Base of the functional tests of hosts whose disk is elsewhere."""

from oslo_utils.fixture import uuidsentinel

from tests.functional import capacity_driver


class StorageMixin:
    """Hosts report no disk (:mod:`.capacity_driver`); see ``share``."""

    driver = capacity_driver.Driver

    def share(self, gb, *hosts, name='storage'):
        """Let hosts share a provider of disk."""
        shared = self._post_resource_provider(name)['uuid']
        disk = capacity_driver.inventory(gb, resource_class='DISK_GB')
        self._set_inventory(shared, disk)
        self._set_provider_traits(shared, ['MISC_SHARES_VIA_AGGREGATE'])
        # One for all: it takes the place of others that a provider is in.
        for provider in (shared, *map(self._get_provider_uuid_by_host, hosts)):
            self._set_aggregate(provider, uuidsentinel.storage)
