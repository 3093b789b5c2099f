# SPDX-License-Identifier: Apache-2.0

import pathlib
import types
from unittest import mock

import testtools

from nova_ext_sched import exception
from nova_ext_sched.cmd import copied

PATH = pathlib.Path('copy.json.gz')


class FewestTestCase(testtools.TestCase):
    def find(self, enough, *added, words=('survive',)):
        """Find the fewest hosts, of which so many are enough."""
        self.asked = []

        def run(command):
            self.asked.append(command)
            [number] = [
                int(one.partition(':')[2].partition('@')[0])
                for one in command
                if ':' in one
            ]
            return types.SimpleNamespace(returncode=3 * (number < enough))

        typed = [*words, *(f'--add-host={one}' for one in added)]
        with mock.patch.object(copied, '_run', run):
            return copied.find_fewest(added, typed, PATH)

    def test_each_number(self):
        for enough in (1, 2, 3, 7, 8, 100, 512):
            found, said = self.find(enough, 'a:min@rack1')
            self.assertEqual([f'a:{enough}@rack1'], found)
            self.assertIn('the fewest that', said)
            self.assertLessEqual(len(self.asked), 19)

    def test_no_number(self):
        found, said = self.find(9999, 'a:min')
        self.assertEqual(['a:512'], found)
        self.assertEqual('512 more hosts are not enough either.', said)

    def test_the_command_fails(self):
        """No number is said where nobody knows."""
        ended = types.SimpleNamespace(returncode=1, stderr='no cell\n')
        with mock.patch.object(copied, '_run', return_value=ended) as run:
            exc = self.assertRaises(
                exception.InvalidValue,
                *(copied.find_fewest, ['a:min'], ['survive'], PATH),
            )
        self.assertIn('no cell', str(exc))
        self.assertEqual(1, run.call_count)

    def test_other_words_with_a_colon(self):
        words = ['survive', '--hint', 'x=a:minute', '--add-host', 'a:min']
        with mock.patch.object(
            copied, '_run', return_value=types.SimpleNamespace(returncode=0)
        ) as run:
            copied.find_fewest(['a:min'], words, PATH)
        self.assertEqual([*words[:-1], 'a:1'], run.call_args.args[0][:5])

    def test_another_cloud_is_named(self):
        words = ['survive', '--config-file', 'x', '--from=y', '--lose', 'host']
        self.find(1, 'a:min', words=words)
        self.assertEqual(
            [
                *('survive', '--lose', 'host', '--add-host=a:1'),
                *('--from', 'copy.json.gz'),
            ],
            self.asked[0],
        )

    def test_nothing_to_find(self):
        self.assertEqual((['a:2'], ''), self.find(1, 'a:2'))
        self.assertEqual([], self.asked)
        self.assertRaises(
            exception.InvalidValue, self.find, 1, 'a:min', 'b:min'
        )

    def test_a_cloud_that_cannot_be_saved(self):
        failed = types.SimpleNamespace(returncode=1, stderr='x\nno cell\n')
        with mock.patch.object(copied, '_run', return_value=failed) as run:
            exc = self.assertRaises(
                exception.InvalidValue, copied.save, PATH, ['a'], ['b']
            )
        self.assertIn('no cell', str(exc))
        run.assert_called_once_with(
            ['save', '--config-file=a', '--config-dir=b', '--', str(PATH)]
        )
