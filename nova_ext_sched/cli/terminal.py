# SPDX-License-Identifier: Apache-2.0

"""Writes text for people: with colour, or to a file without."""

import os
import typing

from rich import console
from rich import style
from rich import theme

from nova_ext_sched.cli import base

AUTO, ALWAYS, NEVER = CHOICES = ('auto', 'always', 'never')

# The 16 colours that each terminal shows as its user chose them. None has a
# meaning alone: a word, a number or a sign says the same. What is good has no
# colour, because green cannot be read on a white terminal.
_STYLES = {
    'heading': 'bold',
    'good': 'none',
    'bad': 'red',
    'aside': 'dim',
    'bad_count': 'bold white on red',
}
HEADING, GOOD, BAD, ASIDE, BAD_COUNT = _STYLES
#: The style of an answer, by the exit status.
ANSWER = 'answer'
_BAD_ANSWER = 'bold red'
_ANSWERS = {
    None: 'bold',
    base.FINE: 'bold',
    base.SOME_FOUND: _BAD_ANSWER,
    base.FAULT: _BAD_ANSWER,
}


#: ``--color``.
OPTION: base.Arguments = {
    '--color': {
        'choices': CHOICES,
        'default': AUTO,
        'help': 'colour text output; by default on a terminal whose TERM is '
        'not dumb. FORCE_COLOR turns colour on, NO_COLOR turns it off',
    }
}


def make(
    stream: typing.Any,
    color: str = AUTO,
    width: int | None = None,
    status: int | None = None,
) -> console.Console:
    """Return a Console that writes on a stream.

    No text is markup, and no word gets another form.

    :param color: one of :data:`CHOICES`
    :param width: the most columns; None for those of the terminal
    :param status: of the command, which colours its answer
    """
    is_terminal = _is_terminal(stream)
    is_coloured = color == ALWAYS or (
        color == AUTO
        and not os.environ.get('NO_COLOR')
        and (
            bool(os.environ.get('FORCE_COLOR'))
            or (is_terminal and os.environ.get('TERM') != 'dumb')
        )
    )
    styles: dict[str, str | style.Style] = dict(_STYLES)
    styles[ANSWER] = _ANSWERS[status]
    return _Console(
        file=stream,
        width=width,
        # With a height, rich keeps the width where TERM is dumb.
        height=width and 25,
        force_terminal=is_terminal,
        color_system='standard' if is_coloured else None,
        no_color=False,
        markup=False,
        emoji=False,
        highlight=False,
        theme=theme.Theme(styles),
    )


class _Console(console.Console):
    """rich's, which would end the process where its reader has gone."""

    def on_broken_pipe(self) -> None:
        """Raise the BrokenPipeError: commands say that the output closed."""
        raise


def _is_terminal(stream: typing.Any) -> bool:
    isatty = getattr(stream, 'isatty', None)
    return isatty is not None and isatty()
