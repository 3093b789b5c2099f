# SPDX-License-Identifier: Apache-2.0

"""The first line of a docstring names its subject.

A function's begins with a verb, that of a class, module or property with a
noun or a verb: neither with "What is told of moves" nor with "Let it go".
"""

import ast
import re

import ddt
import testtools

from tests import documentation

PACKAGE = documentation.ROOT / 'nova_ext_sched'
# What a reader has to look up in the code.
VAGUE = re.compile(
    r'(?:What|Which|Where|Who|Whose|How|Why|Those|Let|Tell|Say)\b'
    r'|Return (?:what|that|which of|those|whose|on|of|from)\b'
    r'|Yield (?:what|that|which|those|whose)\b'
    r'|Add what\b|Refuse what\b'
)


def docstrings(path):
    """Yield where the docstrings of a module are, and their first lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node)
            if text:
                name = getattr(node, 'name', path.stem)
                yield f'{path.name}: {name}', text.splitlines()[0]


@ddt.ddt
class DocstringsTestCase(testtools.TestCase):
    @ddt.data(
        *sorted(
            {
                path.relative_to(PACKAGE).parts[0]
                for path in PACKAGE.rglob('*.py')
            }
        )
    )
    def test_first_lines(self, room):
        place = PACKAGE / room
        paths = [place] if place.is_file() else place.rglob('*.py')
        self.assertEqual(
            [],
            [
                (where, line)
                for path in paths
                for where, line in docstrings(path)
                if VAGUE.match(line)
            ],
        )
