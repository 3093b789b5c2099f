# SPDX-License-Identifier: Apache-2.0

"""Runs a simulated cloud in this process.

nova's harness changes its whole process (eventlet, logging, HOME, warnings),
so each cloud gets a process of its own. It reads a :class:`Run` from standard
input as JSON. To standard output it writes a line with a plus sign and the
name of the phase for each host and aggregate that was made and each server
that was placed; and at the end JSON, a mapping with one of these keys:

============  =============================================================
``run``       an :class:`expectation.Run`
``faults``    a line for each part of the scenario that nova refuses
``failed``    why the cloud broke down
============  =============================================================
"""

from collections.abc import Callable
import dataclasses
import importlib
import json
import logging
import os
import sys
import typing

from nova_ext_sched import exception

#: The log file in place of standard error.
STDERR = '-'

_FORMAT = '%(asctime)s {cloud} %(levelname)s %(name)s: %(message)s'


@dataclasses.dataclass(frozen=True)
class Run:
    """The scenario and options that a worker gets.

    :param data: a checked scenario document
    :param plain: run nova without our package
    :param log_file: where the log goes: a path, STDERR, or None for nowhere
    :param log_level: the lowest level that goes there
    """

    data: dict[str, typing.Any]
    plain: bool
    log_file: str | None
    log_level: str

    @property
    def name(self) -> str:
        """The name of the cloud in logs and messages."""
        return 'plain nova' if self.plain else 'nova-ext-sched'


def main() -> None:
    """Run one cloud; see the module."""
    request = Run(**json.load(sys.stdin))
    # Standard output is for results: nova prints to standard error.
    results = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    # oslo.config would read our arguments as nova's.
    del sys.argv[1:]
    # A cloud does not fail because its log cannot be written.
    logging.raiseExceptions = False

    def progress(phase: str) -> None:
        print(f'+{phase}', file=results, flush=True)

    # nova's harness patches the process for eventlet: before anything that
    # the patches are for is imported.
    importlib.import_module('nova.tests.functional')
    result: dict[str, typing.Any]
    try:
        result = {'run': dataclasses.asdict(run(request, progress))}
    except exception.ScenarioInvalid as exc:
        result = {'faults': [str(finding) for finding in exc.findings]}
    except Exception as exc:
        logging.getLogger(__name__).exception('The simulated cloud raised')
        result = {'failed': f'{type(exc).__name__}: {exc}'}
    print(json.dumps(result), end='', file=results, flush=True)
    # nova's threads and greenlets have nothing left to do.
    logging.shutdown()
    os._exit(0)


def run(
    request: Run, progress: Callable[[str], None] = lambda phase: None
) -> typing.Any:
    """Build the cloud, run the steps, and take it down.

    :param progress: called with the name of the phase for each host, each
        aggregate and each server
    :returns: an :class:`expectation.Run`
    :raises exception.ScenarioInvalid: nova does not accept a part of the
        scenario
    """
    from nova_ext_sched.simulator import check
    from nova_ext_sched.simulator import cloud
    from nova_ext_sched.simulator import expectation
    from nova_ext_sched.simulator import options
    from nova_ext_sched.simulator import scenario
    from nova_ext_sched.simulator import steps

    check.check('the scenario', request.data, options.keywords())
    declared = scenario.parse(request.data)
    simulated = cloud.Cloud(
        declared, request.plain, _log_handler(request), progress
    )
    try:
        simulated.setUp()
        started = simulated.warnings.take(start=True)
        runner = steps.Steps(simulated)
        outcomes = [runner.run(step) for step in declared.steps]
        return expectation.Run(outcomes, started)
    finally:
        simulated.doCleanups()


def _log_handler(request: Run) -> logging.Handler:
    if request.log_file is None:
        return logging.NullHandler(logging.WARNING)
    handler = (
        logging.StreamHandler()
        if request.log_file == STDERR
        else logging.FileHandler(request.log_file)
    )
    handler.setLevel(request.log_level)
    handler.setFormatter(logging.Formatter(_FORMAT.format(cloud=request.name)))
    return handler


if __name__ == '__main__':
    main()
