# SPDX-License-Identifier: Apache-2.0

"""The operating page lists every message at WARNING or above.

The messages are read from the source: what goes to the log at WARNING or
above, what ends a request or the start of nova-scheduler, and what the status
check reports. An entry of the page is a piece of a message, with ``...`` for
what differs from case to case.
"""

import ast
from collections.abc import Iterator
import pathlib
import re
import typing

import testtools

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = ROOT / 'nova_ext_sched'
PAGE = ROOT / 'doc' / 'source' / 'operating.rst'
BEGIN, END = '.. messages begin', '.. messages end'

# The scheduler's part, and the status check.
MODULES = sorted(
    [
        *PACKAGE.glob('*.py'),
        *(PACKAGE / 'conf').glob('*.py'),
        *(PACKAGE / 'filters').glob('*.py'),
        *(PACKAGE / 'request_filters').glob('*.py'),
        *(PACKAGE / 'policy').glob('*.py'),
        *(PACKAGE / 'queries').glob('*.py'),
        *(PACKAGE / 'cmd' / 'status').glob('*.py'),
    ]
)

LOGGING = {'warn', 'warning', 'error', 'exception', 'critical'}

# Whose first argument, or argument of this name, is what people read.
CALLS = {
    'RequestRefused': 'reason',
    'RequestFilterFailed': 'reason',
    '_failure': 'details',
    '_warning': 'details',
}

# Modules whose InvalidValue reaches the log as it is.
EXPECTING = ('conf/misspelling.py', 'policy/failure_domains.py')

# Functions that write sentences which others log, and the number of words
# that tells one from a piece of a sentence.
WRITERS = {
    'conf/aggregate_instance_type.py': ['contradictions'],
    'conf/failure_domains.py': ['contradictions', '__call__'],
    'conf/isolation.py': ['contradictions', '__call__'],
    'conf/misspelling.py': ['warnings'],
    'conf/reservation.py': ['contradictions', '__call__'],
    'cmd/status/operators_data.py': ['check_traits', 'check_reservations'],
    'cmd/status/checks.py': ['_filters', '_aggregates', '_placement'],
    'filters/__init__.py': ['find_shadowed'],
    'policy/aggregate_instance_rule.py': ['examine'],
    'policy/force_metadata_check.py': ['faults'],
    'policy/isolation.py': ['read_item'],
    'policy/reservation.py': ['_why_closed'],
}
WORDS = 4

# What such a function writes and no sentence begins with.
PIECE = 'It keeps the rules'


def template(node: ast.expr) -> str | None:
    """Return a string with ``...`` for what is filled in, None for others."""
    text = _template(node)
    return text and ' '.join(text.split())


