# SPDX-License-Identifier: Apache-2.0

"""The console script ``nova-ext-sched-status``.

Runs where nova-scheduler runs, with its nova.conf. Imports nothing of nova
until it knows that nova is installed.
"""

import argparse
from collections.abc import Sequence
import importlib.metadata
import importlib.util
import logging
import sys
import traceback
import warnings

from oslo_config import cfg

from nova_ext_sched import messages

# The exit status of nova-status for an unexpected error.
_UNEXPECTED = 255


def main() -> int:
    """Run ``upgrade check`` with the nova.conf that the command line names.

    :returns: 0 if all is well, 1 if a check warns, 2 if one fails,
        255 for anything unexpected, as nova-status
    """
    # This package's version; nova's parser would print nova's.
    if '--version' in sys.argv[1:]:
        print(
            'nova-ext-sched-status',
            importlib.metadata.version('nova-ext-sched'),
        )
        return 0
    # A warning of eventlet above the table would look like a result.
    if not sys.warnoptions:
        warnings.simplefilter('ignore')
    if importlib.util.find_spec('nova') is None:
        print(
            'nova-ext-sched-status: expected to run where nova-scheduler '
            f'runs, got a Python without nova ({sys.executable}). Run it with '
            "the Python of nova-scheduler's environment.",
            file=sys.stderr,
        )
        return _UNEXPECTED
    # The checks say the same, with what to do.
    logging.getLogger('nova_ext_sched').setLevel(logging.ERROR)
    # Imported here, because it imports nova.
    from nova_ext_sched.cmd.status import run

    try:
        return run.check(files_first(sys.argv))
    except cfg.Error as exc:
        print(
            f'nova-ext-sched-status: {messages.say_option(exc)}',
            file=sys.stderr,
        )
    except Exception:
        traceback.print_exc()
    return _UNEXPECTED


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


if __name__ == '__main__':
    sys.exit(main())
