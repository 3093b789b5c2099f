# SPDX-License-Identifier: Apache-2.0

import ddt
from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_ext_sched.policy import slips


@ddt.ddt
class SlipsTestCase(testtools.TestCase):
    """The table of resembles, and what is near it."""

    @ddt.data(
        ('trait :X', True),
        ('traits:X', True),
        ('tait:X', True),
        ('trait1:X', True),
        ('trait=X', True),
        ('scope:trait:X', True),
        ('trait', True),
        ('trait:X', False),
        ('Trait:X', False),
        (' trait:X', False),
        ('zone:trait', False),
        ('portrait:X', False),
        ('tra:X', False),
        ('', False),
        (':', False),
    )
    @ddt.unpack
    def test_prefix_with_a_colon(self, key, expected):
        self.assertIs(expected, slips.resembles(key, 'trait:'))

    @ddt.data(
        ('filter_tenent_id', True),
        ('Filter_tenantid7', True),
        ('filter_tenent_id1234567890', True),
        ('filter_tenant_id', False),
        ('FILTER_TENANT_ID7', False),
        ('tenant', False),
    )
    @ddt.unpack
    def test_prefix_without(self, key, expected):
        self.assertIs(expected, slips.resembles(key, 'filter_tenant_id'))

    @given(st.text(), st.text())
    def test_no_text_raises(self, key, prefix):
        found = slips.resembles(key, prefix)
        self.assertFalse(found and slips.nearly_begins(key, [prefix]))
