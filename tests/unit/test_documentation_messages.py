# SPDX-License-Identifier: Apache-2.0

"""The page of messages has every message at INFO or above.

The messages are read from the source, of what runs in nova-scheduler and of
the status check. A message is a string that is

* logged at INFO or above, or the reason of a refused request,
* a sentence in the room of the options or of the status check, where all that
  is written is for operators (but help and DEBUG lines),
* what a plugin's exception says.

An entry of the page (doc/source/reference/messages.yaml) is a piece of one
string of the source, with ``...`` for what differs from case to case.
"""

import ast
from collections.abc import Collection
from collections.abc import Iterator
import functools
import pathlib
import re
import typing

import ddt
import testtools

from tests import documentation

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = ROOT / 'nova_ext_sched'
PAGE = documentation.tables.MESSAGES

ROOMS = ('conf', 'filters', 'policy', 'queries', 'request_filters', 'weighers')
FOR_OPERATORS = ('conf', 'cmd/status')
MODULES = sorted(
    [
        *PACKAGE.glob('*.py'),
        *(PACKAGE / 'cmd' / 'status').glob('*.py'),
        *(path for room in ROOMS for path in (PACKAGE / room).glob('*.py')),
    ]
)

# The last one is that of request_filters.base.Outage.
LOUD = set('info warn warning error exception critical failed'.split())
QUIET = {'debug'}
# Exceptions whose reason ends a request, or with which nova-scheduler does not
# start.
REFUSALS = {'RequestRefused', 'RequestFilterFailed', 'PluginError'}
# Fewer words are a piece of a sentence, or a name.
WORDS = 5


class String(typing.NamedTuple):
    """A string of the source, and whether the page must have it."""

    text: str
    place: str
    is_message: bool


def template(node: ast.expr) -> str | None:
    """Return a string with ``...`` for what is filled in, None for others."""
    text = _template(node)
    return text and ' '.join(text.split())


