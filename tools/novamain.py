# SPDX-License-Identifier: Apache-2.0

"""Check each private part of nova that we use: tox -e novamain [FOLDER].

In the newest nova of the package index, a release to come among them, or in
the source tree that is named. doc/source/contributor/private-parts.csv says
for each part that is missing what fails without it.
"""

import importlib.metadata
import os
import subprocess
import sys


def main(arguments):
    """Install nova, run the test, and return its exit status."""
    # A tree without git tags has no version.
    environment = {**os.environ, 'PBR_VERSION': '99.0.0'}
    wanted = arguments or ['--pre', 'nova']
    pip = [sys.executable, '-m', 'pip', 'install', '--quiet', '--upgrade']
    subprocess.run(
        [*pip, *wanted], env=environment if arguments else None, check=True
    )
    print('nova', importlib.metadata.version('nova'), flush=True)
    tests = 'tests.unit.test_private_parts'
    return subprocess.run(
        [sys.executable, '-W', 'ignore', '-m', 'unittest', tests]
    ).returncode


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
