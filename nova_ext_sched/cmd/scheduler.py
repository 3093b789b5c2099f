# SPDX-License-Identifier: Apache-2.0

"""Base of the commands that use nova-scheduler's code."""

import argparse
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import gc
import logging
import pathlib
import sys
import tempfile
import typing

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.cli import base
from nova_ext_sched.cli import cache
from nova_ext_sched.cli import help as cli_help
from nova_ext_sched.cli import options
from nova_ext_sched.cli import progress as bar
from nova_ext_sched.cli import report
from nova_ext_sched.cli import topology
from nova_ext_sched.cmd import copied
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import readers

T = typing.TypeVar('T')

# The loggers that warn about nova.conf when the scheduler starts.
_STARTING = ('nova_ext_sched.filters', 'nova_ext_sched.weighers')
# The entry of the cache with the warnings that were reported last.
_WARNED = 'warned'

#: Leaves filters and weighers of a saved cloud out that are not installed.
WITHOUT: base.Arguments = {
    '--without': {
        **base.REPEATABLE,
        'metavar': 'FILTER',
        'help': 'of a saved cloud: answer without this filter or weigher, '
        'which is not installed here (repeatable)',
    }
}


class Command(base.Command):
    """A command that uses nova-scheduler's code, with its nova.conf.

    After the answer, one line says how many warnings nova-scheduler logs at
    start. The line is not repeated for the same warnings within 24 hours.

    Modules that import nova are imported inside functions, after
    :func:`prepare` has run.

    :cvar is_service: whether the command is a service; if so, its log gets the
        warnings, and no line counts them
    """

    is_service = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        group = cli_help.share(parser, cli_help.NOVA_CONF)
        base.add(
            group,
            {
                '--config-file': {
                    **base.REPEATABLE,
                    'metavar': 'FILE',
                    'help': "nova-scheduler's nova.conf; by default where "
                    'nova-scheduler finds it (repeatable)',
                },
                '--config-dir': {
                    **base.REPEATABLE,
                    'metavar': 'DIRECTORY',
                    'help': 'a directory of .conf files (repeatable)',
                },
            },
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command, and count warnings at start in place of logging.

        :returns: the exit status
        """
        if self.is_service or (self.app_args and self.app_args.verbose_level):
            return super().run(parsed_args)
        collector = _WarningCollector()
        for name in _STARTING:
            logging.getLogger(name).addFilter(collector)
        try:
            return super().run(parsed_args)
        finally:
            for name in _STARTING:
                logging.getLogger(name).removeFilter(collector)
            collector.report()

    def configure(self, parsed_args: argparse.Namespace) -> None:
        """Configure this process as nova-scheduler's.

        :raises exception.InvalidValue: there is no nova
        :raises exception.UsageError: there is no nova.conf
        """
        prepare(bool(self.app_args and self.app_args.debug))
        self.read_configuration(parsed_args)

    def read_configuration(self, parsed_args: argparse.Namespace) -> None:
        """Read nova.conf, and set up nova's database connections.

        :raises exception.UsageError: there is no nova.conf
        """
        process.configure(parsed_args.config_file, parsed_args.config_dir)

    def say_cloud(self) -> str:
        """Return which cloud the answer is about; empty if unknown."""
        return process.say_cloud()


def prepare(is_debugging: bool = False) -> None:
    """Prepare this process to run nova's code as nova-scheduler does.

    :raises exception.InvalidValue: there is no nova
    """
    try:
        process.patch()
    except ImportError as exc:
        raise exception.InvalidValue(
            where='nova',
            expected="the Python of nova-scheduler's environment",
            got=f'a Python without nova ({sys.executable})',
        ) from exc
    if not is_debugging:
        # nova has lines for each host, which cliff would let through, and
        # neutronclient says at each call that it is deprecated.
        logging.getLogger('nova').setLevel(logging.ERROR)
        logging.getLogger('neutronclient').setLevel(logging.ERROR)
        # This logger writes a traceback for each cell that does not
        # answer. The commands name these cells in a sentence.
        logging.getLogger('nova.context').setLevel(logging.CRITICAL)


class Lister(Command, report.Lister):
    """A command that asks nova-scheduler's code and answers with a report.

    The answer can be for a saved cloud, or for a cloud with supposed changes.

    :cvar label: the progress line while nova-scheduler's code runs
    :cvar has_map: whether ``--map`` can draw the hosts of its answer
    """

    label: str
    has_map = True
    # Whether a server has no place after --without-host took its host away.
    _is_short = False
    # Typing an option of a command that changes things shows what does so.
    hints = dict.fromkeys(
        ('--dry-run', '--apply', '--yes'),
        'This command changes nothing. A plan is carried out by: openstack '
        'move plan apply PLAN',
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        group = cli_help.share(parser, cli_help.NOVA_CONF)
        group.add_argument(
            '--from',
            metavar='FILE',
            type=pathlib.Path,
            dest='saved',
            help='answer for the cloud as save wrote it to this file, instead '
            'of the cloud of nova.conf',
        )
        base.add(group, WITHOUT)
        self.add_groups(parser)
        options.add_change(parser)
        if self.has_map:
            group = parser.add_argument_group('a map of the hosts')
            base.add(group, topology.OPTIONS)
        return parser

    def add_groups(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own groups of options, after its arguments."""

    def read_configuration(self, parsed_args: argparse.Namespace) -> None:
        """Read nova.conf, a saved cloud, or a changed copy of the cloud.

        A copy is made for changes that need one, such as ``--add-host``.

        :raises base.UsageError: both nova.conf and a saved cloud are named;
            ``--without`` is given without a saved cloud; or the saved cloud
            cannot be read
        :raises exception.InvalidValue: nova-scheduler does not read an
            ``--option``
        """
        # check() refuses an option that another service reads, and returns a
        # remark on one that perhaps nothing reads.
        for remark in {readers.check(name) for name, _ in parsed_args.option}:
            if remark:
                print(remark, file=sys.stderr)
        if parsed_args.saved is None:
            if parsed_args.without:
                raise base.UsageError('--without needs --from FILE.')
            if (
                parsed_args.add_host
                or parsed_args.without_host
                or readers.choose_counted(parsed_args.option)
            ):
                self._use_copy(parsed_args)
            else:
                super().read_configuration(parsed_args)
            return
        if parsed_args.config_file or parsed_args.config_dir:
            raise base.UsageError(
                "The file of --from has nova-scheduler's options already: "
                'leave --config-file and --config-dir out. --option changes '
                'one.'
            )
        try:
            self.origin = self._use(parsed_args.saved, parsed_args)
        except OSError as exc:
            raise base.UsageError(
                f'{messages.clean(parsed_args.saved)} of --from cannot be '
                f'read: {exc.strerror or exc}.'
            ) from exc

    def _use(
        self, path: pathlib.Path, parsed_args: argparse.Namespace
    ) -> plan_format.Origin:
        """Make this process answer for a saved cloud with supposed changes."""
        from nova_ext_sched.saved import reading
        from nova_ext_sched.saved import supposed

        # With ":min", find_fewest() runs this command in other processes, once
        # for each number of hosts that it tries.
        parsed_args.add_host, note = copied.find_fewest(
            parsed_args.add_host, getattr(self.app, 'words', ()), path
        )
        wanted = supposed.Supposed(
            [*map(supposed.Added.read, parsed_args.add_host)],
            readers.choose_counted(parsed_args.option),
        )
        origin = reading.use(path, parsed_args.without, wanted=wanted)
        notes = [*filter(None, [note]), *origin.notes]
        if parsed_args.without_host:
            from nova_ext_sched.cmd import arguments

            said = arguments.remove_hosts(parsed_args)
            self._is_short, notes = bool(said), notes + said
        return dataclasses.replace(origin, notes=notes)

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        """Make the report; return its columns and rows for cliff.

        The exit status is SOME_FOUND, not FINE, if servers of a removed host
        have no place.
        """
        made = super().take_action(parsed_args)
        if self._is_short and self.status == base.FINE:
            self.status = base.SOME_FOUND
        return made

    def _use_copy(self, parsed_args: argparse.Namespace) -> None:
        """Make this process answer for a changed copy of nova.conf's cloud.

        :raises exception.InvalidValue: the cloud cannot be copied
        """
        with tempfile.TemporaryDirectory(prefix='nova-ext-sched-') as folder:
            path = pathlib.Path(folder, 'cloud.json.gz')
            copied.save(path, parsed_args.config_file, parsed_args.config_dir)
            origin = self._use(path, parsed_args)
        # No file: the answer is for the cloud as it is now.
        self.origin = dataclasses.replace(origin, file='')

    def ask(
        self,
        work: Callable[[argparse.Namespace, progress.Advance], T],
        parsed_args: argparse.Namespace,
    ) -> T:
        """Configure this process, then call a function with a progress bar.

        :param work: a function that uses nova-scheduler's code
        :raises exception.InvalidValue: there is no nova
        :raises exception.UsageError: there is no nova.conf
        :raises base.UsageError: as :meth:`read_configuration` raises it
        """
        # Modules and the cloud stay in memory until the process ends. With the
        # default thresholds Python's garbage collector scans them over and
        # over; with 10,000 hosts that takes a fifth of the time.
        gc.set_threshold(100_000, 20, 20)
        self.configure(parsed_args)
        with bar.bar(sys.stderr, self.label, color=self.color) as advance:
            return work(parsed_args, advance)


class _WarningCollector(logging.Filter):
    """Keeps warnings out of a log, and counts them."""

    def __init__(self) -> None:
        super().__init__()
        self._warnings: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        is_warning = record.levelno == logging.WARNING
        if is_warning:
            self._warnings.append(record.getMessage())
        return not is_warning

    def report(self) -> None:
        """Write the number of warnings, if they are new within 24 hours."""
        said = '\n'.join(sorted(self._warnings))
        if not said or cache.read(_WARNED) == said:
            return
        number = messages.count('warning', len(self._warnings))
        text = (
            f'nova-scheduler logs {number} at start with this nova.conf. See '
            "'nova-ext-sched-status upgrade check'."
        )
        report.write(sys.stderr, [report.Section(text)])
        cache.write(_WARNED, said)
