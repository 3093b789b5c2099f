# SPDX-License-Identifier: Apache-2.0

"""The code blocks of README and documentation, and their commands."""

from collections.abc import Iterator
import importlib.util
import pathlib
import re
import shlex
import textwrap
import typing

ROOT = pathlib.Path(__file__).parents[1]

_BLOCK = re.compile(
    r'^(?P<indent> *)\.\. code-block:: (?P<language>\S+)\n'
    r'(?P<body>(?:(?P=indent) +\S.*\n|\s*\n)+)',
    re.M,
)
_NOVA_CONF = re.compile(
    r'^(?P<indent> *)\.\. nova-conf::(?P<filters>.*)\n'
    r'(?P<body>(?:(?P=indent) +\S.*\n|\s*\n)+)',
    re.M,
)
_OPTION = re.compile(r' *:[\w-]+:.*\n')
_INCLUDED = re.compile(
    r'^ *\.\. (?:literalinclude|picture):: (?P<path>\S+\.txt)\n'
    r' +:language: (?P<language>\S+)\n',
    re.M,
)
#: A sample that a page shows in colour.
PICTURE = re.compile(r'^ *\.\. picture:: (?P<path>\S+\.txt)\n', re.M)
_SUBSTITUTION = re.compile(r'\$\(([^()]*)\)')


def _load(name: str) -> typing.Any:
    spec = importlib.util.spec_from_file_location(
        name, ROOT / 'doc' / f'{name}.py'
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


#: What fills the directive ``nova-conf`` of the pages.
nova_conf = _load('nova_conf')
#: What fills the directives ``messages`` and ``promises``.
tables = _load('tables')


class Block(typing.NamedTuple):
    """A code block: its file and line, its language and its text."""

    file: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f'{self.file}:{self.line}'


def pages() -> list[pathlib.Path]:
    """Return every page that people read."""
    return sorted(
        [*ROOT.glob('*.rst'), *(ROOT / 'doc' / 'source').rglob('*.rst')]
    )


def read(path: pathlib.Path) -> Iterator[Block]:
    """Yield the code blocks of a page."""
    text = path.read_text() + '\n'
    for match in _find_blocks(text):
        body = match['body']
        while option := _OPTION.match(body):
            body = body[option.end() :]
        body = textwrap.dedent(body).strip('\n')
        language = match.groupdict().get('language')
        if not language:
            language = 'ini'
            body = nova_conf.fill(match['filters'], body).strip('\n')
        yield Block(
            str(path.relative_to(ROOT)),
            text.count('\n', 0, match.start()) + 1,
            language,
            f'{body}\n',
        )


def _find_blocks(text: str) -> list[re.Match[str]]:
    return sorted(
        [*_BLOCK.finditer(text), *_NOVA_CONF.finditer(text)],
        key=re.Match.start,
    )


def samples(path: pathlib.Path) -> Iterator[Block]:
    """Yield the blocks that a page includes from files of their own."""
    for match in _INCLUDED.finditer(path.read_text()):
        file = (path.parent / match['path']).resolve()
        yield Block(
            str(file.relative_to(ROOT)),
            1,
            match['language'],
            file.read_text(),
        )


def in_order(path: pathlib.Path) -> list[Block]:
    """Return the code blocks of a page, included ones too, as they stand."""
    text = path.read_text() + '\n'
    places = [match.start() for match in _find_blocks(text)]
    places += [match.start() for match in _INCLUDED.finditer(text)]
    found = [*read(path), *samples(path)]
    return [
        block
        for _place, block in sorted(
            zip(places, found, strict=True), key=lambda pair: pair[0]
        )
    ]


def blocks(*languages: str) -> list[Block]:
    """Return the blocks of all pages in one of the languages."""
    return [
        block
        for path in pages()
        for block in read(path)
        if block.language in languages
    ]


def command_lines(block: Block) -> list[str]:
    r"""Return what a console block types after ``$`` or ``#``.

    A line goes on where it ends in a backslash or a pipe. All other lines
    are output.
    """
    return _split(block)[0]


def output(block: Block) -> list[str]:
    """Return the lines of a console block that nobody types."""
    return sum(_split(block)[1], [])


def _split(block: Block) -> tuple[list[str], list[list[str]]]:
    typed: list[str] = []
    # Before the first line that is typed, and after each.
    printed: list[list[str]] = [[]]
    goes_on = False
    for line in block.text.splitlines():
        if goes_on:
            typed[-1] += ' ' + line.strip()
        elif line.startswith(('$ ', '# ')):
            typed.append(line[2:])
            printed.append([])
        else:
            printed[-1].append(line)
            continue
        goes_on = typed[-1].endswith(('\\', '|'))
        typed[-1] = typed[-1].removesuffix('\\').rstrip()
    return typed, printed


def commands(line: str) -> list[list[str]]:
    """Split a line of a shell into its commands, substituted ones first.

    Variables keep their names, what a command is substituted by is
    ``VALUE``, and redirections are left out.
    """
    found = []
    while inner := _SUBSTITUTION.search(line):
        found += commands(inner[1])
        line = _SUBSTITUTION.sub('VALUE', line, count=1)
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    listed = iter([*lexer, ';'])
    for word in listed:
        if set(word) <= set('<>'):
            next(listed)
        elif set(word) <= set('&|;'):
            if words:
                found.append(words)
            words = []
        else:
            words.append(word)
    return found
