# SPDX-License-Identifier: Apache-2.0

"""The tests of nova-ext-sched.

Property tests run a bounded number of cases each, so that a contributor can
wait for them; the environment variable NOVA_EXT_SCHED_TEST_EXAMPLES sets
another number.
"""

import os

import hypothesis

hypothesis.settings.register_profile(
    'nova_ext_sched',
    max_examples=int(os.environ.get('NOVA_EXT_SCHED_TEST_EXAMPLES', '100')),
    # A loaded machine is no fault of the code.
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile('nova_ext_sched')
