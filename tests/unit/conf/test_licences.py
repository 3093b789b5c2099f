# SPDX-License-Identifier: Apache-2.0

import ddt
import nova.conf
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched import conf
from nova_ext_sched.conf import licences


@ddt.ddt
class ContradictionsTestCase(testtools.TestCase):
    @ddt.data(
        ({'weighers': ['LicencesWeigher']}, True),
        ({'weighers': ['LicencesWeigher'], 'licence_traits': ['A']}, False),
        ({'weighers': ['LicencesWeigher'], 'licence_os_types': ['a']}, False),
        ({'weighers': []}, False),
    )
    @ddt.unpack
    def test_nothing_to_go_by(self, options, said):
        conf.register_opts(nova.conf.CONF)
        config = self.useFixture(config_fixture.Config(nova.conf.CONF)).config
        config(group='nova_ext_sched', **options)
        found = list(licences.contradictions(nova.conf.CONF))
        self.assertEqual(said, 'has LicencesWeigher, but' in ''.join(found))
