# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched simulate``.

The extra ``simulator`` is imported when the command runs, so that it can say
which package is missing.
"""

import argparse
from collections.abc import Callable
from collections.abc import Sequence
import importlib.metadata
import os
import pathlib
import re
import sys

from nova_ext_sched import messages
from nova_ext_sched import schema
from nova_ext_sched import simulator
from nova_ext_sched.cli import base
from nova_ext_sched.cli import help as cli_help
from nova_ext_sched.cli import options
from nova_ext_sched.cli import progress
from nova_ext_sched.cli import report

# A requirement of the extra "simulator", and the name of its package.
_REQUIREMENT = re.compile(r'([\w.-]+).*;.*extra\s*==\s*[\'"]simulator[\'"]')


class Simulate(report.Lister):
    """Run a placement scenario on a simulated cloud.

    Runs nova-api, conductor, scheduler, a fake compute for each host and a
    real placement in one process; there is no service to start.
    """

    _epilog = (
        'Exit status: 0 every step did what it expects; 1 the simulated cloud '
        'failed, or the output could not be written; 2 the usage or the '
        'scenario is wrong; 3 a step did something else; 130 interrupted.'
    )

    purpose = cli_help.TRY
    examples = (
        '--list',
        'windows_licensing --compare',
        'scenario.yaml --reasons',
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """See cliff."""
        parser = super().get_parser(prog_name)
        base.add(
            parser.add_mutually_exclusive_group(required=True),
            {
                'scenario': {
                    'metavar': 'SCENARIO',
                    'nargs': '?',
                    'help': 'a file, or the name of a scenario listed by '
                    '--list',
                },
                '--list': {
                    'action': 'store_true',
                    'help': 'list the scenarios that come with the package',
                },
            },
        )
        base.add(
            parser,
            {
                '--option': {
                    **options.OPTION,
                    'help': 'as if nova_conf in the scenario had this '
                    '(repeatable)',
                },
                '--compare': {
                    'action': 'store_true',
                    'help': 'run the same steps on plain nova too, and '
                    'compare',
                },
                '--reasons': {
                    'action': 'store_true',
                    'help': 'show why hosts were refused in every step, not '
                    'only where there was no valid host',
                },
                '--nova-log': {
                    'metavar': 'FILE',
                    'help': "append nova's log to this file, or - for "
                    'standard error; with "nova-ext-sched -v simulate", at '
                    'level DEBUG',
                },
            },
        )
        return parser

    def get_columns(self, parsed_args: argparse.Namespace) -> Sequence[str]:
        """See the base class."""
        _check_installed()
        from nova_ext_sched.cmd import simulate_report

        if parsed_args.list:
            return ('Scenario', 'Description')
        return (
            simulate_report.COMPARED_COLUMNS
            if parsed_args.compare
            else simulate_report.COLUMNS
        )

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        """See the base class."""
        if parsed_args.list:
            return list_scenarios()
        with progress.bar(
            sys.stderr, 'Starting nova', color=self.color
        ) as advance:
            return simulate(
                parsed_args, bool(self.app_args.verbose_level), advance
            )


def _check_installed() -> None:
    """Refuse to run without the packages of the extra.

    :raises base.UsageError: some are missing
    """
    missing = []
    for requirement in importlib.metadata.requires('nova-ext-sched') or ():
        if found := _REQUIREMENT.match(requirement):
            try:
                importlib.metadata.version(found[1])
            except importlib.metadata.PackageNotFoundError:
                missing.append(found[1])
    if missing:
        raise base.UsageError(
            'The packages of the extra "simulator" are missing: '
            f'{messages.first_few(missing)}. Install them: '
            f'{messages.install_extra("simulator")}'
        )


def simulate(
    parsed_args: argparse.Namespace,
    is_verbose: bool,
    advance: Callable[..., None],
) -> report.Report:
    """Return the report of a scenario.

    :param is_verbose: whether nova's log has its DEBUG lines
    :raises base.UsageError: there is no such scenario
    :raises exception.ScenarioInvalid: the scenario is wrong, or nova refuses a
        part of it
    """
    from nova_ext_sched.cmd import simulate_report
    from nova_ext_sched.simulator import check
    from nova_ext_sched.simulator import runner
    from nova_ext_sched.simulator import scenario
    from nova_ext_sched.simulator import worker

    if parsed_args.nova_log not in (None, worker.STDERR):
        # Fails early: a cloud takes seconds before it writes a log.
        open(parsed_args.nova_log, 'a').close()
    file = _find(parsed_args.scenario)
    data = check.load(file)
    for option, value in parsed_args.option:
        group, _, name = option.rpartition('.')
        groups = data.setdefault('nova_conf', {})
        groups.setdefault(group or 'DEFAULT', {})[name] = value
    declared = scenario.parse(data)
    requests = [
        worker.Run(
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
    return simulate_report.make(
        declared,
        *runner.run(requests, advance, file),
        verbose=parsed_args.reasons,
    )


def list_scenarios() -> report.Report:
    """Return the report of the scenarios that come with the package."""
    from nova_ext_sched.simulator import document

    rows = [
        (name, document.load(str(file))['description'])
        for name, file in _shipped().items()
    ]
    sentence, first = report.begin(
        f'{messages.count("scenario", len(rows))} come with the package'
    )
    listed = report.Section(
        rows=[report.Line(name, notes=[meant]) for name, meant in rows],
        indent=0,
    )
    return report.Report(sentence, [*first, listed], rows)


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
    raise base.UsageError(
        'expected a file or the name of a scenario that --list shows, got '
        f'{messages.clean(name)}{schema.suggest([name], shipped)}'
    )
