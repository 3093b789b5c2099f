# SPDX-License-Identifier: Apache-2.0

"""Tests of single modules, without a cloud."""

from tests import forks


def load_tests(loader, tests, pattern):
    return forks.gather(loader, __path__[0], pattern)
