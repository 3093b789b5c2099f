# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched watch``."""

import argparse
import contextlib
import pathlib

from nova_ext_sched.cli import base
from nova_ext_sched.cli import help as cli_help
from nova_ext_sched.cmd import scheduler

# time.sleep() does not take every number.
_MOST_SECONDS = 365 * 86400.0

_LAST_PORT = 65535


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
    work = 'nova_ext_sched.cmd.watch.run'
    is_service = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--interval',
            metavar='SECONDS',
            type=_seconds,
            default=5.0,
            help='time between two polls (default: %(default)g)',
        )
        parser.add_argument(
            '--records',
            metavar='FILE',
            type=pathlib.Path,
            help='append records to this file, which logrotate can rotate; by '
            'default they go to standard output',
        )
        parser.add_argument(
            '--state',
            metavar='FILE',
            type=pathlib.Path,
            help='remember in this file what has been recorded, so that a '
            'restart misses and repeats nothing (default: the --records file '
            'with ".state" appended; without --records each start begins with '
            'new refusals)',
        )
        parser.add_argument(
            '--explanations-per-minute',
            metavar='NUMBER',
            type=base.read_amount,
            default=30,
            help='record refusals beyond this number without an explanation '
            '(default: %(default)s)',
        )
        parser.add_argument(
            '--metrics-port',
            metavar='PORT',
            type=_port,
            help='serve metrics for Prometheus on this port; by default none',
        )
        parser.add_argument(
            '--metrics-address',
            metavar='ADDRESS',
            default='127.0.0.1',
            help='listen on this address (default: %(default)s)',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.load(parsed_args).watch(parsed_args)


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
