# SPDX-License-Identifier: Apache-2.0
import ddt
import hypothesis
from hypothesis import strategies as st
from oslo_utils import strutils
import testtools

from nova_ext_sched.policy import force_metadata_check

FLAG = 'force_metadata_check'


@ddt.ddt
class ForceMetadataCheckTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.force = force_metadata_check.ForceMetadataCheck(
            ['availability_zone'], ['', 'reservation:']
        )

    @ddt.data(
        ('True', True), ('true', True), (' YES ', True), ('1', True),
        ('on', True), ('t', True), ('y', True), ('False', False),
        ('0', False), ('no', False), ('OFF', False), ('ture', None),
        ('', None), ('2', None), ('True,False', None), ('*', None),
    )  # fmt: skip
    @ddt.unpack
    def test_flag(self, text, expected):
        metadata = {FLAG: text, 'key': '1'}
        self.assertIs(expected, self.force.flag(metadata))
        self.assertIs(expected is True, self.force.forces(metadata, 'key'))
        faults = self.force.faults('fast', metadata)
        if expected is None:
            (fault,) = faults
            self.assertIn(f"aggregate fast: metadata '{FLAG}'", fault)
            self.assertIn(f'got {text!r}', fault)
        else:
            self.assertEqual([], faults)

    def test_no_flag(self):
        self.assertIs(False, self.force.flag({'key': '1'}))
        self.assertFalse(self.force.forces({'key': '1'}, 'key'))
        self.assertEqual([], self.force.faults('fast', {'key': '1'}))

    @ddt.data(
        ('key', True),
        ('scope:key', True),
        ('reservation', True),
        ('availability_zones', True),
        ('', True),
        (FLAG, False),
        ('availability_zone', False),
        ('group_policy', False),
        ('reservation:1', False),
    )
    @ddt.unpack
    def test_which_keys(self, key, expected):
        self.assertIs(expected, self.force.may_force(key))
        self.assertIs(
            expected, self.force.forces({FLAG: 'true', key: '1'}, key)
        )

    @ddt.data(
        ('group_policy', True),
        ('reservation:1', True),
        ('availability_zone', False),
        (FLAG, False),
        ('key', False),
    )
    @ddt.unpack
    def test_which_keys_are_never_compared(self, key, expected):
        self.assertIs(expected, self.force.is_foreign(key))

    @hypothesis.given(st.text())
    def test_no_string_raises(self, text):
        expected = strutils.bool_from_string(text, default=None)
        self.assertIs(expected, self.force.flag({FLAG: text}))
