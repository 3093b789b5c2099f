# SPDX-License-Identifier: Apache-2.0

import ddt
import testtools

from nova_ext_sched.policy import preferred_aggregates

KEY = 'preference'
SMALL, LARGE = ('small', '1'), ('large', '2')


@ddt.ddt
class PreferenceTestCase(testtools.TestCase):
    """Metadata; the numbers for two flavors of a project, and of another."""

    def count(self, metadata):
        found = preferred_aggregates.read(metadata, KEY)
        return tuple(
            found.counts_for(flavor, project)
            for flavor, project in (
                (SMALL, 'p'),
                (LARGE, 'p'),
                (SMALL, 'q'),
                ((None, None), None),
            )
        )

    @ddt.data(
        ({KEY: '5'}, (5, 5, 5, 5)),
        ({KEY: ' -0.5 '}, (-0.5, -0.5, -0.5, -0.5)),
        ({KEY: '5', f'{KEY}_flavors': 'x, small'}, (5, 0, 5, 0)),
        ({KEY: '5', f'{KEY}_flavors': '2'}, (0, 5, 0, 0)),
        ({KEY: '5', f'{KEY}_projects': 'p,x'}, (5, 5, 0, 0)),
        ({KEY: '5', f'{KEY}_projects': 'p', f'{KEY}_flavors': 'small'},
         (5, 0, 0, 0)),
        ({}, (0, 0, 0, 0)),
        ({'preferences': '5'}, (0, 0, 0, 0)),
    )  # fmt: skip
    @ddt.unpack
    def test_table(self, metadata, expected):
        self.assertEqual(expected, self.count(metadata))
        faults = preferred_aggregates.find_faults(metadata, KEY)
        self.assertEqual([], list(faults))

    @ddt.data(
        ({KEY: 'high'}, "preference: expected a number from -1000000 to "
         "1000000, got 'high'"),
        ({KEY: None}, 'preference: expected a number'),
        ({KEY: ''}, 'preference: expected a number'),
        ({KEY: 'nan'}, 'preference: expected a number'),
        ({KEY: '-inf'}, 'preference: expected a number'),
        ({KEY: '1000001'}, 'preference: expected a number'),
        ({f'{KEY}_flavors': 'small'}, 'preference_flavors: expected '
         'preference with a number beside it, got none'),
        ({KEY: '5', f'{KEY}_flavors': ' , '}, 'preference_flavors: expected '
         "names with commas between them, got ' , '"),
        ({KEY: '5', f'{KEY}_projects': None},
         'preference_projects: expected names'),
    )  # fmt: skip
    @ddt.unpack
    def test_what_cannot_be_read_counts_for_nobody(self, metadata, said):
        self.assertEqual((0, 0, 0, 0), self.count(metadata))
        [fault] = preferred_aggregates.find_faults(metadata, KEY)
        self.assertTrue(fault.startswith(said), fault)

    def test_the_largest(self):
        self.assertEqual((1e6,) * 4, self.count({KEY: '1000000'}))
