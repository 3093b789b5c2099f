# SPDX-License-Identifier: Apache-2.0

import ddt
from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_ext_sched.policy import slips


@ddt.ddt
class SlipsTestCase(testtools.TestCase):
    """The table of resembles, and what is near it."""

    # A key, the prefix, and whether it was meant to begin with it.
    @ddt.data(
        *((key, 'trait:', True) for key in (
            'trait :X', 'traits:X', 'tait:X', 'trait1:X', 'trait=X',
            'scope:trait:X', 'trait')),
        *((key, 'trait:', False) for key in (
            'trait:X', 'Trait:X', ' trait:X', 'zone:trait', 'portrait:X',
            'tra:X', '', ':')),
        *((key, 'filter_tenant_id', True) for key in (
            'filter_tenent_id', 'Filter_tenantid7',
            'filter_tenent_id1234567890')),
        *((key, 'filter_tenant_id', False) for key in (
            'filter_tenant_id', 'FILTER_TENANT_ID7', 'tenant')),
    )  # fmt: skip
    @ddt.unpack
    def test_resembles(self, key, prefix, expected):
        self.assertIs(expected, slips.resembles(key, prefix))

    @given(st.text(), st.text())
    def test_no_text_raises(self, key, prefix):
        found = slips.resembles(key, prefix)
        self.assertFalse(found and slips.nearly_begins(key, [prefix]))
