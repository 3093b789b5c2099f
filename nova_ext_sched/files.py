# SPDX-License-Identifier: Apache-2.0

"""Writes files whole or not at all."""

from collections.abc import Iterator
import contextlib
import os
import pathlib
import tempfile
import typing


def write(path: pathlib.Path, text: str, mode: int | None = None) -> None:
    """Write a file whole, or leave the old one as it is.

    :param mode: its permissions; None to keep them, or for the user's default
    :raises OSError: it cannot be written
    """
    # A lone surrogate has no UTF-8.
    data = text.encode('utf-8', errors='backslashreplace')
    # A link stays a link, and a pipe is written to, not replaced.
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    if mode is None and path.exists():
        mode = path.stat().st_mode & 0o777
    elif mode is None:
        umask = os.umask(0)
        os.umask(umask)
        mode = 0o666 & ~umask
    with replacing(path, mode) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(
    path: pathlib.Path, mode: int = 0o600
) -> Iterator[typing.BinaryIO]:
    """Yield a file that takes a name when the block ends, if it does not fail.

    :param mode: its permissions; by default it is for its owner alone
    :raises OSError: it cannot be written
    """
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f'.{path.name}.')
    try:
        with os.fdopen(number, 'wb') as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
