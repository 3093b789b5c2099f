# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched export`` in the process of a test."""

import nova.conf

from nova_ext_sched.cmd.export import command
from tests.functional import explain


def forget_tests_before():
    """Forget where options stood that tests before this one have set.

    oslo.config keeps the place of a value that was cleared.
    """
    for info, _group in nova.conf.CONF._all_opt_infos():
        if not {'override', 'default'} & info.keys():
            info.pop('location', None)


def run(test, *args):
    """Run export on the nova of this process; return its text."""
    out, err, status = explain.call(command.Export, 'export', *args)
    test.assertEqual(0, status, err)
    return out
