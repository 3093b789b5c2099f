#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""What nova's functional fixtures need in order to run with this package.

Shared by the simulator and by the functional tests.
"""

import os
import sys

import fixtures
import nova.conf
from nova.scheduler import request_filter as nova_request_filter
from oslo_config import fixture as config_fixture

from nova_ext_sched import conf

CONF = nova.conf.CONF

ALL_FILTERS = 'nova_ext_sched.filters.all_filters'


class ApiPaste(fixtures.Fixture):
    """Point nova at the api-paste.ini that its wheel installs.

    nova's ConfFixture looks for it beside the package, where only a source
    tree has it. Use before the API starts.
    """

    def _setUp(self) -> None:
        config = self.useFixture(config_fixture.Config(CONF))
        config.config(
            group='wsgi',
            api_paste_config=os.path.join(
                sys.prefix, 'etc', 'nova', 'api-paste.ini'
            ),
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
        request_filters = list(nova_request_filter.ALL_REQUEST_FILTERS)
        self.addCleanup(
            nova_request_filter.ALL_REQUEST_FILTERS.__setitem__,
            slice(None),
            request_filters,
        )
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
