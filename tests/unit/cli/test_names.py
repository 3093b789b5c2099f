# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_ext_sched.cli import names

UUIDS = [f'af497212-8ba1-4069-a420-{number:012}' for number in range(4)]
PROJECTS = [f'{number:032x}' for number in range(2)]


class NamesTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.names = names.Names(
            {PROJECTS[0]: 'web'},
            {UUIDS[0]: 'web', UUIDS[1]: 'db', UUIDS[2]: 'db'},
        )

    def test_each(self):
        """A project and a group of one name are told apart by the words."""
        said = {
            **{PROJECTS[0]: 'web', UUIDS[0]: 'web'},
            # Several have the name.
            UUIDS[2]: f'db ({UUIDS[2]})',
            **{one: one for one in (UUIDS[3], PROJECTS[1], '', 'name')},
        }
        for one, expected in said.items():
            self.assertEqual(expected, self.names.say(one))

    def test_what_may_have_a_name(self):
        texts = f'{UUIDS[0]} and {PROJECTS[1]}', '0', f'0{UUIDS[1]}'
        self.assertEqual({UUIDS[0], PROJECTS[1]}, names.find_ids(texts))

    def test_a_text(self):
        self.assertEqual(
            f'group web, project web, group {UUIDS[3]}, 0{UUIDS[0]}',
            self.names.put_into(
                f'group {UUIDS[0]}, project {PROJECTS[0]}, group {UUIDS[3]}, '
                f'0{UUIDS[0]}'
            ),
        )
