# SPDX-License-Identifier: Apache-2.0

"""Prometheus' own tool for metrics and rules, of Debian's prometheus."""

import shutil
import subprocess


def run(test, *arguments, status=0, **options):
    """Return what promtool prints; it skips or fails the test otherwise.

    :param arguments: of promtool
    :param status: the exit status that is expected
    :param options: of subprocess.run
    """
    if shutil.which('promtool') is None:
        test.skipTest('promtool is not installed (apt install prometheus)')
    done = subprocess.run(
        ['promtool', *map(str, arguments)], capture_output=True, **options
    )
    text = (done.stdout + done.stderr).decode()
    test.assertEqual(status, done.returncode, text)
    return text
