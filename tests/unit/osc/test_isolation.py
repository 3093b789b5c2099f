# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_ext_sched.osc import isolation
from nova_ext_sched.osc import isolation_faults

HOSTS = [f'host{number:02}' for number in range(12)]
TEN = ', '.join(HOSTS[:10])


class ColumnsTestCase(testtools.TestCase):
    def test_people_see_ten_names_and_programs_all(self):
        column = isolation.NamesColumn(HOSTS)
        self.assertEqual(f'{TEN} and 2 more', column.human_readable())
        self.assertEqual(HOSTS, column.machine_readable())
        self.assertEqual(
            TEN, isolation.NamesColumn(HOSTS[:10]).human_readable()
        )

    def test_faults(self):
        column = isolation.FaultsColumn(
            [
                isolation_faults.Fault('one', 'a problem'),
                isolation_faults.Fault('two', 'another', tuple(HOSTS)),
            ]
        )
        self.assertEqual(
            f'a problem\nanother: {TEN} and 2 more', column.human_readable()
        )
        self.assertEqual(
            [
                {'kind': 'one', 'problem': 'a problem', 'hosts': []},
                {'kind': 'two', 'problem': 'another', 'hosts': HOSTS},
            ],
            column.machine_readable(),
        )
