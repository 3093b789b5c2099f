# SPDX-License-Identifier: Apache-2.0

"""Writes a command's metrics to a file for the node exporter."""

import argparse
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import dataclasses
import pathlib
import time
import typing

from nova_ext_sched.cli import base
from nova_ext_sched.cli import help as cli_help


class Figure(typing.NamedTuple):
    """A metric.

    :ivar name: without the prefix ``nova_ext_sched_``
    :ivar meaning: the help text, a sentence
    :ivar label: the name of the label, or several names with blanks between
        them; empty for a metric without
    :ivar values: by the label's value, or by a tuple of the labels' values;
        none of these is a text that a user chose
    """

    name: str
    meaning: str
    label: str
    values: Mapping[typing.Any, float]


class Command(base.Command):
    """A command that writes its metrics to the file that ``--metrics`` names.

    ===========  =================  ========================
    exit status  metrics            time of the last success
    ===========  =================  ========================
    0, 3         of this run        now
    1, 2         those of the file  that of the file
    ===========  =================  ========================

    A run that is interrupted leaves the file as it is.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        cli_help.share(parser, cli_help.OUTPUT).add_argument(
            '--metrics',
            metavar='FILE',
            type=_read_path,
            help='also write metrics for Prometheus to this file, in the node '
            "exporter's textfile directory",
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command, write the metrics, and return the exit status."""
        status = super().run(parsed_args)
        if parsed_args.metrics is not None:
            try:
                write(parsed_args.metrics, self.cmd_name, status, self.measure)
            except OSError as exc:
                return self._fail_to_write(
                    '--metrics', parsed_args.metrics, exc
                )
        return status

    def measure(self) -> Iterable[Figure]:
        """Return the metrics; called if the exit status is 0 or 3."""
        raise NotImplementedError


def write(
    path: pathlib.Path,
    command: str,
    status: int,
    measure: Callable[[], Iterable[Figure]],
) -> None:
    """Write the metrics of a run to a file, whole or not at all.

    :param status: the exit status of the command
    :param measure: returns the metrics; called if the status is 0 or 3
    :raises OSError: the file cannot be written
    """
    # Imported here, because only this option needs it.
    import prometheus_client as prometheus

    figures = [
        Figure(
            'exit_status',
            'Exit status of the last run.',
            'command',
            {command: status},
        )
    ]
    kept: Iterable[typing.Any] = ()
    if status in (base.FINE, base.SOME_FOUND):
        figures += [
            Figure(
                'success_timestamp_seconds',
                'When the last successful run ended, in seconds since the '
                'epoch; all other metrics are from it.',
                'command',
                {command: time.time()},
            ),
            *measure(),
        ]
    else:
        kept = _read(path)
    registry = prometheus.CollectorRegistry()
    for figure in figures:
        # The node exporter fails where two files have the same series.
        gauge = prometheus.Gauge(
            f'nova_ext_sched_{figure.name}',
            figure.meaning,
            ['file', *figure.label.split()],
            registry=registry,
        )
        for label, value in figure.values.items():
            labels = (label,) if isinstance(label, str) else label
            gauge.labels(path.name, *labels).set(value)
    for family in kept:
        with contextlib.suppress(ValueError):
            registry.register(_Kept(family))
    prometheus.write_to_textfile(str(path), registry)


@dataclasses.dataclass(eq=False)
class _Kept:
    """A metric that an earlier run wrote, for the registry of this run."""

    family: typing.Any

    def collect(self) -> Iterable[typing.Any]:
        return [self.family]

    describe = collect


def _read(path: pathlib.Path) -> list[typing.Any]:
    """Return the metrics of a file; none if it is missing or broken."""
    from prometheus_client import parser

    with contextlib.suppress(OSError, ValueError), path.open() as file:
        return list(parser.text_fd_to_metric_families(file))
    return []


def _read_path(text: str) -> pathlib.Path:
    if not text.endswith('.prom'):
        raise argparse.ArgumentTypeError(
            f'expected a file whose name ends in .prom, because the node '
            f'exporter reads no other, got {text!r}'
        )
    return pathlib.Path(text)
