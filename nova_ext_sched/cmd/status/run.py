# SPDX-License-Identifier: Apache-2.0

"""Runs ``nova-ext-sched-status``."""

from collections.abc import Sequence

from nova import config
from nova import objects
from oslo_upgradecheck import upgradecheck

from nova_ext_sched import conf
from nova_ext_sched.cmd.status import checks


def check(argv: Sequence[str]) -> int:
    """Run ``upgrade check``; return its exit status.

    :param argv: the command line, with the files of configuration at the
        front
    :raises oslo_config.cfg.Error: nova.conf cannot be read
    """
    objects.register_all()
    conf.register_opts(checks.CONF)
    upgradecheck.register_cli_options(checks.CONF, checks.Checks())
    # oslo.upgradecheck looks --json up there.
    upgradecheck.CONF = checks.CONF
    # As nova's own commands do: libraries of nova's, osprofiler for one, read
    # options that only this registers. RPC, too, is prepared without a
    # connection: cells that are templates take its address.
    config.parse_args(argv)
    # Values of our options too: where no filter of ours is loaded, no check
    # reads all of them.
    conf.check_values(checks.CONF)
    return checks.CONF.command.action_fn()
