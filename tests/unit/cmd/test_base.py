# SPDX-License-Identifier: Apache-2.0

import subprocess
import sys

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


class WithoutNovaTestCase(testtools.TestCase):
    def test_the_command_says_where_to_run(self):
        done = subprocess.run(
            [
                sys.executable,
                '-W',
                'ignore',
                '-c',
                'import sys; sys.modules["nova"] = None; '
                'from nova_ext_sched.cmd import main; '
                'sys.exit(main.main(["explain", "--flavor", "x"]))',
            ],
            capture_output=True,
            text=True,
        )
        self.assertEqual((2, ''), (done.returncode, done.stdout))
        self.assertIn("nova-scheduler's environment", done.stderr)
