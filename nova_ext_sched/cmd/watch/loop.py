# SPDX-License-Identifier: Apache-2.0

"""Turn after turn, until a signal ends it."""

from collections.abc import Callable
import os
import signal
import sys
import time

import nova.conf
from oslo_log import log as logging

from nova_ext_sched import messages
from nova_ext_sched.cmd.watch import interrupt

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)


def run(
    signals: interrupt.Interrupt, turn: Callable[[], None], interval: float
) -> None:
    """Call a function every few seconds.

    Returns on SIGTERM and SIGINT. On SIGHUP the process begins anew with the
    same arguments, unless nova.conf cannot be read.

    :param turn: what it raises is logged, and it is called again; a
        :class:`.interrupt.Stop` ends the turn
    :param interval: seconds between two turns
    """
    last = ''
    while True:
        try:
            turn()
            if last:
                LOG.warning('Records are written again.')
            last = ''
            with signals.allowed():
                time.sleep(interval)
        except interrupt.Stop:
            if signals.pending != signal.SIGHUP:
                return
            _begin_anew()
            signals.pending = None
        except Exception as exc:
            # An outage is one line of the log, a traceback its first.
            problem = messages.describe(exc)
            if problem != last:
                LOG.error(
                    'Refusals wait to be recorded: %s',
                    problem,
                    exc_info=not isinstance(exc, OSError),
                )
            last = problem
            _wait(signals, interval)


def _wait(signals: interrupt.Interrupt, interval: float) -> None:
    try:
        with signals.allowed():
            time.sleep(interval)
    except interrupt.Stop:
        # The next turn stops where it begins.
        pass


def _begin_anew() -> None:
    if CONF.reload_config_files():
        interrupt.hold()
        os.execv(sys.executable, sys.orig_argv)
    LOG.error('nova.conf cannot be read; the options of before stay.')
