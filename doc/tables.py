# SPDX-License-Identifier: Apache-2.0

"""What the pages have of tables that tests read, too."""

import ast
from collections.abc import Iterator
import pathlib
import typing

import yaml

ROOT = pathlib.Path(__file__).parents[1]
MESSAGES = ROOT / 'doc' / 'source' / 'reference' / 'messages.yaml'
SECURITY = ROOT / 'doc' / 'source' / 'contributor' / 'security.yaml'
COMMANDS = ROOT / 'doc' / 'source' / 'cli' / 'commands.yaml'
SCHEMA = ROOT / 'nova_ext_sched' / 'simulator' / 'schema.yaml'
TESTS = ROOT / 'tests'
# The modules are not imported: they change nova.
PROMISES = (
    TESTS / 'functional' / 'test_promises.py',
    *sorted((TESTS / 'long').glob('test_promises_*.py')),
)


class Message(typing.NamedTuple):
    """A message, as the page has it.

    :ivar text: a piece of one string of the source, with ``...`` for what
        differs
    :ivar name: that of the anchor, without ``message-``
    :ivar remedy: what to do, in reStructuredText
    """

    text: str
    name: str
    remedy: str


def read_messages() -> list[tuple[str, str, list[Message]]]:
    """Return title, introduction and messages of each section."""
    return [
        (
            section['section'],
            section.get('intro', ''),
            [Message(**one) for one in section['messages']],
        )
        for section in yaml.safe_load(MESSAGES.read_text())
    ]


def write_messages() -> str:
    """Return the sections of the page of messages."""
    lines = []
    for title, intro, messages in read_messages():
        lines += [title, '=' * len(title), '', intro, '']
        for text, name, remedy in messages:
            lines += [f'``{text}`` : {name}', f'   {remedy}', '']
    return '\n'.join(lines)


class Command(typing.NamedTuple):
    """A command, as the card has it.

    :ivar part: as ``--help`` groups them; ``look`` and ``plan`` change nothing
    :ivar page: in the folder ``cli``
    :ivar question: what it answers; the page begins with it
    :ivar example: a line that the page types
    :ivar three: when the exit status is 3
    """

    command: str
    part: str
    page: str
    question: str
    example: str
    three: str


def read_commands() -> list[Command]:
    """Return every command, in the order of the card."""
    return [Command(**one) for one in yaml.safe_load(COMMANDS.read_text())]


class Cloud(typing.NamedTuple):
    """A row of the promises: a cloud, and what is asked of it.

    :ivar said: the first line of the class
    :ivar asked: the promises that have a method
    :ivar texts: by ``meaningless`` and ``broken``, promises and reasons
    """

    said: str
    asked: set[str]
    texts: dict[str, dict[str, str]]


def read_promises() -> Iterator[Cloud]:
    """Yield each cloud that promises are asked of."""
    for path in PROMISES:
        found: dict[str, tuple[set[str], dict[str, dict[str, str]]]] = {}
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                methods, texts = set(), {'meaningless': {}, 'broken': {}}
                for base in node.bases:
                    if isinstance(base, ast.Name) and base.id in found:
                        methods |= found[base.id][0]
                        texts |= found[base.id][1]
                for one in node.body:
                    match one:
                        case (
                            ast.FunctionDef(name=name)
                            | ast.Assign(
                                targets=[ast.Name(id=name)],
                                value=ast.Call(
                                    func=ast.Attribute(
                                        value=ast.Name(id='promises')
                                    )
                                ),
                            )
                        ):
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
                    asked = {
                        one.removeprefix('promise_')
                        for one in methods
                        if one.startswith('promise_')
                    }
                    said = (ast.get_docstring(node) or '').splitlines()[0]
                    yield Cloud(said.removesuffix('.'), asked, texts)


def describe_promises() -> Iterator[tuple[str, str]]:
    """Yield each cloud, and what is not asked of it, or not kept."""
    for cloud in read_promises():
        reasons = [
            *(
                f'{name}: {why}'
                for name, why in cloud.texts['meaningless'].items()
            ),
            *(
                f'{name} is not kept: {why}'
                for name, why in cloud.texts['broken'].items()
            ),
        ]
        yield cloud.said, '; '.join(reasons)


class Threat(typing.NamedTuple):
    """An input: who controls it, and what it can do.

    :ivar tests: of what we do, ``path::Class.method``
    """

    title: str
    who: str
    worst: str
    bound: str
    tests: list[str]


def read_security() -> dict[str, list[Threat]]:
    """Return the inputs by the title of their section."""
    return {
        part['part']: [Threat(**one) for one in part['inputs']]
        for part in yaml.safe_load(SECURITY.read_text())
    }


def write_security() -> str:
    """Return the sections of the page on security."""
    lines = []
    for part, threats in read_security().items():
        lines += [part, '=' * len(part), '']
        for threat in threats:
            lines += [threat.title, '-' * len(threat.title), '']
            lines += [
                f':Who controls it: {threat.who}',
                f':The worst it can do: {threat.worst}',
                f':What we do: {threat.bound}',
                '',
            ]
    return '\n'.join(lines)


def describe_scenario(part: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of a part of a scenario, and what they take.

    :param part: ``scenario``, ``steps`` (by action, the keys beside it) or
        ``expect``
    """
    parts = yaml.safe_load(SCHEMA.read_text())['$defs']
    if part == 'steps':
        for action, step in parts['steps'].items():
            required = step.get('required', [])
            yield (
                f'``{action}``',
                ', '.join(
                    f'``{key}``' + ' (required)' * (key in required)
                    for key in step['properties']
                    if key not in (action, 'expect', 'expect_plain')
                )
                or 'none',
            )
        return
    schema = parts[part]
    if part == 'expect':
        *_, schema = schema['oneOf']
    required = schema.get('required', [])
    for key, form in schema['properties'].items():
        # What each of a list or a mapping is.
        within = form.get('items') or form.get('additionalProperties') or {}
        each = within.get('description', '')
        yield (
            f'``{key}``' + ' (required)' * (key in required),
            form['description'] + f'; each is {each}' * (' keys ' in each),
        )
