# SPDX-License-Identifier: Apache-2.0

"""The console script ``nova-ext-sched-status``.

Runs where nova-scheduler runs, with its nova.conf. Imports nothing of nova
until it knows that nova is installed.
"""

import importlib.util
import logging
import sys

_UNEXPECTED = 255


def main() -> int:
    """Run ``upgrade check``.

    :returns: 0 if all is well, 1 if a check warns, 2 if one fails,
        255 for anything unexpected, as nova-status
    """
    if importlib.util.find_spec('nova') is None:
        print(
            'nova-ext-sched-status: expected to run where nova-scheduler '
            f'runs, got a Python without nova ({sys.executable}). Run it with '
            "the Python of nova-scheduler's environment.",
            file=sys.stderr,
        )
        return _UNEXPECTED
    # The checks say it, with what to do; once is enough.
    logging.getLogger('nova_ext_sched').setLevel(logging.ERROR)
    from nova_ext_sched.cmd.status import command

    return command.run(sys.argv)


if __name__ == '__main__':
    sys.exit(main())
