# SPDX-License-Identifier: Apache-2.0

"""The length that a page names is that of the option."""

import pathlib

from oslo_config import cfg
import testtools

from nova_ext_sched import conf

PAGES = pathlib.Path(__file__).parents[2] / 'doc' / 'source'


class CostsTestCase(testtools.TestCase):
    def test_the_length_that_ends_a_large_cloud(self):
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        limit = config.nova_ext_sched.max_forbidden_aggregates
        text = ' '.join((PAGES / 'admin/choosing.rst').read_text().split())
        self.assertIn(f'more than about {limit} isolated', text)
