# SPDX-License-Identifier: Apache-2.0

"""What is said of options that stay out of the file."""

from unittest import mock

import testtools

from nova_ext_sched.saved import writing


class OptionsTestCase(testtools.TestCase):
    def test_sections_of_other_packages(self):
        """A filter of theirs may decide by them; no other section counts."""
        sections = ['DEFAULT', 'database', 'filter_scheduler', 'oslo_policy']
        sections += ['keystone_authtoken', 'third_party']
        with mock.patch.object(
            writing.CONF, 'list_all_sections', return_value=sections
        ):
            _, others = writing._read_options()
        self.assertEqual(['third_party'], others)
