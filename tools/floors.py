# SPDX-License-Identifier: Apache-2.0

"""Print each direct requirement at its floor, for constraints/nova29.txt.

The floor of a requirement of several extras is the lowest of theirs.
"""

import configparser
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]
_FLOOR = re.compile(r'([\w.-]+)>=([\d.]+)')


def read():
    """Return the lowest version of each direct requirement, by its name."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / 'setup.cfg')
    lines = (ROOT / 'requirements.txt').read_text().splitlines()
    for extra in parser['extras'].values():
        lines += extra.splitlines()
    floors = {}
    for name, version in (
        match.groups() for match in map(_FLOOR.match, lines) if match
    ):
        floors[name] = min(
            floors.get(name, version),
            version,
            key=lambda text: [int(part) for part in text.split('.')],
        )
    return floors


if __name__ == '__main__':
    for name, version in sorted(read().items()):
        print(f'{name}=={version}')
