# SPDX-License-Identifier: Apache-2.0

"""Run the tests on one release of nova and one Python; record the result.

    python tools/compatibility.py nova31 3.12
    python tools/compatibility.py nova31-day 3.11
    python tools/compatibility.py nova31-deployment 3.11

``nova31`` runs the unit and functional tests, nova's own and the scenarios
with the newest libraries that nova works with; ``nova31-day`` the unit tests
and nova's own tests with the libraries of nova's release day
(constraints/nova31.txt); ``nova31-deployment`` the tests on services in
processes of their own. The result is a line of
doc/source/install/compatibility.csv, which the documentation shows. The lines
of the whole cloud (tests/cloud), which takes hours, are written by hand.
"""

import argparse
import csv
import datetime
import pathlib
import re
import subprocess
import sys

# What an environment runs, by the second part of its name.
TESTS = {
    '': 'unit and functional',
    'day': "unit and nova's own",
    'deployment': 'deployment',
}

ROOT = pathlib.Path(__file__).parents[1]
TABLE = ROOT / 'doc' / 'source' / 'install' / 'compatibility.csv'
COLUMNS = [
    'nova',
    'Libraries',
    'Python',
    'Tests',
    'Passed',
    'Failed',
    'Skipped',
    'Run on',
    'Commit',
]
# Of stestr.
TOTALS = re.compile(r'^ - (Passed|Failed|Skipped): (\d+)$', re.M)


def run(environment, python):
    """Run the tests in tox; return passed, failed, skipped."""
    name = f'py{python.replace(".", "")}-{environment}'
    # tests print as they go; the totals are on the last lines.
    with subprocess.Popen(
        [sys.executable, '-m', 'tox', 'run', '-e', name],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        output = []
        for line in process.stdout:
            print(line, end='', flush=True)
            output.append(line)
    totals = dict(TOTALS.findall(''.join(output)))
    if not totals:
        sys.exit(f'tox -e {name} ended with {process.returncode}')
    return [totals[name] for name in ('Passed', 'Failed', 'Skipped')]


def commit():
    """Return the commit that the source tree has."""
    return subprocess.run(
        ['git', 'rev-parse', '--short', 'HEAD'],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def record(row):
    """Write a row in place of the one of the same nova, Python and tests."""
    rows = []
    if TABLE.exists():
        with open(TABLE, newline='') as stream:
            rows = list(csv.reader(stream))[1:]
    rows = sorted([old for old in rows if old[:4] != row[:4]] + [row])
    with open(TABLE, 'w', newline='') as stream:
        csv.writer(stream, lineterminator='\n').writerows([COLUMNS, *rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument(
        'environment', help='nova31, nova31-day or nova31-deployment, 29 to 34'
    )
    parser.add_argument('python', help='3.11, 3.12 or 3.13')
    args = parser.parse_args()
    release, _, kind = args.environment.partition('-')
    totals = run(args.environment, args.python)
    record(
        [
            release.removeprefix('nova'),
            'of its release day' if kind == 'day' else 'newest',
            args.python,
            TESTS[kind],
            *totals,
            datetime.date.today().isoformat(),
            commit(),
        ]
    )
    return int(totals[1] != '0')


if __name__ == '__main__':
    sys.exit(main())
