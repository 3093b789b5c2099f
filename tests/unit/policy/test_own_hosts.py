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


def reads(key):
    return key == 'filter_tenant_id3'


def reads_none(key):
    return False


@ddt.ddt
class OwnHostsTestCase(testtools.TestCase):
    @ddt.data(
        (ISOLATED, (True, reads_none, NONE), True),
        ({'trait:CUSTOM_A': 'Required'}, (True, reads_none, NONE), True),
        (ISOLATED, (False, reads, RULES), False),
        ({'trait:CUSTOM_A': 'forbidden'}, (True, reads, RULES), False),
        (RESERVED, (False, reads_none, RULES), True),
        (RESERVED, (True, reads, NONE), False),
        # Others may use it, too.
        ({'open:a': ''}, (True, reads, RULES), False),
        (TENANT, (False, reads, NONE), True),
        (TENANT, (True, reads_none, RULES), False),
        ({'filter_tenant_id4': 'p'}, (True, reads, RULES), False),
        ({}, (True, reads, RULES), False),
    )
    @ddt.unpack
    def test_table(self, metadata, closing, own):
        found = own_hosts.Closing(*closing)
        self.assertIs(own, found.closes(metadata))
