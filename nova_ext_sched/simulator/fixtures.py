# SPDX-License-Identifier: Apache-2.0

"""What nova's functional fixtures need in order to run with this package.

Shared by the simulator and by the functional tests.
"""

from collections.abc import Mapping
import os
import sys
import typing

import fixtures
import nova.conf
from nova.scheduler import request_filter as nova_request_filter
from nova.volume import cinder
from oslo_config import fixture as config_fixture
from oslo_utils import uuidutils

CONF = nova.conf.CONF


class NovaApi(fixtures.Fixture):
    """Run nova-api from nova's wheel. Use before the API starts.

    nova's ConfFixture looks for api-paste.ini beside the package, where only a
    source tree has it; the wheel installs it elsewhere. nova-api does not
    check its own answers against their schemas, because that takes time.
    """

    def _setUp(self) -> None:
        config = self.useFixture(config_fixture.Config(CONF))
        config.config(group='api', response_validation='ignore')
        config.config(
            group='wsgi',
            api_paste_config=os.path.join(
                sys.prefix, 'etc', 'nova', 'api-paste.ini'
            ),
        )


class RequestFilters(fixtures.Fixture):
    """Take back what a scheduler adds to nova's list of request filters."""

    def _setUp(self) -> None:
        request_filters = nova_request_filter.ALL_REQUEST_FILTERS
        self.addCleanup(
            request_filters.__setitem__, slice(None), list(request_filters)
        )


class VolumeImages(fixtures.Fixture):
    """Let volumes be made of images, beside nova's CinderFixture.

    Cinder copies an image's properties into the volume's
    ``volume_image_metadata``, where nova-api reads them when a server boots
    from the volume. Use after CinderFixture.
    """

    def _setUp(self) -> None:
        self._properties: dict[str, dict[str, str]] = {}
        # CinderFixture put a Mock there, which is not given the instance.
        self._get = cinder.API.get
        self.useFixture(
            fixtures.MockPatch(
                'nova.volume.cinder.API.get',
                side_effect=self._get_volume,
                autospec=False,
            )
        )

    def create(self, properties: Mapping[str, str]) -> str:
        """Return the id of a new volume of an image with these properties."""
        volume_id = uuidutils.generate_uuid()
        self._properties[volume_id] = dict(properties)
        return volume_id

    def _get_volume(
        self, context: typing.Any, volume_id: str, **kwargs: typing.Any
    ) -> dict[str, typing.Any]:
        volume = self._get(context, volume_id, **kwargs)
        if volume_id in self._properties:
            volume['bootable'] = True
            volume['volume_image_metadata'] = self._properties[volume_id]
        return volume
