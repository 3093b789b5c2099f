# SPDX-License-Identifier: Apache-2.0

"""Turn after turn, until a signal ends it."""

from collections.abc import Callable
import os
import signal
import sys
import time

import nova.conf
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ext_sched.cmd.watch import interrupt
from nova_ext_sched.request_filters import base

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)


def every(
    interval: float | None, work: Callable[[], None]
) -> Callable[[], None]:
    """Return a function that calls another if it is time, first at once.

    :param interval: seconds from the beginning of one call to that of the
        next; None for never
    """
    due = 0.0

    def turn() -> None:
        nonlocal due
        now = timeutils.now()
        if interval is not None and now >= due:
            due = now + interval
            work()

    return turn


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
    failing = base.Outage(__name__)
    while True:
        try:
            try:
                turn()
            except Exception as exc:
                failing.begin('Refusals wait to be recorded', exc)
            else:
                failing.end('Records are written')
            with signals.allowed():
                time.sleep(interval)
        except interrupt.Stop:
            if signals.pending != signal.SIGHUP:
                return
            if CONF.reload_config_files():
                interrupt.hold()
                os.execv(sys.executable, sys.orig_argv)
            LOG.error('nova.conf cannot be read; the options of before stay.')
            signals.pending = None
