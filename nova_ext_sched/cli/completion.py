# SPDX-License-Identifier: Apache-2.0

"""Completion of what a shell's user types: commands, options and names.

The shell runs ``nova-ext-sched complete --line LINE`` at each Tab. Names of
hosts and the like are those that the last command at a terminal has read, at
most a day ago (:mod:`.cache`): reading the cloud anew would take seconds.
"""

import argparse
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import importlib.metadata
import importlib.resources
import itertools
import json
import os
import pathlib
import re
import shlex

from cliff import complete as cliff_complete

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.cli import cache

#: The script that bash sources. It asks bash's own completion for file names.
SCRIPT = r"""_nova_ext_sched()
{
  local reply line=${COMP_LINE:0:$COMP_POINT}
  COMPREPLY=()
  while IFS= read -r reply; do
    COMPREPLY+=("$reply")
  done < <(nova-ext-sched complete --line "$line" 2>/dev/null)
}
_nova_ext_sched_openstack()
{
  case "$COMP_LINE" in
    *' move plan apply '*|*' aggregate isolation '[ls]*' '*)
      _nova_ext_sched ;;
    *)
      if declare -F _openstack >/dev/null; then _openstack "$@"; fi ;;
  esac
}
complete -o default -F _nova_ext_sched nova-ext-sched
complete -o default -F _nova_ext_sched_openstack openstack
"""

# The entry points of the commands, by program.
_COMMANDS = {
    'nova-ext-sched': 'nova_ext_sched.commands',
    'openstack': 'openstack.nova_ext_sched.v1',
}
# Options that take a host or an aggregate.
_OR_AGGREGATES = ('not_to', 'done')
# bash completes the part of a word after the last of these characters.
_BREAKS = re.compile('.*[=:]')


class Complete(cliff_complete.CompleteCommand):
    """Print what bash or zsh sources to complete commands and names."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """See cliff."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--line',
            help='print what can follow this beginning of a command line',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """See cliff."""
        if parsed_args.line is not None:
            for one in complete(parsed_args.line):
                self.app.stdout.write(f'{one}\n')
            return 0
        if parsed_args.shell != 'bash':
            return super().take_action(parsed_args)
        self.app.stdout.write(SCRIPT)
        return 0


def complete(line: str) -> list[str]:
    """Return the words that can replace the last one of a line.

    Words are quoted for the shell. The list is empty if the shell is to
    complete the name of a file.

    :param line: up to the cursor
    """
    try:
        words = shlex.split(line)
    except ValueError:
        # Within quotes.
        return []
    last = words.pop() if words and not line[-1].isspace() else ''
    if not words:
        return []
    program = pathlib.PurePath(words[0]).name
    fitting = sorted({*_find(program, words[1:], last)}, key=messages.in_order)
    begun = _BREAKS.match(last)
    cut = begun.end() if begun else 0
    return [
        shlex.quote(one[cut:])
        for one in fitting
        if one.startswith(last) and messages.is_clean(one)
    ]


def keep(names: Mapping[str, Iterable[str]], cloud: str = '') -> None:
    """Keep the names of a cloud for a day.

    :param names: by the metavar of the arguments that take them: HOST,
        AGGREGATE
    :param cloud: its name for the OpenStackClient; empty for nova.conf's cloud
    """
    text = json.dumps({kind: sorted({*of}) for kind, of in names.items()})
    cache.write(_file_of(cloud), text)


def read_kept(cloud: str = '') -> dict[str, list[str]]:
    """Return the names that were kept at most a day ago, if any."""
    return dict(json.loads(cache.read(_file_of(cloud)) or '{}'))


def _file_of(cloud: str) -> str:
    return re.sub(r'\W', '_', f'names {cloud}')


def _find(program: str, words: Sequence[str], last: str) -> Iterable[str]:
    """Return the words that can follow the others of a line.

    :param words: the words before, without the program
    """
    commands = importlib.metadata.entry_points(
        group=_COMMANDS.get(program, '-')
    )
    # The OpenStackClient's have several words, and options before them.
    is_openstack = program == 'openstack'
    points = {
        one.name.replace('_', ' ') if is_openstack else one.name: one
        for one in commands
    }
    line = f' {" ".join(words)} '
    for name, point in points.items():
        before, is_there, after = line.partition(f' {name} ')
        if is_there and (is_openstack or not before.strip()):
            parser = point.load()(None, None).get_parser(name)
            return _find_argument(parser, after.split(), last)
    if words or is_openstack or not points:
        return ()
    return (*points, 'complete', 'help')


def _find_argument(
    parser: argparse.ArgumentParser, words: Sequence[str], last: str
) -> Iterable[str]:
    """Return the arguments of a command that can follow others.

    :param words: the arguments before
    """
    by_option = {
        name: action
        for action in parser._actions
        for name in action.option_strings
    }
    positional = [one for one in parser._actions if not one.option_strings]
    # The option whose values are being typed, and how many of them are.
    option, place, typed = '', 0, []
    for word in words:
        if word in by_option:
            option, place = word, 0
        elif option:
            place += 1
        elif not word.startswith('-'):
            typed.append(word)
        if option and place >= _count_values(by_option[option]):
            option = ''
    begun, equals, _ = last.partition('=')
    if option:
        return _list_values(by_option[option], place, typed)
    if equals and begun in by_option:
        values = _list_values(by_option[begun], 0, typed)
        return [f'{begun}={value}' for value in values]
    if last.startswith('-'):
        return by_option
    if positional and positional[-1].nargs in ('*', '+'):
        positional += positional[-1:] * len(typed)
    return itertools.chain.from_iterable(
        _list_values(one, 0, typed)
        for one in positional[len(typed) : len(typed) + 1]
    )


def _count_values(action: argparse.Action) -> int:
    """Return how many values follow an option."""
    return action.nargs if isinstance(action.nargs, int) else 1


def _list_values(
    action: argparse.Action, place: int, typed: Sequence[str]
) -> Iterable[str]:
    """Return the values that an argument can have.

    :param place: the index of the value, if the argument takes several
    :param typed: other arguments of the command
    """
    if action.choices is not None:
        return map(str, action.choices)
    kind = action.metavar or ''
    if isinstance(kind, tuple):
        kind = kind[place]
    if kind == 'SCENARIO':
        folder = importlib.resources.files('nova_ext_sched') / 'simulator'
        files = (folder / 'scenarios').iterdir()
        return [
            one.name.removesuffix('.yaml')
            for one in files
            if one.name.endswith('.yaml')
        ]
    if kind == '<server>':
        return _read_servers(typed)
    if kind.startswith('<'):
        kept = read_kept(os.environ.get('OS_CLOUD', 'envvars'))
    else:
        kept = read_kept()
    found = [*kept.get(kind, ())]
    if action.dest in _OR_AGGREGATES:
        found += kept.get('AGGREGATE', ())
    return found


def _read_servers(typed: Sequence[str]) -> Iterator[str]:
    """Yield the servers of the plan that was typed."""
    for path in typed[:1]:
        with contextlib.suppress(OSError, ValueError):
            plan = plan_format.read(pathlib.Path(path).read_text(), path)
            for move in plan.moves:
                yield move.name or move.server
