# SPDX-License-Identifier: Apache-2.0

"""Runs ``upgrade check`` with the nova.conf that the command line names."""

import argparse
from collections.abc import Sequence
import sys
import traceback

from nova import config as nova_config
from nova import objects
from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from nova_ext_sched import conf
from nova_ext_sched.cmd.status import checks

CONF = checks.CONF

#: The exit status for what is no result of a check, as of nova-status.
UNEXPECTED = 255


def run(argv: Sequence[str]) -> int:
    """Run the checks; return the exit status."""
    objects.register_all()
    conf.register_opts(CONF)
    upgradecheck.register_cli_options(CONF, checks.Checks())
    # For --json, which it looks up there.
    upgradecheck.CONF = CONF
    try:
        # As nova's own commands do: libraries of nova's, osprofiler for one,
        # read options that only this registers.
        nova_config.parse_args(files_first(argv), init_rpc=False)
        # A value of ours that is not of its form, as what nova itself reads.
        conf.check_values(CONF)
        return CONF.command.action_fn()
    except cfg.Error as exc:
        print(f'nova-ext-sched-status: {exc}', file=sys.stderr)
    except Exception:
        traceback.print_exc()
    return UNEXPECTED


def files_first(argv: Sequence[str]) -> list[str]:
    """Return a command line with the files of configuration at the front.

    oslo.config takes ``--config-file`` and ``--config-dir`` before ``upgrade``
    alone; here they may stand after it too.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in ('--config-file', '--config-dir'):
        parser.add_argument(
            option,
            action='append',
            default=[],
            type=f'{option}={{}}'.format,
            dest='files',
        )
    known, others = parser.parse_known_args(list(argv[1:]))
    return [argv[0], *known.files, *others]
