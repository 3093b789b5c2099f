# SPDX-License-Identifier: Apache-2.0

"""Each entry of the security page names tests in a comment, and they exist.

Operators read the page without them.
"""

import ast
import pathlib
import re

import testtools

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / 'doc' / 'source' / 'contributor' / 'security.rst'
FIELDS = ('Who controls it', 'The worst it can do', 'What we do')


def sections() -> list[str]:
    """Return the entries: what stands from one first field to the next."""
    _, *found = re.split(rf'(?m)^(?=:{FIELDS[0]}:)', PAGE.read_text())
    return found


def named_tests(text: str) -> list[str]:
    """Return the tests that a text names."""
    return re.findall(r'(?m)^   (tests/\S+?\.py::\S+)$', text)


def exists(test: str) -> bool:
    """Return whether a module has the method ``path::Class.method``."""
    path, _, name = test.partition('::')
    wanted, _, method = name.partition('.')
    file = ROOT / path
    return file.exists() and any(
        isinstance(node, ast.ClassDef)
        and node.name == wanted
        and any(
            isinstance(child, ast.FunctionDef) and child.name == method
            for child in node.body
        )
        for node in ast.parse(file.read_text()).body
    )


class SecurityTestCase(testtools.TestCase):
    def test_each_entry_has_every_field_and_a_test(self):
        found = sections()
        self.assertGreaterEqual(len(found), 15)
        for section in found:
            for field in FIELDS:
                self.assertEqual(
                    1, len(re.findall(rf'(?m)^:{field}:', section)), section
                )
            self.assertNotEqual([], named_tests(section), section)

    def test_tests_exist(self):
        named = named_tests(PAGE.read_text())
        self.assertEqual([], [test for test in named if not exists(test)])
        self.assertEqual(PAGE.read_text().count('.py::'), len(named))
        self.assertFalse(exists('tests/unit/test_conf.py::NoTestCase.test_x'))
