# SPDX-License-Identifier: Apache-2.0

"""Each entry of the security page names tests, and they exist.

Its table is doc/source/contributor/security.yaml.
"""

import ast

import testtools

from tests import documentation


def exists(test: str) -> bool:
    """Return whether a module has the method ``path::Class.method``."""
    path, _, name = test.partition('::')
    wanted, _, method = name.partition('.')
    file = documentation.ROOT / path
    for node in ast.parse(file.read_text()).body if file.exists() else ():
        match node:
            case ast.ClassDef(name=found, body=body) if found == wanted:
                return method in {getattr(one, 'name', '') for one in body}
    return False


class SecurityTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.threats = [
            threat
            for found in documentation.tables.read_security().values()
            for threat in found
        ]

    def test_each_entry_has_every_field_and_a_test(self):
        self.assertGreaterEqual(len(self.threats), 15)
        page = documentation.tables.write_security()
        for threat in self.threats:
            self.assertTrue(all(threat), threat.title)
            for text in (threat.who, threat.worst, threat.bound):
                self.assertIn(f': {text}\n', page)

    def test_tests_exist(self):
        named = [test for threat in self.threats for test in threat.tests]
        self.assertEqual([], [test for test in named if not exists(test)])
        self.assertFalse(exists('tests/unit/test_conf.py::NoTestCase.test_x'))
