# SPDX-License-Identifier: Apache-2.0

"""Run tests with stestr: a dot for each that passes, all of one that fails.

Standard error goes to a file, whose end is shown where a test failed: nova's
services log there after their test has ended, thousands of lines a run, beside
the warnings of libraries.

There are two workers for each core: half of a functional test is waiting, for
one part of nova to see what another did.

    python tools/run_tests.py [arguments of stestr run]
"""

import io
import os
import pathlib
import subprocess
import sys

import subunit
import testtools

LOG = pathlib.Path('.stestr.log')
# Lines of it that are shown.
SHOWN = 100

WORKERS = 2 * (os.cpu_count() or 1)


def last_run():
    """Return the summary of the tests that ran last."""
    last = subprocess.run(
        ['stestr', 'last', '--subunit'], stdout=subprocess.PIPE
    )
    summary = testtools.StreamSummary()
    summary.startTestRun()
    subunit.ByteStreamToStreamResult(io.BytesIO(last.stdout)).run(summary)
    summary.stopTestRun()
    return summary


def main():
    with open(LOG, 'w') as log:
        code = subprocess.run(
            [
                'stestr',
                'run',
                '--abbreviate',
                '--suppress-attachments',
                f'--concurrency={WORKERS}',
                *sys.argv[1:],
            ],
            stderr=log,
        ).returncode
    summary = last_run()
    failed = len(summary.errors) + len(summary.failures)
    if code:
        lines = LOG.read_text(errors='replace').splitlines()
        print(f'\nThe last lines of {LOG}:', *lines[-SHOWN:], sep='\n')
    skipped = len(summary.skipped)
    passed = summary.testsRun - failed - skipped
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    return code


if __name__ == '__main__':
    sys.exit(main())
