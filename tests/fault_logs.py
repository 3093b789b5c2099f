# SPDX-License-Identifier: Apache-2.0

"""Faults are logged once a process; a test is a process of its own."""

import collections

import fixtures


class Forgotten(fixtures.Fixture):
    """Let modules log again the faults that they logged before."""

    def __init__(self, *modules):
        self._modules = modules

    def _setUp(self):
        for module in self._modules:
            self.useFixture(
                fixtures.MockPatchObject(
                    module._faults, '_seen', collections.OrderedDict()
                )
            )
