# SPDX-License-Identifier: Apache-2.0

"""Keeps texts for a day, only for the user who runs the command.

The files are in ``nova-ext-sched`` of ``$XDG_CACHE_HOME`` (default:
``~/.cache``). If that cannot be written, or is another user's (root with a
user's HOME), nothing is kept.
"""

import contextlib
import os
import pathlib
import time

from nova_ext_sched import files

#: How long a text is valid, in seconds.
DAY = 86_400
# A larger file is not read: no command has written it.
_MOST_BYTES = 4_000_000


def read(name: str) -> str | None:
    """Return a text; None if there is none, or it is older than a day."""
    with contextlib.suppress(OSError, UnicodeError, RuntimeError):
        path = _folder() / name
        found = path.stat()
        age = time.time() - found.st_mtime
        is_mine = found.st_uid == os.geteuid()
        if is_mine and 0 <= age < DAY and found.st_size < _MOST_BYTES:
            return path.read_text()
    return None


def write(name: str, text: str) -> None:
    """Keep a text that only its owner can read (mode 0600)."""
    with contextlib.suppress(OSError, RuntimeError):
        folder = _folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid == os.geteuid():
            files.write(folder / name, text, mode=0o600)


def _folder() -> pathlib.Path:
    """Return the folder.

    :raises RuntimeError: the user has no home
    """
    # XDG Base Directory Specification: a relative path is ignored.
    home = pathlib.Path(os.environ.get('XDG_CACHE_HOME', ''))
    if not home.is_absolute():
        home = pathlib.Path('~/.cache').expanduser()
    return home / 'nova-ext-sched'
