# SPDX-License-Identifier: Apache-2.0

"""What runs before a commit is what tox's environment pep8 runs."""

import configparser
import pathlib

import testtools
import yaml

ROOT = pathlib.Path(__file__).parents[2]


class PreCommitTestCase(testtools.TestCase):
    def test_hooks(self):
        parser = configparser.RawConfigParser()
        parser.read(ROOT / 'tox.ini')
        pep8 = parser['testenv:pep8']
        [repository] = yaml.safe_load(
            (ROOT / '.pre-commit-config.yaml').read_text()
        )['repos']
        hooks = repository['hooks']
        self.assertEqual(
            pep8['commands'].split('\n')[1:], [one['entry'] for one in hooks]
        )
        # Each installs what its own program is of.
        for one in hooks:
            program = one['entry'].partition(' ')[0]
            self.assertEqual(
                [dep for dep in pep8['deps'].split() if program in dep],
                one['additional_dependencies'],
            )
