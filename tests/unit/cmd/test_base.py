# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.cmd import base


@ddt.ddt
class SecretsTestCase(testtools.TestCase):
    @ddt.data(
        ('mysql+pymysql://nova:s3cret@db/nova', 'nova:***@db'),
        ('rabbit://u:s3:cr3t@h:5672//', 'u:***@h'),
        ("{'password': 's3cret'}", '***'),
        ('http://host:8778/resource_providers', ':8778/resource_providers'),
    )
    @ddt.unpack
    def test_without_secrets(self, text, expected):
        found = base.without_secrets(text)
        self.assertIn(expected, found)
        self.assertNotIn('s3', found)
