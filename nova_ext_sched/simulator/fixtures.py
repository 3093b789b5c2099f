# SPDX-License-Identifier: Apache-2.0

"""What nova's functional fixtures need in order to run with this package.

Shared by the simulator and by the functional tests.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import logging
import os
import sys
import typing

import fixtures
import nova.conf
from nova.scheduler import request_filter as nova_request_filter
from nova.volume import cinder
from oslo_config import fixture as config_fixture
from oslo_utils import uuidutils

from nova_ext_sched import conf

CONF = nova.conf.CONF

ALL_FILTERS = 'nova_ext_sched.filters.all_filters'


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


class Plugin(fixtures.Fixture):
    """Enable the package as nova.conf does, until the fixture ends.

    Use before the scheduler starts.

    :param host_filters: names to add to ``enabled_filters``
    :param options: values of options of ``[nova_ext_sched]``
    """

    def __init__(
        self, host_filters: tuple[str, ...] = (), **options: object
    ) -> None:
        super().__init__()
        self._host_filters = host_filters
        self._options = options

    def _setUp(self) -> None:
        conf.register_opts(CONF)
        self.useFixture(RequestFilters())
        config = self.useFixture(config_fixture.Config(CONF))
        filter_scheduler = CONF.filter_scheduler
        config.config(
            group='filter_scheduler',
            available_filters=[
                *filter_scheduler.available_filters,
                ALL_FILTERS,
            ],
            enabled_filters=[
                *filter_scheduler.enabled_filters,
                *self._host_filters,
            ],
        )
        config.config(group='nova_ext_sched', **self._options)


class Logging(fixtures.Fixture):
    """Send the log where the simulator wants it.

    In place of nova's StandardLogging, which formats every DEBUG line and
    keeps the others in memory.

    :param handlers: where the log goes
    :param levels: the lowest level of each logger; others have WARNING
    """

    def __init__(
        self,
        handlers: Sequence[logging.Handler],
        levels: Mapping[str, int],
    ) -> None:
        super().__init__()
        self._log_handlers = handlers
        self._levels = {'': logging.WARNING, **levels}

    def _setUp(self) -> None:
        for handler in self._log_handlers:
            self.useFixture(
                fixtures.LogHandler(
                    handler, nuke_handlers=handler is self._log_handlers[0]
                )
            )
        for name, level in self._levels.items():
            logger = logging.getLogger(name)
            self.addCleanup(logger.setLevel, logger.level)
            logger.setLevel(level)
        self.useFixture(
            fixtures.MonkeyPatch('oslo_log.log.setup', lambda *args: None)
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
