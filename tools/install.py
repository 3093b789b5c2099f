#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""Install into the environment of this Python: by uv if it can, else by pip.

tox calls it with what it would give to pip. uv takes half of the time,
but reads no pip.conf: where an index is set there alone, pip does the work.
"""

import importlib.util
import subprocess
import sys

_PIP = [sys.executable, '-I', '-m', 'pip', 'install']


def main(arguments: list[str]) -> int:
    """Install, and return the exit status.

    :param arguments: options and requirements, as ``pip install`` takes them
    """
    if importlib.util.find_spec('uv') is None:
        subprocess.run([*_PIP, '--quiet', 'uv>=0.5'])
    by_uv = [sys.executable, '-I', '-m', 'uv', 'pip', 'install']
    tried = subprocess.run([*by_uv, '--python', sys.executable, *arguments])
    if tried.returncode == 0:
        return 0
    # It would compile ten thousand modules, of which few are imported.
    return subprocess.run([*_PIP, '--no-compile', *arguments]).returncode


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
