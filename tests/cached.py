# SPDX-License-Identifier: Apache-2.0

"""What a function that is cached has read, for a test to forget."""

import fixtures


class Forgotten(fixtures.Fixture):
    """Let a function read anew, and forget what it read in the test."""

    def __init__(self, function):
        self._cache = function.cache

    def _setUp(self):
        self._cache.clear()
        self.addCleanup(self._cache.clear)
