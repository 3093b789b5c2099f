# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched`` and its subcommands.

The subcommands are the entry points of the namespace
``nova_ext_sched.commands``; each is imported only when it runs. All end with
the exit statuses of :mod:`nova_ext_sched.cli.base`.
"""

import argparse
from collections.abc import Sequence
import logging
import signal
import sys
import typing

from nova_ext_sched import messages
from nova_ext_sched.cli import help as cli_help
from nova_ext_sched.cli import interrupts

NAMESPACE = 'nova_ext_sched.commands'

#: The arguments with which a Python runs this program. -P: the working
#: directory may have a nova.py.
PROGRAM = ('-P', '-m', 'nova_ext_sched.cli.main')

# argparse's exit status for wrong usage.
_USAGE = 2
_MOVED = ('--config-file', '--config-dir')

# Commands that users expect here, and those to use instead.
_ELSEWHERE = {
    'status': 'nova-ext-sched-status upgrade check',
    'version': 'nova-ext-sched --version',
}

# cliff's exit status if it is interrupted.
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the subcommand that ``argv`` names.

    :param argv: arguments, by default those of the process
    :returns: the exit status of the subcommand
    """
    argv = _move_options(sys.argv[1:] if argv is None else list(argv))
    try:
        with interrupts.certain():
            return _run(argv)
    except KeyboardInterrupt:
        # An impatient second Ctrl-C must not change how this ends.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print('interrupted', file=sys.stderr)
        return _INTERRUPTED


def _run(argv: list[str]) -> int:
    # Imported here, so that main() handles an early Ctrl-C.
    import importlib.metadata

    try:
        from cliff import commandmanager
    except ImportError as exc:
        print(
            f'nova-ext-sched: the Python package {exc.name} is missing. '
            'Install the extra that has it: '
            + messages.install_extra('commands'),
            file=sys.stderr,
        )
        return _USAGE

    if argv and argv[0] in _ELSEWHERE:
        print(
            f'nova-ext-sched: there is no command {argv[0]}. Use: '
            f'{_ELSEWHERE[argv[0]]}',
            file=sys.stderr,
        )
        return _USAGE

    status = _make_app(argv)(
        description='Explain what nova-scheduler does, plan moves, and try '
        'placement policies.',
        version=importlib.metadata.version('nova-ext-sched'),
        command_manager=commandmanager.CommandManager(NAMESPACE),
        deferred_help=True,
        # Without a command cliff would start its interactive mode.
    ).run(argv if argv not in ([], ['help']) else ['--help'])
    if status == _INTERRUPTED:
        raise KeyboardInterrupt
    return status


def _make_app(argv: list[str]) -> typing.Any:
    """Return the class of cliff's application, with this package's changes.

    :param argv: the typed command line after the program's name
    """
    from cliff import app
    from cliff import help as cliff_help

    from nova_ext_sched.cli import completion

    class App(app.App):
        # Warnings and errors alone, unless -v asks for more.
        DEFAULT_VERBOSE_LEVEL = 0

        #: The words that were typed after the program's name.
        words = argv

        def __init__(self, *args: typing.Any, **kwargs: typing.Any) -> None:
            super().__init__(*args, **kwargs)
            # In place of cliff's "complete", which knows no names of hosts.
            self.command_manager.add_command('complete', completion.Complete)

        def build_option_parser(
            self, *args: typing.Any, **kwargs: typing.Any
        ) -> argparse.ArgumentParser:
            return cli_help.improve(
                super().build_option_parser(*args, **kwargs)
            )

        def print_help_if_requested(self) -> None:
            # cliff's help has all commands in one list.
            if self.options.deferred_help:
                cli_help.list_commands(
                    self.parser,
                    {
                        name: found.load()(self, None)
                        for name, found in self.command_manager
                    },
                )
                self.stdout.write(self.parser.format_help())
                raise cliff_help.HelpExit()

        def configure_logging(self) -> None:
            super().configure_logging()
            # cliff's level would let lines be formatted that no handler
            # writes. Those of DEBUG have whole answers of placement.
            root = logging.getLogger()
            root.setLevel(min(handler.level for handler in root.handlers))

    return App


def _move_options(argv: list[str]) -> list[str]:
    """Move the options that name nova.conf after the subcommand.

    nova's own commands take ``--config-file`` and ``--config-dir`` before it.
    """
    moved: list[str] = []
    rest = list(argv)
    while rest and rest[0].partition('=')[0] in _MOVED:
        # Without "=" the value is the next argument.
        number = 1 if '=' in rest[0] else 2
        moved += rest[:number]
        del rest[:number]
    return [*rest[:1], *moved, *rest[1:]]


if __name__ == '__main__':
    sys.exit(main())
