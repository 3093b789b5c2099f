# SPDX-License-Identifier: Apache-2.0

"""Print constraints that hold each direct requirement at its floor."""

import configparser
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]


def main():
    parser = configparser.ConfigParser()
    parser.read(ROOT / 'setup.cfg')
    lines = (ROOT / 'requirements.txt').read_text().splitlines()
    for extra in parser['extras'].values():
        lines += extra.splitlines()
    floors = {
        match.group(1): match.group(2)
        for match in map(re.compile(r'([\w.-]+)>=([\w.]+)').match, lines)
        if match
    }
    for name, version in sorted(floors.items()):
        print(f'{name}=={version}')


if __name__ == '__main__':
    main()
