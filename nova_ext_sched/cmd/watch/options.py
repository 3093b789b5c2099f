# SPDX-License-Identifier: Apache-2.0

"""Whether nova.conf has changed since this process read it."""

import contextlib
import pathlib

import nova.conf

from nova_ext_sched import log_once
from nova_ext_sched.cmd.watch import metrics

CONF = nova.conf.CONF
LOG_ONCE = log_once.LogOnce(__name__)

_REMARK = (
    'nova.conf has changed since nova-ext-sched watch read it, so this was '
    'explained with the options of before; restart watch together with '
    'nova-scheduler, or send it SIGHUP'
)


class Options:
    """The files of nova.conf as they were when this was made.

    Watch does not read them anew by itself: nova-scheduler does not either.
    """

    def __init__(self, figures: metrics.Metrics) -> None:
        self._used = _read()
        figures.old_options.set_function(lambda: _read() != self._used)

    def remarks(self) -> list[str]:
        """Return what an explanation has to say of the options.

        The log says it once.
        """
        if _read() == self._used:
            return []
        LOG_ONCE.warning(f'{_REMARK}.')
        return [_REMARK]


def _read() -> dict[pathlib.Path, bytes]:
    """Return what the files hold; those that are away are missing."""
    paths = [pathlib.Path(path) for path in CONF.config_file]
    for folder in CONF.config_dir:
        paths += pathlib.Path(folder).glob('*.conf')
    found = {}
    for path in paths:
        # It may be in the making.
        with contextlib.suppress(OSError):
            found[path] = path.read_bytes()
    return found
