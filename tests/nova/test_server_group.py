# SPDX-License-Identifier: Apache-2.0

"""nova's own functional tests of anti-affinity, with our filter in place."""

from unittest import mock

import fixtures
from nova.tests.functional import test_server_group

from nova_ext_sched.filters import anti_affinity
from tests.functional import base


def novas_host_passes(self, host_state, spec_obj):
    raise AssertionError("nova's filter was called")


class OursMixin(base.PluginMixin):
    """Make nova's filter raise, so that a pass proves that ours acted."""

    def setUp(self):
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.scheduler.filters.affinity_filter.'
                '_GroupAntiAffinityFilter.host_passes',
                novas_host_passes,
            )
        )
        super().setUp()


class ServerGroupTestV264(OursMixin, test_server_group.ServerGroupTestV264):
    """Its base classes' tests too: everything since microversion 2.1.

    Those of other policies ask neither filter.
    """

    for _name in dir(test_server_group.ServerGroupTestV264):
        if _name.startswith('test_') and (
            'anti_affinity' not in _name or 'soft' in _name
        ):
            locals()[_name] = None

    def test_failed_count_with_anti_affinity_violation(self):
        # nova's test switches nova's filter off by its path.
        test = super().test_failed_count_with_anti_affinity_violation
        with mock.patch.object(
            anti_affinity.ServerGroupAntiAffinityFilter,
            'decisions',
            return_value=[],
        ):
            test()


class ServerGroupAntiAffinityConfTest(
    OursMixin, test_server_group.ServerGroupAntiAffinityConfTest
):
    """Without a filter of this name conductor refuses the group."""


class TestAntiAffinityLiveMigration(
    OursMixin, test_server_group.TestAntiAffinityLiveMigration
):
    """Every test of nova's class."""
