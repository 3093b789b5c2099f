# SPDX-License-Identifier: Apache-2.0

"""What the commands share that run where nova-scheduler runs and only read.

Nothing of nova is imported before :meth:`Command.take_action`: which nova
runs, and how its threads work, is decided first.
"""

import argparse
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import inspect
import logging
import re
import sys

from cliff import command
from cliff import lister
from oslo_config import cfg
from oslo_utils import strutils

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.policy import amount

#: Exit statuses of all commands; doc/source/tools/reference.rst has them.
FINE = 0
FAULT = 1
USAGE = 2
SOME_FOUND = 3
INTERRUPTED = 130

# The password of a URL, as of a database or of RabbitMQ.
_URL_PASSWORD = re.compile(r'(://[^:/@\s]*):[^@\s]*@')


class NovaCommand(command.Command):
    """A command that uses nova-scheduler's code, with an exit status.

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

    #: What the command ends with; set by ``take_action``.
    status = FINE

    #: Said on standard error, after the list.
    sentence = ''

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--config-file',
            metavar='FILE',
            action='append',
            default=[],
            help="nova-scheduler's nova.conf; by default where nova-scheduler "
            'finds it (may be repeated)',
        )
        parser.add_argument(
            '--config-dir',
            metavar='DIRECTORY',
            action='append',
            default=[],
            help='a directory of files that end in .conf (may be repeated)',
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Return the exit status."""
        try:
            super().run(parsed_args)
        except (exception.InvalidValue, cfg.ConfigFilesNotFoundError) as exc:
            return self._fail(exc, USAGE)
        except Exception as exc:
            return self._fail(exc, FAULT)
        if self.sentence:
            self.app.stdout.flush()
            print(without_secrets(self.sentence), file=sys.stderr)
        return self.status

    def configure(
        self,
        parsed_args: argparse.Namespace,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Make this process what nova-scheduler's is.

        :param options: see nova_ext_sched.cmd.nova_scheduler.override
        :raises exception.InvalidValue: see there
        """
        try:
            with _silent_eventlet():
                from nova import monkey_patch
        except ImportError as exc:
            raise exception.InvalidValue(
                where='nova',
                expected="the Python of nova-scheduler's environment",
                got=f'a Python without nova ({sys.executable})',
            ) from exc
        # nova 31 patches on import; nova 32 knows only eventlet.
        if patch := getattr(monkey_patch, 'patch', None):
            if 'backend' in inspect.signature(patch).parameters:
                patch(backend='threading')
            else:
                with _silent_eventlet():
                    patch()
        from nova_ext_sched.cmd import nova_scheduler as scheduler

        if not self.app_args or not self.app_args.debug:
            # nova has lines for each host, which cliff would let through, and
            # neutronclient says at each call that it is deprecated.
            logging.getLogger('nova').setLevel(logging.ERROR)
            logging.getLogger('neutronclient').setLevel(logging.ERROR)
            # It has a traceback for each cell that does not answer. The
            # commands name these cells in a sentence.
            logging.getLogger('nova.context').setLevel(logging.CRITICAL)
        scheduler.configure(
            parsed_args.config_file, parsed_args.config_dir, options
        )

    def _fail(self, exc: Exception, status: int) -> int:
        if self.app_args and self.app_args.debug:
            logging.getLogger(__name__).debug('', exc_info=exc)
        text = _describe(exc)
        print(
            f'nova-ext-sched {self.cmd_name}: {without_secrets(text)}',
            file=sys.stderr,
        )
        return status


class Command(NovaCommand, lister.Lister):
    """A list about what the scheduler thinks, and a sentence.

    The list goes to standard output in the format of ``-f``, the sentence to
    standard error.
    """


@contextlib.contextmanager
def _silent_eventlet() -> Iterator[None]:
    # It complains about locks that were made before it patches them, by a
    # logger that no configuration reaches.
    last_resort = logging.lastResort
    logging.lastResort = logging.NullHandler()
    try:
        yield
    finally:
        logging.lastResort = last_resort


def _describe(exc: Exception) -> str:
    """Return what a fault says to an operator."""
    if isinstance(exc, exception.NovaExtSchedError | cfg.Error):
        return str(exc)
    if type(exc).__module__.startswith(('oslo_db.', 'sqlalchemy.')):
        # Its further lines are the statement.
        return (
            f'[api_database] connection in nova.conf: expected an answer of '
            f'the database, got {messages.describe(exc)}'
        )
    return str(exc).strip() or type(exc).__name__


def check_columns(
    command: lister.Lister,
    parsed_args: argparse.Namespace,
    columns: Sequence[str],
) -> None:
    """Refuse before the work what cliff would refuse after it.

    :raises exception.InvalidValue: ``--column`` names none of the columns
    """
    try:
        command._generate_columns_and_selector(parsed_args, columns)
    except ValueError as exc:
        raise exception.InvalidValue(
            where='--column', expected='existing columns', got=exc
        ) from exc


def read_amount(text: str) -> int:
    """Return an argument that is an integer, 1 or more.

    :raises argparse.ArgumentTypeError: it has another form
    """
    try:
        return amount.check(text, '')
    except exception.InvalidValue as exc:
        raise argparse.ArgumentTypeError(
            f'expected {amount.EXPECTED}, got {text!r}'
        ) from exc


def read_pair(text: str, form: str = 'KEY=VALUE') -> tuple[str, str]:
    """Return name and value of an argument.

    :param form: the form that is expected, for the error
    :raises argparse.ArgumentTypeError: it has another
    """
    name, equals, value = text.partition('=')
    if not name or not equals:
        raise argparse.ArgumentTypeError(f'expected {form}, got {text!r}')
    return name, value


def without_secrets(text: str) -> str:
    """Return a text without passwords that stand in it.

    Errors of database drivers and HTTP clients may carry URLs of nova.conf.
    """
    return strutils.mask_password(_URL_PASSWORD.sub(r'\1:***@', text))
