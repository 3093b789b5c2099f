# SPDX-License-Identifier: Apache-2.0

"""The table of clouds and promises says what the tests ask."""

import testtools

from tests import documentation

PROMISES = ('explain', 'isolation', 'moves', 'survive', 'capacity')


class PromisesTestCase(testtools.TestCase):
    def test_each_row_names_each_promise(self):
        clouds = list(documentation.tables.read_promises())
        self.assertGreaterEqual(len(clouds), 35)
        for said, asked, texts in clouds:
            self.assertEqual(
                {*PROMISES}, asked | {*texts['meaningless']}, said
            )
            self.assertEqual(set(), asked & {*texts['meaningless']}, said)
            self.assertLessEqual({*texts['broken']}, asked, said)

    def test_each_reason_is_in_the_table(self):
        """The page makes the table as it is built."""
        rows = dict(documentation.tables.describe_promises())
        for said, _, texts in documentation.tables.read_promises():
            for reasons in texts.values():
                for name, why in reasons.items():
                    self.assertIn(name, rows[said])
                    self.assertIn(why, rows[said])
