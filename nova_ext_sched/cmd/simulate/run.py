# SPDX-License-Identifier: Apache-2.0

"""What ``nova-ext-sched simulate`` does with its arguments."""

import argparse
from collections.abc import Callable
from collections.abc import Sequence
import os
import pathlib

from nova_ext_sched import messages
from nova_ext_sched import schema
from nova_ext_sched import simulator
from nova_ext_sched.cli import base
from nova_ext_sched.cli import report as cli_report
from nova_ext_sched.cmd.simulate import report
from nova_ext_sched.simulator import check
from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import runner
from nova_ext_sched.simulator import scenario
from nova_ext_sched.simulator import worker


def get_columns(parsed_args: argparse.Namespace) -> Sequence[str]:
    """Return the columns of what the arguments ask for."""
    if parsed_args.list:
        return ('Scenario', 'Description')
    return report.COMPARED_COLUMNS if parsed_args.compare else report.COLUMNS


def simulate(
    parsed_args: argparse.Namespace,
    is_verbose: bool,
    advance: Callable[..., None],
) -> cli_report.Report:
    """Return the report of a scenario.

    :param is_verbose: whether nova's log has its DEBUG lines
    :raises base.UsageError: there is no such scenario
    :raises exception.ScenarioInvalid: it, or nova, does not take a part of it
    """
    if parsed_args.nova_log not in (None, worker.STDERR):
        # A cloud takes seconds to come so far.
        open(parsed_args.nova_log, 'a').close()
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
            'DEBUG' if is_verbose else 'INFO',
        )
        for plain in (False, True)[: 1 + parsed_args.compare]
    ]
    servers = sum(len(step.servers) for step in declared.steps)
    advance(
        total=len(requests)
        * (len(declared.hosts) + len(declared.aggregates) + servers)
    )
    runs = runner.run(requests, advance, file)
    return report.make(declared, *runs, verbose=parsed_args.reasons)


def list_scenarios() -> cli_report.Report:
    """Return the report of the scenarios that come with the package."""
    rows = [
        (name, document.load(str(file))['description'])
        for name, file in _shipped().items()
    ]
    sentence, first = cli_report.begin(
        f'{messages.count("scenario", len(rows))} come with the package'
    )
    lines = [cli_report.Line(name, notes=[meant]) for name, meant in rows]
    listed = cli_report.Section(rows=lines, indent=0)
    return cli_report.Report(sentence, [*first, listed], rows)


def _shipped() -> dict[str, pathlib.Path]:
    folder = pathlib.Path(simulator.__file__).parent / 'scenarios'
    return {file.stem: file for file in sorted(folder.glob('*.yaml'))}


def _find(name: str) -> str:
    """Return the file that an argument names.

    :raises base.UsageError: there is none
    """
    shipped = _shipped()
    if os.path.exists(name) and not (name in shipped and os.path.isdir(name)):
        return name
    if name in shipped:
        return str(shipped[name])
    meant = schema.suggest([name], shipped)
    raise base.UsageError(
        'expected a file or the name of a scenario that --list shows, got '
        f'{messages.clean(name)}{meant}'
    )
