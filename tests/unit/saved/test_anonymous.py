# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_ext_sched.saved import anonymous


class ChangeTextsTestCase(testtools.TestCase):
    def test_columns_and_keys_of_nova_are_kept(self):
        kept = []
        records = [
            {'format': 1, 'cells': [{'name': 'a', 'id': 1}], 'options': {}},
            {
                'table': 'instances',
                'cell': 'a',
                'columns': ['host', 'vm_state'],
            },
            ['a', 'active'],
            [{'vendor_id': '10de', 'b': [1, None, 'c']}, None],
            {'classes': ['CUSTOM_GOLD']},
            {'end': {'lines': 5, 'notes': [['a b', 'c']]}},
        ]
        made = anonymous.change_texts(
            records,
            lambda text: f'<{text}>',
            lambda text: kept.append(text) or text,
        )
        self.assertEqual(
            [
                {
                    'format': 1,
                    'cells': [{'<name>': '<a>', '<id>': 1}],
                    'options': {},
                },
                records[1] | {'cell': '<a>'},
                ['<a>', 'active'],
                [{'<vendor_id>': '10de', '<b>': [1, None, '<c>']}, None],
                records[4],
                {'end': {'lines': 5, 'notes': [['a b', '<c>']]}},
            ],
            [*made],
        )
        self.assertEqual(['active', '10de', 'CUSTOM_GOLD'], kept)
