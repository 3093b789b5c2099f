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

"""Base of the functional tests: a real nova and a real placement.

nova-api, conductor, scheduler and fake computes in one process, placement on
SQLite (nova.tests.functional), with this package loaded as nova.conf loads
it.
"""

import typing

from nova.tests import fixtures as nova_fixtures
from nova.tests.functional import integrated_helpers

from nova_ext_sched.simulator import fixtures as sim_fixtures


class PluginMixin:
    """Load the package before the services of a nova test class start."""

    #: Names to add to [filter_scheduler] enabled_filters.
    host_filters: typing.ClassVar[tuple[str, ...]] = ()
    #: Options of [nova_ext_sched].
    options: typing.ClassVar[dict[str, object]] = {}

    def setUp(self):
        # The Fixtures' own set-up resets neither: they are in place before
        # nova's base class starts the services.
        self._plugin = sim_fixtures.Plugin(self.host_filters, **self.options)
        self._api_paste = sim_fixtures.ApiPaste()
        for fixture in (self._api_paste, self._plugin):
            fixture.setUp()
            self.addCleanup(fixture.cleanUp)
        super().setUp()

    def _clear_attrs(self):
        # nova's cleanup empties the instance; pytest then misses the test
        # method that it had bound there.
        name = self._testMethodName
        method = self.__dict__.get(name)
        super()._clear_attrs()
        if method is not None:
            self.__dict__[name] = method


class CloudTestCase(PluginMixin, integrated_helpers.ProviderUsageBaseTestCase):
    """A cloud without hosts; subclasses start the computes that they need.

    Where ``weights`` is set, the scheduler prefers hosts in that order, so
    that a test can make the wrong host the default: a pass then proves that
    a filter acted.
    """

    compute_driver = 'fake.MediumFakeDriver'
    microversion = 'latest'
    weights: typing.ClassVar[dict[str, int]] = {}

    def setUp(self):
        if self.weights:
            self.useFixture(
                nova_fixtures.HostNameWeigherFixture(weights=self.weights)
            )
        super().setUp()
