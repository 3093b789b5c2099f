# SPDX-License-Identifier: Apache-2.0

"""The table of clouds and promises says what the tests ask."""

import ast

import testtools

from tests import documentation

PROMISES = ('explain', 'isolation', 'moves', 'survive', 'capacity')
TESTS = documentation.ROOT / 'tests'
PAGE = documentation.ROOT / 'doc/source/contributor/testing.rst'
MODULES = (
    TESTS / 'functional/test_promises.py',
    *sorted(TESTS.glob('long/test_promises_*.py')),
)


def read_rows():
    """Yield name, module, promises asked and reasons of each row.

    The modules are not imported: they change nova.
    """
    for path in MODULES:
        found = {}
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                methods, texts = set(), {'meaningless': {}, 'broken': {}}
                for base in node.bases:
                    if isinstance(base, ast.Name) and base.id in found:
                        methods |= found[base.id][0]
                        texts |= found[base.id][1]
                for one in node.body:
                    match one:
                        case ast.FunctionDef(name=name):
                            methods.add(name)
                        case ast.Assign(
                            targets=[
                                ast.Name(id=('meaningless' | 'broken') as name)
                            ],
                            value=value,
                        ):
                            texts = {**texts, name: ast.literal_eval(value)}
                found[node.name] = methods, texts
                if node.name.endswith('Row'):
                    said = ast.get_docstring(node).splitlines()[0]
                    asked = {
                        one.removeprefix('promise_')
                        for one in methods
                        if one.startswith('promise_')
                    }
                    yield said, asked, texts


def make_table():
    """Return the table of the page."""
    lines = [
        '.. list-table::',
        '   :header-rows: 1',
        '   :widths: 45 55',
        '',
        '   * - Cloud',
        '     - Not asked, or not kept',
    ]
    for said, _, texts in read_rows():
        reasons = [
            *(f'{name}: {why}' for name, why in texts['meaningless'].items()),
            *(
                f'{name} is not kept: {why}'
                for name, why in texts['broken'].items()
            ),
        ]
        lines += [
            f'   * - {said.removesuffix(".")}',
            f'     - {"; ".join(reasons)}'.rstrip(),
        ]
    return '\n'.join(lines) + '\n'


class PromisesTestCase(testtools.TestCase):
    def test_each_row_names_each_promise(self):
        for said, asked, texts in read_rows():
            self.assertEqual(
                {*PROMISES}, asked | {*texts['meaningless']}, said
            )
            self.assertEqual(set(), asked & {*texts['meaningless']}, said)
            self.assertLessEqual({*texts['broken']}, asked, said)

    def test_the_page_has_each_row(self):
        self.assertIn(make_table(), PAGE.read_text())
