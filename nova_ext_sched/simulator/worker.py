# SPDX-License-Identifier: Apache-2.0

"""The process that a simulated cloud lives in.

nova's harness changes its whole process (eventlet, logging, HOME, warnings),
so each cloud gets one of its own, and the command stays as it is. The request
comes on standard input as JSON; what happens goes as lines of JSON to the
file descriptor that the first argument names:

=============  ============================================================
``event``      with
=============  ============================================================
``host``       ``number`` of hosts that are up
``server``     a server is where its step puts it
``step``       ``index``; ``placements`` and ``reasons`` of its outcome
``refused``    ``path`` and ``cause``: a part of the scenario that nova or
               placement does not take
``unstarted``  ``cause``: nova's services do not start with this nova.conf
``failed``     ``cause``: anything else
``finished``   the cloud is down again
=============  ============================================================
"""

import dataclasses
import importlib
import json
import logging
import os
import sys
import typing

Event = dict[str, typing.Any]

#: The log file that stands for standard error.
STDERR = '-'


@dataclasses.dataclass(frozen=True)
class Request:
    """What a worker is asked to do.

    :param data: a checked scenario document
    :param plain: run nova without our package
    :param log_file: where the log goes: a path, STDERR, or None for nowhere
    :param log_level: the lowest level that goes there
    """

    data: dict[str, typing.Any]
    plain: bool
    log_file: str | None
    log_level: str


def name(plain: bool) -> str:
    """Return what a cloud is called in logs and messages."""
    return 'plain nova' if plain else 'nova-ext-sched'


def main() -> None:
    """Run one cloud; see the module."""
    request = Request(**json.load(sys.stdin))
    events = os.fdopen(int(sys.argv[1]), 'w')
    # oslo.config would read our arguments as nova's.
    del sys.argv[1:]

    def send(event: str, **data: typing.Any) -> None:
        events.write(json.dumps({'event': event, **data}) + '\n')
        events.flush()

    # nova's harness patches the process for eventlet: before anything that
    # the patches are for is imported.
    importlib.import_module('nova.tests.functional')
    from nova_ext_sched.simulator import session

    session.Session(request, send).run()
    events.close()
    # nova's threads and greenlets have nothing left to do.
    logging.shutdown()
    os._exit(0)


if __name__ == '__main__':
    main()
