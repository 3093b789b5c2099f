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

    def test_one_that_has_the_name_alone(self):
        """A project and a group of one name are told apart by the words."""
        self.assertEqual('web', self.names.say(PROJECTS[0]))
        self.assertEqual('web', self.names.say(UUIDS[0]))

    def test_several_of_one_name(self):
        self.assertEqual(f'db ({UUIDS[2]})', self.names.say(UUIDS[2]))

    def test_without_a_name(self):
        for one in (UUIDS[3], PROJECTS[1], '', 'name'):
            self.assertEqual(one, self.names.say(one))

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
