# SPDX-License-Identifier: Apache-2.0

"""Names of locals that are used over many lines say what they are."""

import ast
import collections

import testtools

from tests import documentation

#: They say nothing of what they name; over a few lines nobody needs that.
EMPTY = {'one', 'some', 'of', 'found', 'these', 'mine'}
MOST = 5


class Scopes(ast.NodeVisitor):
    """Finds the lines of each empty name, by the scope that binds it.

    :ivar long: the first line and the name of those over too many lines
    """

    def __init__(self):
        self.open, self.long = [], []

    def enter(self, node, names):
        """Visit a scope, and look how far its names reach."""
        lines = collections.defaultdict(list)
        for name, line in names:
            lines[name].append(line)
        self.open.append(lines)
        self.generic_visit(node)
        self.long += [
            (min(found), name)
            for name, found in self.open.pop().items()
            if name in EMPTY and max(found) - min(found) >= MOST
        ]

    def visit_FunctionDef(self, node):
        given = node.args.posonlyargs, node.args.args, node.args.kwonlyargs
        names = [(one.arg, one.lineno) for args in given for one in args]
        self.enter(node, names)

    visit_Lambda = visit_FunctionDef

    def visit_ListComp(self, node):
        names = [
            (one.id, one.lineno)
            for generator in node.generators
            for one in ast.walk(generator.target)
            if isinstance(one, ast.Name)
        ]
        self.enter(node, names)

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_Name(self, node):
        known = (lines for lines in self.open[::-1] if node.id in lines)
        for lines in (*known, *self.open[-1:]):
            lines[node.id].append(node.lineno)
            break


def find_long(text):
    """Return the first line and the name of those over too many lines."""
    scopes = Scopes()
    scopes.visit(ast.parse(text))
    return sorted(scopes.long)


class LocalNamesTestCase(testtools.TestCase):
    def test_names_over_many_lines(self):
        root = documentation.ROOT / 'nova_ext_sched'
        for path in sorted(root.rglob('*.py')):
            self.assertEqual([], find_long(path.read_text()), path)

    def test_what_is_long(self):
        """Six lines are; a comprehension has names of its own."""
        for number, expected in ((4, [(1, 'one')]), (3, [])):
            between = '\n    x = 1' * number
            text = f'def f(one):{between}\n    return one'
            self.assertEqual(expected, find_long(text))
            text = f'[one for one in x]{between}\n    [one for one in y]'
            self.assertEqual([], find_long(f'def f():\n    {text}'))
