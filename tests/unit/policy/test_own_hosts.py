# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.policy import own_hosts
from nova_ext_sched.policy import reservation

ISOLATED = {'trait:CUSTOM_A': 'required'}
RESERVED = {'reservation:a': ''}
TENANT = {'filter_tenant_id3': 'p'}
RULES = reservation.Rules(
    required_prefixes=('reservation:', 'open:'),
    forbidden_prefixes=('reservation:',),
)
NONE = reservation.Rules()


@ddt.ddt
class OwnHostsTestCase(testtools.TestCase):
    @ddt.data(
        (ISOLATED, (True, False, NONE), True),
        ({'trait:CUSTOM_A': 'Required'}, (True, False, NONE), True),
        (ISOLATED, (False, True, RULES), False),
        ({'trait:CUSTOM_A': 'forbidden'}, (True, True, RULES), False),
        (RESERVED, (False, False, RULES), True),
        (RESERVED, (True, True, NONE), False),
        # Others may use it, too.
        ({'open:a': ''}, (True, True, RULES), False),
        (TENANT, (False, True, NONE), True),
        (TENANT, (True, False, RULES), False),
        ({}, (True, True, RULES), False),
    )
    @ddt.unpack
    def test_table(self, metadata, closing, own):
        found = own_hosts.Closing(*closing)
        self.assertIs(own, found.closes(metadata))
