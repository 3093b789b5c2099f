# SPDX-License-Identifier: Apache-2.0

import subprocess
import sys

import ddt
from oslo_config import cfg
import testtools

from nova_ext_sched.conf import blazar

OURS = 'from nova_ext_sched import conf; conf.register_opts(CONF)'
THEIRS = 'from blazarnova.scheduler.filters import blazar_filter'
VALUES = """
options = CONF['blazar:physical:host']
CONF.set_override('blazar_owner', 'x', 'blazar:physical:host')
print([getattr(options, one) for one in sorted(options)])
"""


@ddt.ddt
class OptionsTestCase(testtools.TestCase):
    @ddt.data((OURS, THEIRS), (THEIRS, OURS))
    def test_both_packages_in_one_process(self, imports):
        """oslo.config takes no two options of a name that differ."""
        done = subprocess.run(
            [
                sys.executable,
                '-W',
                'ignore',
                '-c',
                '\n'.join(['from nova.conf import CONF', *imports, VALUES]),
            ],
            capture_output=True,
            text=True,
        )
        if "No module named 'blazarnova'" in done.stderr:
            self.skipTest('blazar-nova is not installed')
        self.assertEqual(
            "['freepool', False, 'blazar_', 'x', 'freepool', "
            "'blazar:tenant']\n",
            done.stdout,
            done.stderr,
        )

    @ddt.data(
        cfg.StrOpt('blazar_owner', default='other'),
        cfg.BoolOpt('blazar_owner'),
    )
    def test_another_option_of_the_name_is_refused(self, option):
        """The help alone may differ."""
        for first, second in (
            (blazar.OPTS, [option]),
            ([option], blazar.OPTS),
        ):
            config = cfg.ConfigOpts()
            config.register_opts(first, 'blazar:physical:host')
            self.assertRaises(
                cfg.DuplicateOptError,
                config.register_opts,
                second,
                'blazar:physical:host',
            )
