# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched simulate``.

What comes with the extra ``simulator`` is imported when the command runs, so
that it can say what is missing.
"""

import argparse
from collections.abc import Sequence
import contextlib
import importlib.metadata
import os
import pathlib
import re
import sys
import typing

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import schema
from nova_ext_sched.cli import base
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import lister


class Simulate(lister.Lister):
    """Run a placement scenario on a simulated cloud.

    nova-api, conductor, scheduler and a fake compute for each host, and a
    real placement, in one process and without any service to start.
    """

    _epilog = (
        'Exit status: 0 every expectation held; 1 the simulated cloud broke '
        'down, or the output could not be written; 2 the usage or the '
        'scenario is wrong; 3 an expectation did not hold; 130 after Ctrl-C.'
    )

    # What writes the text.
    _write: typing.Callable[[layout.Layout], None]
    _is_said = False
    _status = base.FINE
    _summary = ''

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """See cliff."""
        parser = super().get_parser(prog_name)
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            'scenario',
            metavar='SCENARIO',
            nargs='?',
            help='a file, or the name of a scenario that --list shows',
        )
        what.add_argument(
            '--list',
            action='store_true',
            help='show the scenarios that come with the package',
        )
        base.add_option(
            parser,
            'as if nova_conf of the scenario had this (may be repeated)',
        )
        parser.add_argument(
            '--compare',
            action='store_true',
            help='run the same steps on plain nova too, and show both',
        )
        parser.add_argument(
            '--reasons',
            action='store_true',
            help='show for every step why hosts were refused, not only where '
            'a server found none',
        )
        parser.add_argument(
            '--nova-log',
            metavar='FILE',
            help="append nova's log to this file; - for standard error",
        )
        parser.add_argument(
            '--nova-log-level',
            metavar='LEVEL',
            choices=('DEBUG', 'INFO', 'WARNING', 'ERROR'),
            default='INFO',
            help='the lowest level that is logged (default INFO)',
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command; whatever happens ends in a line and a status."""
        try:
            super().run(parsed_args)
            self.app.stdout.flush()
            if self._summary:
                print(self._summary, file=sys.stderr, flush=True)
            return self._status
        except exception.ScenarioInvalid as exc:
            _end([f'{exc.path}: {finding}' for finding in exc.findings])
            return base.USAGE
        except ValueError as exc:
            _end([messages.clean(exc, 1000)])
            return base.USAGE
        except BrokenPipeError:
            lines = ['the output was closed before its end']
        except OSError as exc:
            place = f': {exc.filename}' if exc.filename else ''
            lines = [f'{exc.strerror or exc}{place}']
        except Exception as exc:
            lines = [messages.clean(exc, 1000)]
        _end(lines)
        return base.FAULT

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Sequence[Sequence[typing.Any]]]:
        """See cliff."""
        _check_installed()
        if parsed_args.list:
            return self._list()
        from nova_ext_sched.cli import progress
        from nova_ext_sched.cmd.simulate import check
        from nova_ext_sched.cmd.simulate import report
        from nova_ext_sched.cmd.simulate import runner
        from nova_ext_sched.cmd.simulate import scenario
        from nova_ext_sched.cmd.simulate import worker

        columns = (
            report.COMPARED_COLUMNS if parsed_args.compare else report.COLUMNS
        )
        base.check_columns(self, parsed_args, columns)
        if parsed_args.nova_log not in (None, worker.STDERR):
            _check_writable(parsed_args.nova_log)
        file = _find(parsed_args.scenario)
        data = check.load(file)
        for option, value in parsed_args.option:
            group, _, name = option.rpartition('.')
            groups = data.setdefault('nova_conf', {})
            groups.setdefault(group or 'DEFAULT', {})[name] = value
        declared = scenario.parse(data)
        requests = [
            worker.Request(
                data,
                plain,
                parsed_args.nova_log,
                parsed_args.nova_log_level,
                explains=parsed_args.reasons,
            )
            for plain in (False, True)[: 1 + parsed_args.compare]
        ]
        servers = sum(len(step.servers) for step in declared.steps)
        total = len(requests) * (
            len(declared.hosts) + len(declared.aggregates) + servers
        )
        with progress.bar(sys.stderr, 'Starting nova', total) as advance:
            runs = runner.run(requests, advance, file)
        judged = report.Report(declared, *runs, verbose=parsed_args.reasons)
        self._status = base.FINE if judged.held else base.SOME_FOUND
        self._summary = '\n'.join(
            filter(None, (declared.description, judged.summary))
        )
        self._write = judged.write
        if declared.independent:
            self._summary = judged.summary
            # The text begins with it.
            self._is_said = True
        return columns, [line.row for line in judged.lines]

    def write_text(self, out: layout.Layout, rows: list[lister.Row]) -> None:
        """See the base class."""
        self._write(out)
        if self._is_said:
            self._summary = ''

    def _list(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        from nova_ext_sched.cmd.simulate import document

        rows = [
            (name, document.load(str(file))['description'])
            for name, file in _shipped().items()
        ]

        def write(out: layout.Layout) -> None:
            for name, description in rows:
                out.say(name)
                out.say(description, 4, hang=0)

        self._write = write
        return ('Scenario', 'Description'), rows


def _shipped() -> dict[str, pathlib.Path]:
    folder = pathlib.Path(__file__).parent / 'scenarios'
    return {file.stem: file for file in sorted(folder.glob('*.yaml'))}


def _find(name: str) -> str:
    """Return the file that an argument names.

    :raises ValueError: there is none
    """
    shipped = _shipped()
    if os.path.exists(name) and not (name in shipped and os.path.isdir(name)):
        return name
    if name in shipped:
        return str(shipped[name])
    meant = schema.suggest([name], shipped)
    raise ValueError(
        'expected a file or the name of a scenario that --list shows, got '
        f'{messages.clean(name)}{meant}'
    )


def _check_writable(file: str) -> None:
    """Make a file that does not exist yet.

    :raises ValueError: it cannot be written
    """
    try:
        open(file, 'a').close()
    except OSError as exc:
        raise ValueError(f'{exc.strerror}: {file}') from exc


def _check_installed() -> None:
    """Refuse to run without the packages of the extra.

    :raises ValueError: some are missing
    """
    missing = []
    for requirement in importlib.metadata.requires('nova-ext-sched') or ():
        wanted, _, marker = requirement.partition(';')
        if re.search(r'extra\s*==\s*[\'"]simulator[\'"]', marker):
            (name,) = re.findall(r'^[\w.-]+', wanted)
            try:
                importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                missing.append(name)
    if missing:
        raise ValueError(
            'expected the packages of the extra "simulator", got no '
            f'{messages.first_few(missing)}; install them: '
            f'{messages.install_extra("simulator")}'
        )


def _end(lines: Sequence[str]) -> None:
    """Say why the command failed, and let nothing be said after it.

    Python would write what is left for a closed pipe or a full disk when it
    exits, and fail once more.
    """
    with contextlib.suppress(OSError, ValueError):
        for line in lines:
            print(line, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
