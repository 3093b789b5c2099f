# SPDX-License-Identifier: Apache-2.0

"""Runs commands in other processes, for copies of a cloud.

A process can answer for one cloud only: to suppose hosts, or to find how many
are enough, needs further processes.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import pathlib
import subprocess
import sys

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.cli import base
from nova_ext_sched.cli import main

#: The most hosts that are supposed.
MOST = 512

_FEWEST = ':min'
_OF_NOVA = ('--config-file', '--config-dir', '--from')


def save(
    path: pathlib.Path, files: Iterable[str], folders: Iterable[str]
) -> None:
    """Save the cloud of nova.conf in another process.

    :param files: the values of ``--config-file``
    :param folders: the values of ``--config-dir``
    :raises exception.InvalidValue: the cloud cannot be saved
    """
    words = [
        *(f'--config-file={one}' for one in files),
        *(f'--config-dir={one}' for one in folders),
    ]
    ended = _run(['save', *words, '--', str(path)])
    if ended.returncode:
        raise exception.InvalidValue(
            where='the cloud',
            expected='one that can be copied',
            got=_read_error(ended),
        )


def find_fewest(
    added: Sequence[str], words: Sequence[str], path: pathlib.Path
) -> tuple[list[str], str]:
    """Return ``--add-host`` with the fewest hosts that are enough.

    They are enough if the command ends with exit status 0. It runs once for
    each number that is tried.

    :param added: values of ``--add-host``; one can have ``:min``
    :param words: the command
    :param path: the file of a copy of the cloud
    :returns: the values with a number in place of ``min``, and a sentence
        about it
    :raises exception.InvalidValue: several have ``:min``, or the command fails
    """
    asked = [one for one in added if _FEWEST in one]
    if not asked:
        return [*added], ''
    if len(asked) > 1:
        raise exception.InvalidValue(
            where='--add-host', expected=f'one {_FEWEST}', got=asked[1]
        )

    def put(number: int, texts: Iterable[str]) -> list[str]:
        # Not in other words: hints and names may have a colon, too.
        meant = asked[0].replace(_FEWEST, f':{number}')
        return [
            one.removesuffix(asked[0]) + meant
            if one == asked[0] or one.endswith(f'={asked[0]}')
            else one
            for one in texts
        ]

    plain = _leave_out_cloud(words)

    def suffices(number: int) -> bool:
        ended = _run([*put(number, plain), '--from', str(path)])
        if ended.returncode not in (base.FINE, base.SOME_FOUND):
            # A command that fails says nothing of whether they are enough.
            raise exception.InvalidValue(
                where='the command for --add-host',
                expected='an answer',
                got=_read_error(ended),
            )
        return ended.returncode == base.FINE

    least, most = 0, 1
    while most <= MOST and not suffices(most):
        least, most = most, most * 2
    if most > MOST:
        return put(MOST, added), f'{MOST} more hosts are not enough either.'
    while most - least > 1:
        middle = (least + most) // 2
        if suffices(middle):
            most = middle
        else:
            least = middle
    hosts = messages.count('more host', most)
    are = messages.agree(most, 'is', 'are')
    return put(most, added), f'{hosts} {are} the fewest that are enough.'


def _leave_out_cloud(words: Sequence[str]) -> list[str]:
    """Return a command without the options that choose its cloud."""
    kept, skips = [], False
    for word in words:
        if skips or word.partition('=')[0] in _OF_NOVA:
            skips = word in _OF_NOVA and not skips
            continue
        kept.append(word)
    return kept


def _read_error(ended: 'subprocess.CompletedProcess[str]') -> str:
    return messages.clean(ended.stderr.strip().rpartition('\n')[2])


def _run(words: Sequence[str]) -> 'subprocess.CompletedProcess[str]':
    return subprocess.run(
        [sys.executable, *main.PROGRAM, *words],
        capture_output=True,
        text=True,
    )
