# SPDX-License-Identifier: Apache-2.0

"""The tests of nova-ext-sched.

Property tests run a bounded number of cases each, so that a contributor can
wait for them; the environment variable NOVA_EXT_SCHED_TEST_EXAMPLES sets
another number.

A test that fails shows what it logged. Nothing else shows a log. Each test
stands for a process of its own: it logs again what another one has logged,
warns again of what another one has warned of, and no line of its log says a
cause twice.
"""

import gc
import io
import logging
import os
import re

import fixtures
import hypothesis
from oslo_config import cfg
from oslo_log import log
import testtools
from testtools import content

from tests import log_lines

# Modules are no garbage, and hundreds of thousands of objects: to look through
# them again and again takes a fifth of the time of their import.
gc.set_threshold(100_000, 20, 100)
# The names of extra specs alone are 526 patterns, and Python remembers 512:
# each functional test compiled them again, for 40 ms and more.
re._MAXCACHE = re._MAXCACHE2 = 5000

hypothesis.settings.register_profile(
    'nova_ext_sched',
    max_examples=int(os.environ.get('NOVA_EXT_SCHED_TEST_EXAMPLES', '60')),
    # A loaded machine is no fault of the code.
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile('nova_ext_sched')

# Importing nova.test sets up logging. Without a file, that logs to standard
# output, among the results of the tests.
logging.root.addHandler(logging.NullHandler())
log.register_options(cfg.CONF)
cfg.CONF.set_default('log_file', os.devnull)


class RunTest(testtools.RunTest):
    """Run a test; if it fails, add what it logged to its result."""

    def run(self, result=None):
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.setFormatter(
            logging.Formatter('%(levelname)s %(name)s: %(message)s')
        )

        def add_log(_):
            if text := stream.getvalue():
                self.case.addDetail('log', content.text_content(text))

        self.case.addOnException(add_log)
        log_lines.forget()
        _forget_options()
        causes = log_lines.CAUSES
        causes.begin()
        self.case.addCleanup(causes.check)
        # Where commands keep what they warned of today, and names.
        cache = self.case.useFixture(fixtures.TempDir()).path
        self.case.useFixture(
            fixtures.EnvironmentVariable('XDG_CACHE_HOME', cache)
        )
        logging.root.addHandler(handler)
        try:
            return super().run(result)
        finally:
            logging.root.removeHandler(handler)
            causes.end()


def _forget_options():
    # oslo.config still says that an option was set after it was cleared.
    for name in ('nova_ext_sched', 'blazar:physical:host'):
        group = cfg.CONF._groups.get(name)
        for option in group._opts.values() if group else ():
            option.pop('location', None)


testtools.TestCase.run_tests_with = RunTest
