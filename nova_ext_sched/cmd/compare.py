# SPDX-License-Identifier: Apache-2.0

"""The command ``nova-ext-sched compare``."""

import argparse
from collections.abc import Iterator
import contextlib
import importlib.metadata
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import typing

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.cli import base
from nova_ext_sched.cli import help as cli_help
from nova_ext_sched.cli import main
from nova_ext_sched.cli import progress as bar
from nova_ext_sched.cli import report
from nova_ext_sched.cmd import scheduler

# The plans whose first line is compared; they need no host or flavor.
_PLANS = ('audit', 'mend', 'survive', 'maintain')


class Compare(report.Lister):
    """Ask one saved cloud in two environments, or with two nova.conf.

    Asks for each distinct request of a server as a new boot, for the capacity
    of each flavor, and for the first line of audit, mend, survive and
    maintain, and says which answers differ. Name the Python of another
    environment, or one or two files of options; the other side is this
    environment, or the options of the file.
    """

    _epilog = (
        'Exit status: 0 all answers are the same; 1 something could not be '
        'read; 2 wrong usage; 3 an answer differs; 130 interrupted.'
    )
    purpose = cli_help.LOOK
    examples = (
        'cloud.json.gz --python /opt/nova34/bin/python',
        'cloud.json.gz --config-file new.conf',
        'cloud.json.gz --config-file a.conf --config-file b.conf',
    )
    arguments = {
        'file': {
            'metavar': 'FILE',
            'type': pathlib.Path,
            'help': 'file that save wrote',
        },
        '--python': {
            **base.REPEATABLE,
            'metavar': 'PYTHON',
            'help': 'the Python of another environment with this package and '
            'its extra "offline" (twice: two others)',
        },
        '--config-file': {
            **base.REPEATABLE,
            'metavar': 'FILE',
            'help': 'nova.conf whose options take the place of those in the '
            'file (twice: two of them)',
        },
        **scheduler.WITHOUT,
        '--answers': {'action': 'store_true', 'help': argparse.SUPPRESS},
    }
    columns = ('Question', 'First', 'Second')

    def take_action(self, parsed_args: argparse.Namespace) -> typing.Any:
        """Compare two sides; with ``--answers`` write the answers of one.

        :raises base.UsageError: the options do not name two sides
        """
        if parsed_args.answers:
            self._answer(parsed_args)
            self.color, self._report = '', report.Report('', (), ())
            return (), ()
        given = len(parsed_args.python), len(parsed_args.config_file)
        if sorted(given) not in ([0, 1], [0, 2]):
            raise base.UsageError(
                'Name one or two of --python, or of --config-file.'
            )
        return super().take_action(parsed_args)

    def make_report(self, parsed_args: argparse.Namespace) -> report.Report:
        sides = [
            *[(one, ()) for one in parsed_args.python],
            *[
                (sys.executable, ('--config-file', one))
                for one in parsed_args.config_file
            ],
        ]
        if len(sides) == 1:
            sides.insert(0, (sys.executable, ()))
        with bar.bar(sys.stderr, 'Asking', color=parsed_args.color) as advance:
            asked = [
                _ask(python, parsed_args, options, advance)
                for python, options in sides
            ]
        (_, first), (_, second) = asked
        questions = [*first, *(one for one in second if one not in first)]
        rows = [
            (one, first.get(one, report.NONE), second.get(one, report.NONE))
            for one in questions
            if first.get(one) != second.get(one)
        ]
        answers = messages.count('answer', len(questions))
        sentence, sections = report.begin(
            f'{len(rows)} of {answers} differ'
            if rows
            else f'All {answers} are the same',
            'First: {}. Second: {}.'.format(*(name for name, _ in asked)),
        )
        sections += [
            report.Section(f'{question}:', [report.Line(one) for one in said])
            for question, *said in rows
        ]
        status = base.SOME_FOUND if rows else base.FINE
        return report.Report(sentence, sections, rows, status=status)

    def _answer(self, parsed_args: argparse.Namespace) -> None:
        """Write nova's release, then each answer, as lines of JSON."""
        scheduler.prepare()
        from nova_ext_sched.saved import reading
        from nova_ext_sched.saved import writing

        options = None
        if parsed_args.config_file:
            options = writing.read_file_options(parsed_args.config_file)
        reading.use(parsed_args.file, parsed_args.without, options)
        print(json.dumps(importlib.metadata.version('nova')))
        for question, answer in _answer_all(parsed_args.file):
            print(json.dumps([question, answer]), flush=True)


def _ask(
    python: str,
    parsed_args: argparse.Namespace,
    options: tuple[str, ...],
    advance: typing.Any,
) -> tuple[str, dict[str, str]]:
    """Ask one side in a process of its own.

    :returns: its name for people, and its answers by question
    :raises exception.InvalidValue: the process does not answer
    """
    argv = [python, *main.PROGRAM, 'compare', str(parsed_args.file)]
    argv += ['--answers', *options]
    argv += [f'--without={one}' for one in parsed_args.without]
    said, line, release, answers = '', '', '', {}
    # Not a pipe: it would fill up, as it is only read after the answers.
    with tempfile.TemporaryFile('w+', errors='replace') as errors:
        try:
            with subprocess.Popen(
                argv, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as asked:
                assert asked.stdout is not None
                release = json.loads(asked.stdout.readline() or '""')
                for line in asked.stdout:
                    question, answer = json.loads(line)
                    answers[question] = answer
                    advance()
        except OSError as exc:
            said = str(exc)
        except (TypeError, ValueError):
            answers = {}
        errors.seek(0)
        said = said or errors.read() or line
    if not answers or asked.returncode:
        raise exception.InvalidValue(
            where=' '.join([python, *options]),
            expected='answers',
            # Of a traceback, the cause.
            got=messages.clean(said.strip().rpartition('\n')[2]),
        )
    return _name(python, options, release), answers


def _name(python: str, options: tuple[str, ...], release: str) -> str:
    """Return the name of a side for people."""
    place = '' if python == sys.executable else f' ({messages.clean(python)})'
    if options:
        place = f' with {messages.clean(options[-1])}'
    return f'nova {release}{place}'


def _answer_all(file: pathlib.Path) -> Iterator[tuple[str, str]]:
    """Yield all questions of a saved cloud, each with its answer."""
    from nova_ext_sched.saved import requests

    for server in requests.find_distinct():
        argv = ['explain', '--server', server, '--operation', 'boot']
        status, document = _run(*argv, '--from', str(file), '-f', 'json')
        order = json.loads(document or '{}').get('order', [])
        answer = ' '.join([f'{status}:', *(one['host'] for one in order)])
        yield f'a new server like {server}', answer
    status, document = _run('capacity', '--from', str(file), '-f', 'json')
    for flavor in json.loads(document or '{}').get('flavors', []):
        yield f'servers of flavor {flavor["name"]}', str(flavor['servers'])
    for name in _PLANS:
        status, text = _run(name, '--from', str(file))
        yield name, f'{status}: {text.partition(chr(10))[0]}'


def _run(*argv: str) -> tuple[int, str]:
    """Run a command in this process; return status and output."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        with contextlib.redirect_stderr(io.StringIO()):
            status = main.main(argv)
    return status, out.getvalue()
