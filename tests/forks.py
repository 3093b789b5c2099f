# SPDX-License-Identifier: Apache-2.0

"""Tests in forks of a process that has imported nova.

To import nova takes longer than most tests do, and each worker of stestr
imports it again, as does the process that lists the tests. Where the
environment variable NOVA_EXT_SCHED_TEST_WORKERS has a number, one worker of
stestr imports what it runs, and so many forks share the classes of tests; 0
stands for a fork for each CPU. Without it, tests run as anywhere.

Classes whose attribute ``together`` has one value run in one fork, one after
another, because they share what takes long to start.
"""

import fcntl
import os
import sys
import tempfile
import unittest

import subunit

# So many bytes name a class; the names of all fit into a pipe.
_NAME = 2


class Forks(unittest.TestSuite):
    """Tests of which each fork takes the next class, until none is left."""

    def run(self, result, debug=False):
        workers = int(os.environ.get('NOVA_EXT_SCHED_TEST_WORKERS', '1'))
        classes = _by_class(self)
        workers = min(workers or os.cpu_count(), len(classes))
        if workers < 2:
            return super().run(result, debug)
        read, write = os.pipe()
        for number in range(len(classes)):
            os.write(write, number.to_bytes(_NAME, 'big'))
        os.close(write)
        with tempfile.TemporaryFile() as lock:
            forks = []
            for _ in range(workers):
                fork = os.fork()
                if not fork:
                    _write_one_by_one(lock)
                    _forget_hub()
                    _run(classes, read, result)
                    # As a worker of stestr does: what it keeps is cleaned up.
                    sys.exit()
                forks.append(fork)
            os.close(read)
            ended = [os.waitpid(fork, 0)[1] for fork in forks]
        if any(ended):
            raise RuntimeError(f'not all forks ran their tests: {ended}')
        return result


def gather(loader, folder, pattern):
    """Return the tests below a folder, for a package's ``load_tests``."""
    return Forks(loader.discover(folder, pattern or 'test*.py'))


def _by_class(suite):
    """Return the tests of each class, or of several; most tests first."""
    classes = {}
    left = [suite]
    while left:
        one = left.pop()
        if isinstance(one, unittest.TestSuite):
            left.extend(reversed([*one]))
        else:
            key = getattr(one, 'together', type(one))
            classes.setdefault(key, []).append(one)
    return sorted(classes.values(), key=len, reverse=True)


def _run(classes, read, result):
    """Run the classes that no other fork has taken."""
    while name := os.read(read, _NAME):
        unittest.TestSuite(classes[int.from_bytes(name, 'big')]).run(result)


def _write_one_by_one(lock):
    """Let no fork write a result into that of another one."""
    status = subunit.StreamResultToBytes.status

    def write(*args, **kwargs):
        # A lock of the process: it has no owner that could end with it.
        fcntl.lockf(lock, fcntl.LOCK_EX)
        try:
            status(*args, **kwargs)
        finally:
            fcntl.lockf(lock, fcntl.LOCK_UN)

    subunit.StreamResultToBytes.status = write


def _forget_hub():
    """Let eventlet wait by a file of this fork alone."""
    if hubs := sys.modules.get('eventlet.hubs'):
        hubs.use_hub()
