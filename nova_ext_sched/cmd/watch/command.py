# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched watch``."""

import argparse
import contextlib
import os
import pathlib
import re
import typing

from nova_ext_sched import exception
from nova_ext_sched.cli import base
from nova_ext_sched.cmd import nova_command
from nova_ext_sched.cmd.watch import interrupt

# time.sleep() does not take every number.
_MOST_SECONDS = 365 * 86400.0

# An ID or a name, and the UUID of an image.
_FLAVOR = re.compile('([^,]+)(?:,([0-9a-fA-F-]{32,36}))?')


class Watch(nova_command.Command):
    """Record why nova refuses requests, as soon as it does.

    Reads nova's databases every few seconds, asks explain about each new
    refusal for want of a host, and writes a line of JSON. It only reads nova
    and placement. Send SIGTERM to end it and SIGHUP to read nova.conf anew.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--interval',
            metavar='SECONDS',
            type=_seconds,
            default=5.0,
            help='between two looks at the databases (default: %(default)g)',
        )
        parser.add_argument(
            '--records',
            metavar='FILE',
            type=pathlib.Path,
            help='append records to this file, which logrotate may move; by '
            'default they go to standard output',
        )
        parser.add_argument(
            '--state',
            metavar='FILE',
            type=pathlib.Path,
            help='remember there what is recorded, so that the next start '
            'goes on behind it (default: the file of the records with '
            '".state" at its end; without one a start begins at its present)',
        )
        parser.add_argument(
            '--explanations-per-minute',
            metavar='NUMBER',
            type=base.read_amount,
            default=30,
            help='further refusals are recorded without an explanation '
            '(default: %(default)s)',
        )
        parser.add_argument(
            '--metrics-port',
            metavar='PORT',
            type=base.read_amount,
            help='answer Prometheus on this port; by default none is open',
        )
        parser.add_argument(
            '--metrics-address',
            metavar='ADDRESS',
            default='127.0.0.1',
            help='listen on this address (default: %(default)s)',
        )
        parser.add_argument(
            '--audit-interval',
            metavar='SECONDS',
            type=_seconds,
            help='audit all servers that often, for the metrics; by default '
            'never',
        )
        parser.add_argument(
            '--capacity-interval',
            metavar='SECONDS',
            type=_seconds,
            help='count that often how many servers of the flavors of '
            '--capacity fit, for the metrics',
        )
        parser.add_argument(
            '--capacity',
            metavar='FLAVOR[,IMAGE]',
            action='append',
            default=[],
            type=_flavor_and_image,
            help='the ID or name of a flavor, and the UUID of an image, which '
            'Glance is asked for with the credentials of the OS_* variables '
            'or of clouds.yaml; both become labels as they are written (may '
            'be repeated)',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> typing.NoReturn:
        if bool(parsed_args.capacity) != bool(parsed_args.capacity_interval):
            raise base.UsageError(
                '--capacity and --capacity-interval go together.'
            )
        self.configure(parsed_args)
        # Not before: they import nova.
        from nova_ext_sched.cmd import records
        from nova_ext_sched.cmd.watch import audits
        from nova_ext_sched.cmd.watch import capacity
        from nova_ext_sched.cmd.watch import cells
        from nova_ext_sched.cmd.watch import explainer
        from nova_ext_sched.cmd.watch import loop
        from nova_ext_sched.cmd.watch import metrics
        from nova_ext_sched.cmd.watch import position
        from nova_ext_sched.cmd.watch import watcher

        signals = interrupt.Interrupt()
        path, state = parsed_args.records, parsed_args.state
        if path and not state:
            state = path.with_name(f'{path.name}.state')
        figures = metrics.Metrics()
        # Its owner and group alone read what it writes.
        os.umask(0o027)
        try:
            found = watcher.Watcher(
                cells.Cells(),
                explainer.Explainer(
                    figures, signals, parsed_args.explanations_per_minute
                ),
                records.Records(path),
                position.File(state),
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
        audit = loop.every(
            parsed_args.audit_interval, lambda: audits.count(figures)
        )
        count = loop.every(
            parsed_args.capacity_interval,
            capacity.Capacity(figures, parsed_args.capacity).count,
        )
        if parsed_args.audit_interval:
            figures.show(figures.audit_interval, parsed_args.audit_interval)
        for one in parsed_args.capacity:
            figures.capacity_interval.labels(*one).set(
                parsed_args.capacity_interval
            )

        def turn() -> None:
            found.turn()
            with signals.allowed():
                audit()
                count()

        loop.run(signals, turn, parsed_args.interval)
        # Everything is written. Python would wait for the threads that wait
        # for a cell's database.
        os._exit(base.FINE)


def _flavor_and_image(text: str) -> tuple[str, str]:
    found = _FLAVOR.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(
            'expected FLAVOR or FLAVOR,IMAGE with the UUID of an image (a '
            f'flavor whose name has a comma goes by its ID), got {text!r}'
        )
    return found[1], found[2] or ''


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) <= _MOST_SECONDS:
            return float(text)
    raise argparse.ArgumentTypeError(
        f'expected a number of seconds above 0, up to a year, got {text!r}'
    )
