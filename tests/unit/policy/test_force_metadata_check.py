# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.policy import force_metadata_check

FLAG = 'force_metadata_check'


@ddt.ddt
class ForceMetadataCheckTestCase(testtools.TestCase):
    @ddt.data(
        ('True', True), ('true', True), (' YES ', True), ('1', True),
        ('on', True), ('t', True), ('y', True), ('False', False),
        ('0', False), ('no', False), ('OFF', False), ('ture', None),
        ('', None), ('2', None), ('True,False', None), ('*', None),
    )  # fmt: skip
    @ddt.unpack
    def test_flag(self, text, expected):
        metadata = {FLAG: text, 'key': '1'}
        self.assertIs(expected, force_metadata_check.read(metadata))
        faults = force_metadata_check.faults('fast', metadata)
        if expected is None:
            (fault,) = faults
            self.assertIn(f"aggregate fast: metadata '{FLAG}'", fault)
            self.assertIn(f'got {text!r}', fault)
        else:
            self.assertEqual([], faults)

    @ddt.data(
        ('Force_metadata_check', True),
        (f' {FLAG}', True),
        (f'{FLAG}s', True),
        ('force-metadata-check', True),
        (FLAG, False),
        ('force', False),
    )
    @ddt.unpack
    def test_a_key_that_was_to_be_the_flag(self, key, is_slip):
        found = force_metadata_check.find_slips('fast', {key: 'true'})
        expected = (
            f"aggregate fast: metadata '{key}': expected the key '{FLAG}'; "
            f'the item has no effect'
        )
        self.assertEqual([expected] if is_slip else [], found)

    def test_no_flag(self):
        self.assertIs(False, force_metadata_check.read({'key': '1'}))
        self.assertEqual([], force_metadata_check.faults('fast', {}))
