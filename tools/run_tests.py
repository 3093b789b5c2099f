# SPDX-License-Identifier: Apache-2.0

"""Run tests with stestr: a dot for each that passes, all of one that fails.

Standard error goes to a file, whose end is shown where a test failed: the
warnings of libraries, and what a worker says that dies.

There are two workers for each core, because half of a functional test is
waiting, for one part of nova to see what another did. The unit tests alone get
one for each: none waits, and every worker imports nova.

    python tools/run_tests.py [arguments of stestr run]
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import subunit
import testtools
import times

STESTR = ('stestr', f'--repo-url={times.PLACE}')
LOG = pathlib.Path(times.PLACE, '.stestr.log')
# Lines of it that are shown.
SHOWN = 100

CORES = os.cpu_count() or 1

# With these, stestr does not share all tests out among workers.
NOT_SHARED = {'--serial', '--no-discover', '--failing', '--pdb'}


def discover(arguments, log):
    """Return the IDs of the tests, or None if a module cannot be imported."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument('-t', '--test-path', default='./tests')
    path = parser.parse_known_args(arguments)[0].test_path
    listed = subprocess.run(
        [*STESTR, '--test-path', path, 'list'],
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )
    if listed.returncode:
        print(listed.stdout)
        return None
    return listed.stdout.splitlines()


def result(last):
    """Return how many tests of a run passed, failed and were skipped."""
    summary = testtools.StreamSummary()
    summary.startTestRun()
    subunit.ByteStreamToStreamResult(last.get_subunit_stream()).run(summary)
    summary.stopTestRun()
    failed = len(summary.errors) + len(summary.failures)
    skipped = len(summary.skipped)
    passed = summary.testsRun - failed - skipped
    return f'{passed} passed, {failed} failed, {skipped} skipped'


def run(stored, arguments, log):
    """Run stestr; return its exit code."""
    workers = CORES if 'tests/unit' in arguments else 2 * CORES
    # Tests of wrong UUIDs would else fill the log.
    os.environ.setdefault(
        'PYTHONWARNINGS', 'ignore::FutureWarning:oslo_versionedobjects.fields'
    )
    return subprocess.run(
        [
            *STESTR,
            'run',
            '--abbreviate',
            '--suppress-attachments',
            f'--concurrency={workers}',
            *arguments,
        ],
        stderr=log,
    ).returncode


def run_shared(stored, arguments, log):
    """Run stestr, whose workers end together; return its exit code."""
    test_ids = discover(arguments, log)
    if test_ids is None:
        return 1
    times.teach(stored, test_ids)
    with tempfile.NamedTemporaryFile('w') as file:
        file.write('\n'.join(test_ids))
        file.flush()
        return run(stored, ['--load-list', file.name, *arguments], log)


def main():
    arguments = sys.argv[1:]
    stored = times.repository()
    runs = stored.count()
    with open(LOG, 'w') as log:
        shared = NOT_SHARED.isdisjoint(arguments)
        code = (run_shared if shared else run)(stored, arguments, log)
    if code:
        lines = LOG.read_text(errors='replace').splitlines()
        print(f'\nThe last lines of {LOG}:', *lines[-SHOWN:], sep='\n')
    if stored.count() > runs:
        print(result(stored.get_latest_run()))
    return code


if __name__ == '__main__':
    sys.exit(main())
