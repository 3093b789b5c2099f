# SPDX-License-Identifier: Apache-2.0

"""Adapts nova's functional fixtures to this package.

Shared by the simulator and by the functional tests.
"""

import pathlib
import sys

import fixtures
import nova.conf
from nova.scheduler import request_filter as nova_request_filter
from oslo_config import fixture as config_fixture

CONF = nova.conf.CONF


class NovaApi(fixtures.Fixture):
    """Run nova-api from nova's wheel. Use before the API starts.

    nova's ConfFixture looks for api-paste.ini beside the package, where only a
    source tree has it; the wheel installs it elsewhere. nova-api does not
    check its own answers against their schemas, because that takes time, and
    does not build the API below ``/v2`` beside that below ``/v2.1``.
    """

    def _setUp(self) -> None:
        installed = pathlib.Path(sys.prefix, 'etc', 'nova', 'api-paste.ini')
        lines = installed.read_text().splitlines(keepends=True)
        folder = self.useFixture(fixtures.TempDir()).path
        paste = pathlib.Path(folder, 'api-paste.ini')
        paste.write_text(
            ''.join(line for line in lines if not line.startswith('/v2/'))
        )
        config = self.useFixture(config_fixture.Config(CONF))
        # nova 29 checks none.
        if 'response_validation' in CONF.api:
            config.config(group='api', response_validation='ignore')
        config.config(group='wsgi', api_paste_config=str(paste))


class RequestFilters(fixtures.Fixture):
    """Restore nova's list of request filters."""

    def _setUp(self) -> None:
        request_filters = nova_request_filter.ALL_REQUEST_FILTERS
        self.addCleanup(
            request_filters.__setitem__, slice(None), list(request_filters)
        )
