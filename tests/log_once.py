# SPDX-License-Identifier: Apache-2.0

"""Each message is logged once a process; a test stands for a process."""

import fixtures


class Forgotten(fixtures.Fixture):
    """Let modules log again what they logged before."""

    def __init__(self, *modules):
        self._modules = modules

    def _setUp(self):
        for module in self._modules:
            self.useFixture(
                fixtures.MockPatchObject(module.LOG_ONCE, '_seen', {})
            )
