# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.cmd.status import command


@ddt.ddt
class FilesFirstTestCase(testtools.TestCase):
    @ddt.data(
        ('upgrade check', 'upgrade check'),
        (
            '--config-file a upgrade check --json',
            '--config-file=a upgrade check --json',
        ),
        (
            'upgrade --config-file=a check --config-dir b --config-file c',
            '--config-file=a --config-dir=b --config-file=c upgrade check',
        ),
        ('--debug upgrade check --config a', None),
    )
    @ddt.unpack
    def test_order(self, given, expected):
        self.assertEqual(
            ['program', *(expected or given).split()],
            command.files_first(['program', *given.split()]),
        )
