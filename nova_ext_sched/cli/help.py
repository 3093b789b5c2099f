# SPDX-License-Identifier: Apache-2.0

"""Writes the help of commands, and errors of usage."""

import argparse
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import types
import typing

from nova_ext_sched import messages

#: Groups of options that many commands have. In the help they follow a
#: command's own groups; those of cliff's formatters are last.
OUTPUT, NOVA_CONF = _SHARED = 'output', 'nova.conf'

#: The purposes by which the help groups the commands, in its order.
PURPOSES = LOOK, PLAN, RECORD, TRY = ('Look', 'Plan', 'Record', 'Try')
OTHERS = 'Others'

_USAGE = 2

# The beginning of argparse's error about unknown options.
_UNKNOWN = 'unrecognized arguments: '


class Parser(argparse.ArgumentParser):
    """The methods that :func:`improve` adds to the parsers of cliff.

    :ivar examples: command lines, for the end of the help
    :ivar hints: hints for unknown options, by name
    """

    examples: Sequence[str] = ()
    hints: Mapping[str, str] = types.MappingProxyType({})

    def add_argument_group(
        self, *args: typing.Any, **kwargs: typing.Any
    ) -> typing.Any:
        """See argparse."""
        group = super().add_argument_group(*args, **kwargs)
        self._action_groups.sort(key=_rank)
        return group

    def _get_optional_actions(self) -> list[argparse.Action]:
        """Return the options in the order of the help."""
        return [
            action
            for group in self._action_groups
            for action in group._group_actions
            if action.option_strings and action in self._actions
        ]

    def format_help(self) -> str:
        """See argparse."""
        if self.usage is None:
            formatter = self._get_formatter()
            formatter.add_usage(None, self._get_positional_actions(), [], '')
            words = formatter.format_help().removeprefix(self.prog).split()
            # argparse would list each option, cliff's first.
            self.usage = ' '.join(['%(prog)s', '[options]', *words])
        text = super().format_help()
        if self.examples:
            text += '\nExamples:\n'
            text += ''.join(f'  {one}\n' for one in self.examples)
        return text

    def error(self, message: str) -> typing.NoReturn:
        """Report an error of usage, and where the usage is described."""
        said = [f'{self.prog}: {message}', *self._hint(message)]
        self.exit(_USAGE, '\n'.join([*said, f"See '{self.prog} --help'.", '']))

    def _hint(self, message: str) -> Iterator[str]:
        """Yield the nearest option for each unknown one."""
        before, unknown, words = message.partition(_UNKNOWN)
        if before or not unknown:
            return
        for word in words.split():
            name = word.partition('=')[0]
            if name in self.hints:
                yield self.hints[name]
            elif name.startswith('--'):
                known = self._option_string_actions
                if near := messages.nearest(name, known, 1):
                    yield f'Did you mean {near}?'


def improve(parser: argparse.ArgumentParser) -> Parser:
    """Make a parser of cliff a :class:`Parser`, and return it."""
    kind = type(parser)
    parser.__class__ = type(kind.__name__, (Parser, kind), {})
    return typing.cast(Parser, parser)


def share(parser: argparse.ArgumentParser, title: str) -> typing.Any:
    """Return the group with this title; add it if there is none."""
    for group in parser._action_groups:
        if group.title == title:
            return group
    return parser.add_argument_group(title)


def list_commands(
    parser: argparse.ArgumentParser, commands: Mapping[str, typing.Any]
) -> None:
    """Group the commands of a parser's help by purpose.

    :param commands: by name
    """
    wide = max(map(len, commands))
    lines = [parser.description or '']
    for purpose in (*PURPOSES, OTHERS):
        lines += ['', f'{purpose}:']
        for name, command in sorted(commands.items()):
            if getattr(command, 'purpose', OTHERS) == purpose:
                said = command.get_description().partition('\n')[0]
                lines.append(f'  {name:{wide}}  {said.rstrip(".")}')
    lines += [
        '',
        f"'{parser.prog} COMMAND --help' shows options and examples.",
    ]
    parser.description = '\n'.join(lines)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.usage = '%(prog)s [options] COMMAND ...'


def _rank(group: typing.Any) -> int:
    title = group.title or ''
    if title in _SHARED:
        return 1 + _SHARED.index(title)
    return 9 * title.lower().endswith(('formatter', 'formatters'))
