# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched watch``."""

import argparse
import contextlib
import os
import pathlib
import typing

from nova_ext_sched import exception
from nova_ext_sched.cli import base
from nova_ext_sched.cli import help as cli_help
from nova_ext_sched.cmd import scheduler

# The longest interval: time.sleep() does not take every number.
_MOST_SECONDS = 365 * 86400.0

_LAST_PORT = 65535


def _port(text: str) -> int:
    with contextlib.suppress(argparse.ArgumentTypeError):
        if (number := base.read_amount(text)) <= _LAST_PORT:
            return number
    raise argparse.ArgumentTypeError(
        f'expected a port from 1 to {_LAST_PORT}, got {text!r}'
    )


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) <= _MOST_SECONDS:
            return float(text)
    raise argparse.ArgumentTypeError(
        f'expected a number of seconds above 0, up to a year, got {text!r}'
    )


class Watch(scheduler.Command):
    """Record why nova refuses requests, as it happens.

    Polls nova's databases, explains each new NoValidHost, and writes a line of
    JSON for it. It only reads nova and placement. SIGTERM stops it between two
    records.
    """

    purpose = cli_help.RECORD
    examples = (
        '',
        '--records /var/log/nova/nova-ext-sched-watch.json',
        '--records refusals.json --metrics-port 9190',
    )
    is_service = True

    arguments = {
        '--interval': {
            'metavar': 'SECONDS',
            'type': _seconds,
            'default': 5.0,
            'help': 'time between two polls (default: %(default)g)',
        },
        '--records': {
            'metavar': 'FILE',
            'type': pathlib.Path,
            'help': 'append records to this file, which logrotate can rotate; '
            'by default they go to standard output',
        },
        '--state': {
            'metavar': 'FILE',
            'type': pathlib.Path,
            'help': 'remember in this file what has been recorded, so that a '
            'restart misses and repeats nothing (default: the --records file '
            'with ".state" appended; without --records each start begins with '
            'new refusals)',
        },
        '--explanations-per-minute': {
            'metavar': 'NUMBER',
            'type': base.read_amount,
            'default': 30,
            'help': 'record refusals beyond this number without an '
            'explanation (default: %(default)s)',
        },
        '--metrics-port': {
            'metavar': 'PORT',
            'type': _port,
            'help': 'serve metrics for Prometheus on this port; by default '
            'none',
        },
        '--metrics-address': {
            'metavar': 'ADDRESS',
            'default': '127.0.0.1',
            'help': 'listen on this address (default: %(default)s)',
        },
    }

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.configure(parsed_args)
        watch(parsed_args)


def watch(parsed_args: argparse.Namespace) -> typing.NoReturn:
    """Record refusals until a signal comes."""
    from nova_ext_sched.dryrun.cloud import cells
    from nova_ext_sched.watch import cells as watched_cells
    from nova_ext_sched.watch import explainer
    from nova_ext_sched.watch import feed
    from nova_ext_sched.watch import interrupt
    from nova_ext_sched.watch import metrics
    from nova_ext_sched.watch import recorder
    from nova_ext_sched.watch import sink

    signals = interrupt.Interrupt()
    path, state = parsed_args.records, parsed_args.state
    if path and not state:
        state = path.with_name(f'{path.name}.state')
    figures = metrics.Metrics()
    asked = cells.Cells()
    # Owner and group alone may read the records.
    os.umask(0o027)
    try:
        kept = sink.Sink(path, state)
        recording = recorder.Recorder(
            feed.Feed(watched_cells.WatchedCells(asked), kept.read()),
            explainer.Explainer(
                figures,
                signals,
                asked,
                parsed_args.explanations_per_minute,
            ),
            kept,
            figures,
            signals,
        )
        if parsed_args.metrics_port is not None:
            figures.serve(
                parsed_args.metrics_port, parsed_args.metrics_address
            )
    except OSError as exc:
        raise exception.InvalidValue(
            where='nova-ext-sched watch',
            expected='files that can be written and a free port',
            got=str(exc),
        ) from exc
    signals.install()
    recording.run(parsed_args.interval)
    # Everything is written. A normal exit would wait for threads that wait for
    # a cell's database.
    os._exit(base.FINE)
