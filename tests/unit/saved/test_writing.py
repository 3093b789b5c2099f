# SPDX-License-Identifier: Apache-2.0

"""What is said of options that stay out of the file."""

import pathlib
from unittest import mock

import fixtures
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
            _, others = writing._read_options(writing.CONF)
        self.assertEqual(['third_party'], others)

    def test_a_file_besides_that_of_this_process(self):
        path = self.useFixture(fixtures.TempDir()).join('nova.conf')
        text = (
            '[database]\nconnection = mysql://nova:SECRET@db/nova\n'
            '[filter_scheduler]\nram_weight_multiplier = -1\n'
            '[nova_ext_sched]\nweighers =\n'
        )
        pathlib.Path(path).write_text(text)
        self.assertEqual(
            {
                'filter_scheduler': {'ram_weight_multiplier': -1.0},
                'nova_ext_sched': {'weighers': []},
            },
            writing.read_file_options([path]),
        )
