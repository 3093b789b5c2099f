# SPDX-License-Identifier: Apache-2.0

"""Tests with nova and placement in one process."""

import contextlib

# Before all else, as nova's own tests do: what is imported before eventlet's
# patches keeps native thread-locals, and then green threads share one
# transaction of oslo.db. keystone's environment has no nova.
with contextlib.suppress(ImportError):
    import nova.tests.functional  # noqa: F401

from tests import forks  # noqa: E402


def load_tests(loader, tests, pattern):
    return forks.gather(loader, __path__[0], pattern)
