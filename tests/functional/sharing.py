# SPDX-License-Identifier: Apache-2.0

"""Base of the functional tests of hosts whose disk is elsewhere."""

import fixtures
from oslo_utils import uuidutils

from tests.functional import capacity_driver


class StorageMixin:
    """Hosts report no disk (:mod:`.capacity_driver`); see ``share``."""

    compute_driver = 'fake.CapacityDriver'

    def setUp(self):
        # nova loads drivers of its own package alone.
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.virt.fake.CapacityDriver', capacity_driver.Driver
            )
        )
        super().setUp()

    def share(self, gb, *hosts):
        """Let hosts share a provider of disk."""
        shared = self._post_resource_provider('storage')['uuid']
        self._set_inventory(
            shared,
            {
                'resource_class': 'DISK_GB',
                'total': gb,
                'reserved': 0,
                'min_unit': 1,
                'max_unit': gb,
                'step_size': 1,
                'allocation_ratio': 1.0,
            },
        )
        self._set_provider_traits(shared, ['MISC_SHARES_VIA_AGGREGATE'])
        aggregate = uuidutils.generate_uuid()
        for provider in (
            shared,
            *map(self._get_provider_uuid_by_host, hosts),
        ):
            self._set_aggregate(provider, aggregate)
