# SPDX-License-Identifier: Apache-2.0

"""Base of all commands: their exit statuses and arguments."""

import argparse
from collections.abc import Mapping
from collections.abc import Sequence
import logging
import os
import shlex
import sys
import types
import typing

from cliff import command
from oslo_config import cfg

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.cli import help as cli_help
from nova_ext_sched.cli import interrupts
from nova_ext_sched.policy import amount

#: The exit statuses of all commands, except that of Ctrl-C; they are described
#: in doc/source/cli/index.rst.
FINE = 0
FAULT = 1
USAGE = 2
SOME_FOUND = 3

UsageError = exception.UsageError

#: Options and arguments by name, each with what argparse is told about it.
Arguments = Mapping[str, Mapping[str, typing.Any]]

#: What argparse is told about an option that can be given several times.
REPEATABLE: Mapping[str, typing.Any] = {'action': 'append', 'default': []}


class Command(command.Command):
    """A command with an exit status.

    ======  ==================================================
    status  meaning
    ======  ==================================================
    0       fine
    1       something could not be read: a database, placement
    2       wrong usage, or what is named does not exist
    3       something was found, or no host is left
    130     after Ctrl-C
    ======  ==================================================

    Progress and faults go to standard error.
    """

    #: The program that has this command.
    program = 'nova-ext-sched'

    #: Its purpose; one of :data:`.help.PURPOSES`.
    purpose = cli_help.OTHERS

    #: Its own arguments, in the order of the help.
    arguments: Arguments = types.MappingProxyType({})

    #: Command lines at the end of its help, without the program and its name.
    examples: Sequence[str] = ()

    #: The hints for options that the command does not have, by option.
    hints: Mapping[str, str] = types.MappingProxyType({})

    #: The exit status; set by ``take_action``.
    status = FINE

    #: The reason of a failure, as standard error has it.
    fault = ''

    @property
    def command_line(self) -> str:
        """The typed command line, without passwords."""
        words = getattr(self.app, 'words', None)
        if not isinstance(words, list):
            words = [self.cmd_name or '']
        return messages.without_secrets(shlex.join([self.program, *words]))

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """See cliff."""
        parser = cli_help.improve(super().get_parser(prog_name))
        parser.examples = [
            f'{prog_name} {one}'.rstrip() for one in self.examples
        ]
        parser.hints = self.hints
        add(parser, self.arguments)
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command, report its errors, and return the exit status."""
        try:
            # main() does this for nova-ext-sched; the OpenStackClient does
            # not.
            with interrupts.certain():
                super().run(parsed_args)
            self.app.stdout.flush()
        except (
            UsageError,
            exception.InvalidValue,
            exception.ScenarioInvalid,
            cfg.ConfigFilesNotFoundError,
        ) as exc:
            return self._fail(exc, USAGE)
        except Exception as exc:
            return self._fail(exc, FAULT)
        return self.status

    def _fail_to_write(self, option: str, path: object, exc: OSError) -> int:
        """Report that the file of an option cannot be written."""
        # The error itself may name a temporary file.
        return self._fail(
            exception.InvalidValue(
                where=option,
                expected='a file that can be written',
                got=f'{path} ({exc.strerror or exc})',
            ),
            FAULT,
        )

    def _fail(self, exc: Exception, status: int) -> int:
        if self.app_args and self.app_args.debug:
            logging.getLogger(__name__).debug('', exc_info=exc)
        text = messages.without_secrets(_say_fault(exc))
        if not isinstance(exc, exception.ScenarioInvalid):
            # A fault of a scenario names the file instead.
            text = f'{self.program} {self.cmd_name}: {text}'
        self.fault = text
        print(text, file=sys.stderr)
        try:
            self.app.stdout.flush()
        except OSError:
            # Python would write what is left when it exits, and fail again.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.app.stdout.fileno())
        return status


def _say_fault(exc: Exception) -> str:
    """Describe an error for an operator."""
    if type(exc).__module__.startswith(('oslo_db.', 'sqlalchemy.')):
        # Without the SQL statement, which is in the error's further lines.
        return (
            f'[api_database] connection in nova.conf: expected an answer of '
            f'the database, got {messages.say_error(exc)}'
        )
    if isinstance(exc, BrokenPipeError):
        return 'the output was closed before its end'
    return messages.say_option(exc).strip() or type(exc).__name__


def add(parser: typing.Any, arguments: Arguments) -> None:
    """Add arguments.

    :param parser: argparse's, or a group of it
    """
    for name, described in arguments.items():
        parser.add_argument(name, **described)


def read_amount(text: str) -> int:
    """Parse an argument that is an integer, 1 or more.

    :raises argparse.ArgumentTypeError: the text has another form
    """
    try:
        return amount.check(text, '')
    except exception.InvalidValue as exc:
        raise argparse.ArgumentTypeError(
            f'expected {amount.EXPECTED}, got {text!r}'
        ) from exc


def read_pair(text: str, form: str = 'KEY=VALUE') -> tuple[str, str]:
    """Parse an argument into name and value.

    :param form: the expected form, for the error
    :raises argparse.ArgumentTypeError: the text has another form
    """
    name, equals, value = text.partition('=')
    if not name or not equals:
        raise argparse.ArgumentTypeError(f'expected {form}, got {text!r}')
    return name, value