def _template(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return re.sub(r'%\(\w+\)\w|%s|\{[\w!]*\}', '...', text)
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


def strings(node: ast.AST) -> Iterator[str]:
    """Yield the templates under a node, but docstrings and help."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and template(child.value):
            continue
        if isinstance(child, ast.expr) and (text := template(child)):
            yield text
        else:
            yield from strings(child)


def is_sentence(text: str) -> bool:
    """Return whether a template is more than a piece of a sentence."""
    return len(re.findall(r'\w+', text)) >= WORDS


def _assigned(function: ast.AST, name: str) -> Iterator[str]:
    for node in ast.walk(function):
        if (
            isinstance(node, ast.Assign)
            and any(
                isinstance(target, ast.Name) and target.id == name
                for target in node.targets
            )
            and (text := template(node.value))
        ):
            yield text


def _sentence(call: ast.Call) -> ast.expr | None:
    """Return the argument of a call that people read."""
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in LOGGING:
        return call.args[0] if call.args else None
    name = getattr(function, 'attr', getattr(function, 'id', ''))
    if name not in CALLS:
        return None
    if call.args:
        return call.args[0]
    return next((k.value for k in call.keywords if k.arg == CALLS[name]), None)


def _expected(call: ast.Call) -> Iterator[str]:
    """Yield what an InvalidValue says that it expects."""
    if getattr(call.func, 'attr', '') != 'InvalidValue':
        return
    for keyword in call.keywords:
        if keyword.arg == 'expected':
            value = keyword.value
            for node in (
                [value.body, value.orelse]
                if isinstance(value, ast.IfExp)
                else [value]
            ):
                yield f'expected {template(node)}'


def messages_of(path: pathlib.Path) -> Iterator[tuple[str, int]]:
    """Yield the messages of a module, and the line of each."""
    module = str(path.relative_to(PACKAGE))
    tree = ast.parse(path.read_text())
    for function in ast.walk(tree):
        if isinstance(function, ast.ClassDef):
            for node in function.body:
                if (
                    isinstance(node, ast.Assign)
                    and function.name.startswith('Plugin')
                    and (text := template(node.value))
                ):
                    yield text, node.lineno
        if not isinstance(function, ast.FunctionDef):
            continue
        if function.name in WRITERS.get(module, ()):
            for text in strings(function):
                if is_sentence(text):
                    yield text, function.lineno
        for node in ast.walk(function):
            if not isinstance(node, ast.Call):
                continue
            if module in EXPECTING:
                for text in _expected(node):
                    yield text, node.lineno
            argument = _sentence(node)
            if argument is None:
                continue
            if isinstance(argument, ast.Name):
                for text in _assigned(function, argument.id):
                    yield text, node.lineno
            elif (text := template(argument)) and text.strip('. :'):
                yield text, node.lineno


def messages() -> dict[str, str]:
    """Return every message, and where it is written."""
    return {
        text: f'{path.relative_to(ROOT)}:{line}'
        for path in MODULES
        for text, line in messages_of(path)
        if not text.startswith(PIECE)
    }


def entries() -> list[str]:
    """Return the entries of the page, without the ``...`` around them."""
    text = PAGE.read_text()
    index = text[text.index(BEGIN) : text.index(END)]
    return [
        entry.strip('. :')
        for entry in re.findall(r'^``(.+)``$', index, re.MULTILINE)
    ]


def owners() -> dict[str, list[str]]:
    """Return the messages that each entry stands for.

    An entry is a piece of one message. A message that is too short for that
    (``... cannot decide``) is an entry as a whole, and may be a piece of
    others.
    """
    written = list(messages())
    return {
        entry: [text for text in written if text.strip('. :') == entry]
        or [text for text in written if entry in text]
        for entry in entries()
    }


class MessagesTestCase(testtools.TestCase):
    def test_every_message_has_an_entry(self):
        known = {text for texts in owners().values() for text in texts}
        missing = [
            f'{place}: {text}'
            for text, place in messages().items()
            if text not in known
        ]
        self.assertEqual(
            [],
            missing,
            f'Say in {PAGE.name} what to do about:\n' + '\n'.join(missing),
        )

    def test_every_entry_is_one_message(self):
        self.assertEqual(
            [],
            [
                f'{entry}: {len(texts)} messages'
                for entry, texts in owners().items()
                if len(texts) != 1
            ],
        )

    def test_no_entry_twice(self):
        self.assertEqual(len(set(entries())), len(entries()))

    def test_what_others_write_is_found(self):
        for module, functions in WRITERS.items():
            tree = ast.parse((PACKAGE / module).read_text())
            writing = {
                node.name
                for node in ast.walk(tree)
                if isinstance(node, ast.FunctionDef)
                and any(is_sentence(text) for text in strings(node))
            }
            self.assertEqual(set(), set(functions) - writing, module)

    def test_calls_are_found(self):
        """A line of the log, a refusal, an exception, a result of a check."""
        for module, count in (
            ('request_filters/base.py', 3),
            ('queries/running_image.py', 5),
            ('exception.py', 4),
            ('conf/misspelling.py', 4),
            ('cmd/status/checks.py', 10),
        ):
            found = set(text for text, _ in messages_of(PACKAGE / module))
            self.assertGreaterEqual(len(found), count, module)

    def test_no_other_module_logs(self):
        """The simulator is a cloud of its own, with its own report."""
        logs = re.compile(rf'\b(LOG|LOG_ONCE)\.({"|".join(LOGGING)})\(')
        self.assertEqual(
            [],
            [
                str(path)
                for path in PACKAGE.rglob('*.py')
                if path not in MODULES
                and 'simulate' not in path.parts
                and logs.search(path.read_text())
            ],
        )