def _template(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return re.sub(r'%\(\w+\)\w|%s|%\.0f|\{[\w!]*\}', '...', text)
        case ast.JoinedStr():
            return ''.join(
                '...'
                if isinstance(value, ast.FormattedValue)
                else typing.cast(str, _template(value))
                for value in node.values
            )
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return (_template(left) or '...') + (_template(right) or '...')
        case _:
            return None


def name_of(call: ast.Call) -> str:
    return getattr(call.func, 'attr', getattr(call.func, 'id', ''))


def find_strings(
    node: ast.AST, for_operators: bool, loud: Collection[str] = ()
) -> Iterator[tuple[ast.expr, str, bool]]:
    """Yield expression, text and whether it is a message, under a node.

    :param for_operators: whether each sentence is a message
    :param loud: names of variables that are logged
    """
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Expr(value=value) if template(value):
                continue  # a docstring
            case ast.Call() if name_of(child).endswith(
                ('Opt', 'OptGroup', '_opt')
            ):
                continue
            case ast.Call() if name_of(child) in QUIET:
                continue
            case ast.ClassDef():
                loud = []
            case ast.FunctionDef():
                loud = {
                    getattr(call.args[0], 'id', '')
                    for call in ast.walk(child)
                    if isinstance(call, ast.Call)
                    and name_of(call) in LOUD | REFUSALS
                    and call.args
                }
            case ast.IfExp() if isinstance(node, ast.keyword):
                for value in (child.body, child.orelse):
                    yield from find_strings(
                        ast.keyword(node.arg, value), for_operators, loud
                    )
                continue
        text = template(child) if isinstance(child, ast.expr) else None
        if text is None:
            yield from find_strings(child, for_operators, loud)
            continue
        match node:
            case ast.Call(args=[first, *_]) if first is child:
                is_loud = name_of(node) in LOUD | REFUSALS
            case ast.keyword(arg='reason'):
                is_loud = True
            case ast.Assign(targets=[ast.Name(id=name)]):
                is_loud = name in loud
            case _:
                is_loud = False
        if isinstance(node, ast.keyword) and node.arg == 'expected':
            text = f'expected {text}'
        if len(text.split()) >= WORDS:
            is_loud |= for_operators
        yield child, text, is_loud and bool(text.strip('. :'))


@functools.cache
def strings() -> list[String]:
    """Return every string that may be one of the page's."""
    found = {}
    for path in MODULES:
        room = str(path.parent.relative_to(PACKAGE))
        for node, text, is_message in find_strings(
            ast.parse(path.read_text()), room in FOR_OPERATORS
        ):
            place = f'{path.relative_to(ROOT)}:{node.lineno}'
            if text not in found or is_message:
                found[text] = String(text, place, is_message)
    return list(found.values())


def named_entries() -> list[tuple[str, str]]:
    """Return the entries of the page, each with its name."""
    return [
        (message.text, message.name)
        for _title, _intro, messages in documentation.tables.read_messages()
        for message in messages
    ]


def entries() -> list[str]:
    """Return the entries of the page, without the ``...`` around them."""
    return [entry.strip('. :') for entry, _name in named_entries()]


def owners() -> dict[str, list[String]]:
    """Return the strings that each entry stands for.

    An entry is a piece of one string. A string that is too short for that
    (``... cannot decide``) is an entry as a whole, and may be a piece of
    others. A message comes before other strings.
    """
    found = {}
    for entry in entries():
        within = [string for string in strings() if entry in string.text]
        within = [string for string in within if string.is_message] or within
        found[entry] = [
            string for string in within if string.text.strip('. :') == entry
        ] or within
    return found


@ddt.ddt
class MessagesTestCase(testtools.TestCase):
    def test_every_message_has_an_entry(self):
        known = {string for found in owners().values() for string in found}
        missing = [
            f'{string.place}: {string.text}'
            for string in strings()
            if string.is_message and string not in known
        ]
        self.assertEqual(
            [],
            missing,
            f'Say in {PAGE.name} what to do about:\n' + '\n'.join(missing),
        )

    def test_every_entry_is_one_message(self):
        for entry, found in owners().items():
            places = [string.place for string in found]
            self.assertEqual(1, len(found), (entry, places))

    def test_every_entry_has_a_name(self):
        """Others link to it, whatever words the message gets."""
        names = [name for _entry, name in named_entries()]
        for entry, name in named_entries():
            self.assertRegex(name, r'^[a-z][a-z-]+$', entry)
        self.assertEqual(len(set(names)), len(names))

    def test_no_entry_twice(self):
        self.assertEqual(len(set(entries())), len(entries()))

    @ddt.unpack
    @ddt.data(
        ("LOG.warning('no %s', x)", 'no ...', True),
        ("LOG.debug('no host is left for it')", None, False),
        ("text = f'no {x}'\n    LOG_ONCE.warning(text)", 'no ...', True),
        ("raise exception.RequestRefused('no host')", 'no host', True),
        ("raise Failed(reason='no ' + x)", 'no ...', True),
        ("check(expected='a' if x else 'b')", 'expected a', False),
        ("return 'no host is left for it'", 'no host is left for it', False),
    )
    def test_rule(self, line, text, is_message):
        tree = ast.parse(
            f'def f(x):\n    """It says more than 5 words."""\n    {line}'
        )
        found = [found[1:] for found in find_strings(tree, False)]
        self.assertEqual([(text, is_message)] if text else [], found[:1])
        # In the options' room, whatever is a sentence.
        found = [found[2] for found in find_strings(tree, True)]
        is_long = text is not None and len(text.split()) >= WORDS
        self.assertEqual([is_message or is_long] if text else [], found[:1])

    def test_no_other_module_logs(self):
        """The simulator is a cloud of its own, with its own report."""
        logs = re.compile(rf'\b(LOG|LOG_ONCE)\.({"|".join(LOUD)})\(')
        found = [
            str(path)
            for path in PACKAGE.rglob('*.py')
            if path not in MODULES
            and not {'simulator', 'watch'}.intersection(path.parts)
            and logs.search(path.read_text())
        ]
        self.assertEqual([], found)
