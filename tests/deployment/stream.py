# SPDX-License-Identifier: Apache-2.0

"""A stream of boots in a process of its own."""

import contextlib
import json
import subprocess
import sys

from tests.deployment import base


@contextlib.contextmanager
def stream(cloud, flavors, pause=0.1):
    """Create servers for the length of a ``with`` statement.

    :param flavors: IDs, one for each server, again and again
    :param pause: seconds between two servers
    """
    with open(cloud.folder / 'stream.out', 'ab') as output:
        process = subprocess.Popen(
            [sys.executable, '-W', 'ignore', base.CLIENT, cloud.nova.conf],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=cloud.processes.environment(),
        )
    process.stdin.write(json.dumps([['stream', flavors, pause]]).encode())
    process.stdin.close()
    try:
        yield
    finally:
        cloud.processes.stop(process)
