# SPDX-License-Identifier: Apache-2.0

"""Answers as one page for browsers, a single file that can be sent.

It loads nothing. Words that users wrote are text in it and nothing else. Its
Content-Security-Policy allows our one script and our one style, each by its
hash, so that nothing runs that this module lets through by mistake.
"""

import argparse
import base64
import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import datetime
import functools
import hashlib
import html
import importlib.metadata
import pathlib
import typing

from cliff import columns
from rich import console
from rich import text as rich_text

from nova_ext_sched import files
from nova_ext_sched import messages
from nova_ext_sched.cli import bars
from nova_ext_sched.cli import base
from nova_ext_sched.cli import layout
from nova_ext_sched.cli import terminal
from nova_ext_sched.cli import topology

# The most rows of a table: more would make a browser slow.
_MOST_ROWS = 5000
# Tables with at least this number of rows can be sorted by column.
_SORTED_FROM = 8
# Tables with more rows scroll in a part of the page, except those of maps.
_LONG = 25
# Labels up to this number of characters do not wrap.
_SHORT = 24
# With more columns, each cell is a line of its own on a narrow page.
_NARROW_COLUMNS = 4

# The places where further answers, and links to them, are inserted. No text of
# a page can have this mark, because its characters are escaped.
_HERE = '<!--here-->\n'


#: The options that name a page; a command takes one of them.
OPTIONS: base.Arguments = {
    '--html': {
        'metavar': 'FILE',
        'type': pathlib.Path,
        'help': 'also write the answer to this file, as a web page',
    },
    '--html-add': {
        'metavar': 'FILE',
        'type': pathlib.Path,
        'help': 'the same, added to the page if there is one',
    },
}


def is_wanted(parsed_args: argparse.Namespace) -> bool:
    """Return whether a page is asked for.

    :raises base.UsageError: the page to add to is not one of ours
    """
    if added := parsed_args.html_add:
        _read(added)
    return bool(parsed_args.html or added)


def write(parsed_args: argparse.Namespace, title: str, answer: str) -> None:
    """Write a page with an answer, or add the answer to a page.

    :param title: the text of link and heading
    :param answer: the result of :func:`draw`
    :raises OSError: it cannot be written
    :raises base.UsageError: the page is not one of ours
    """
    path, links, answers = parsed_args.html, '', ''
    if path is None:
        path = parsed_args.html_add
        links, answers = _read(path)
    name = f'answer-{links.count("<a ") + 1}'
    shown = _say(title)
    links += f'<a href="#{name}">{shown}</a>\n'
    answers += f'<article id="{name}">\n<h1>{shown}</h1>\n{answer}</article>\n'
    head, between, end = _frame()
    files.write(path, ''.join((head, links, between, answers, end)))


def draw(
    sections: Iterable[layout.Section],
    names: Sequence[str],
    rows: Sequence[Sequence[object]],
    status: int,
    origin: Sequence[str] = (),
) -> str:
    """Return the HTML of an answer.

    :param sections: those that a terminal would show
    :param names: names of the columns of the rows
    :param rows: all rows; the page has them folded, if there are any
    :param status: the exit status
    :param origin: the typed command line, and which cloud answered
    """
    now = datetime.datetime.now(datetime.UTC)
    version = importlib.metadata.version('nova-ext-sched')
    classes = {
        terminal.ANSWER: f'answer {"bad" if status else terminal.GOOD}',
    }
    parts = [
        f'<p class="aside">{now:%Y-%m-%d %H:%M} UTC, exit status {status}, '
        f'version {_say(version)}</p>\n',
        *(f'<p class="aside">{_say(one)}</p>\n' for one in origin if one),
        *(_draw_section(one, classes) for one in sections),
    ]
    if rows:
        parts += (
            f'<section><details><summary>All rows ({len(rows)})</summary>\n',
            *_draw_table(names, rows, 'All rows'),
            '</details></section>\n',
        )
    return ''.join(parts)


def _draw_section(section: layout.Section, classes: dict[str, str]) -> str:
    rows, title = section.rows, section.title
    parts = [f'<section{"" if section.apart else _class("close")}>\n']
    if title:
        style = section.style or (terminal.HEADING if rows else '')
        tag = 'h2' if style == terminal.HEADING else 'p'
        attribute = _class(classes.get(style, style))
        parts.append(f'<{tag}{attribute}>{_say(title)}</{tag}>\n')
    if isinstance(section.body, topology.Map):
        parts += _draw_map(section.body)
    if section.columns and rows:
        parts += _draw_table(section.columns, rows, title)
    elif rows:
        parts += _draw_lines(typing.cast(Sequence[str | layout.Line], rows))
    return ''.join((*parts, '</section>\n'))


def _draw_lines(rows: Sequence[str | layout.Line]) -> Iterator[str]:
    lines = [
        row if isinstance(row, layout.Line) else layout.Line(row)
        for row in rows[:_MOST_ROWS]
    ]
    has_labels = any(line.label != '' for line in lines)
    # A server has its name and its UUID in columns of their own.
    span = ' colspan="3"' if any(line.uuid for line in lines) else ''
    parts = ['<table class="lines"><tbody>\n']
    for line in lines:
        parts.append('<tr>')
        if has_labels:
            # In a terminal, blanks align it.
            shown = ' '.join(str(line.label).split())
            classes = (
                line.style,
                'number' * isinstance(line.label, int),
                'short' * (len(shown) <= _SHORT),
            )
            parts.append(f'<td{_class(*classes)}>{_say(shown)}</td>')
        if line.uuid:
            name = _say(messages.clean(line.name))
            parts.append(f'<td class="name">{name}</td><td>')
        else:
            parts.append(f'<td{span}>')
        parts.append(_say(line.text))
        parts += [
            f'<div class="note">{_say(note)}</div>' for note in line.notes
        ]
        parts += [
            f'<div class="note"><code>{_say(command)}</code></div>'
            for command in line.commands
        ]
        if line.below:
            parts.append(_draw_section(line.below, {}))
        parts.append('</td>')
        if line.uuid:
            parts.append(f'<td class="uuid">{_say(line.uuid)}</td>')
        parts.append('</tr>\n')
    parts.append('</tbody></table>\n')
    yield from _frame_rows(parts, len(rows))


def _draw_table(
    names: Sequence[str], rows: Sequence[Sequence[object]], caption: str
) -> Iterator[str]:
    """Yield a table; it cannot be sorted if its rows are in groups.

    :param caption: read aloud by screen readers; empty for none
    """
    drawn = rows[:_MOST_ROWS]
    shown = [
        (name, [*cells])
        for name, cells in zip(names, zip(*drawn, strict=True), strict=True)
        if name or any(cells)
    ]
    is_sorted = len(rows) >= _SORTED_FROM and not any(
        isinstance(cell, layout.Indented) for row in drawn for cell in row
    )
    is_wide = sum(bool(name) for name, _ in shown) > _NARROW_COLUMNS
    classes = 'sortable' * is_sorted, 'wide' * is_wide
    parts = [f'<table{_class(*classes)}>\n']
    if caption:
        parts.append(f'<caption class="aloud">{_say(caption)}</caption>\n')
    parts.append('<thead><tr>')
    attributes = []
    for name, cells in shown:
        is_number = any(
            isinstance(cell, int) or cell == layout.NONE for cell in cells
        )
        attribute = _class('number' if is_number else '' if name else 'bar')
        label = _say(name)
        if name and is_sorted and not isinstance(cells[0], _Signs):
            label = f'<button type="button">{label}</button>'
        parts.append(f'<th scope="col"{attribute}>{label}</th>')
        if name and is_wide:
            attribute += f' data-head="{_say(name)}"'
        attributes.append(attribute)
    parts.append('</tr></thead>\n<tbody>\n')
    for row in zip(*(cells for _, cells in shown), strict=True):
        drawn_cells = (
            f'<td{attribute}>{_draw_cell(cell)}</td>'
            for attribute, cell in zip(attributes, row, strict=True)
        )
        parts.append(f'<tr>{"".join(drawn_cells)}</tr>\n')
    parts.append('</tbody>\n</table>\n')
    yield from _frame_rows(parts, len(rows))


def _frame_rows(parts: list[str], number: int) -> Iterator[str]:
    is_long = number > _LONG
    if is_long:
        # tabindex: it can be scrolled without a mouse.
        yield '<div class="long" tabindex="0">'
    yield from parts
    if is_long:
        yield '</div>\n'
    if number > _MOST_ROWS:
        more = messages.count('more row', number - _MOST_ROWS)
        yield f'<p class="aside">and {more} (-f json lists all)</p>\n'


def _draw_cell(cell: object) -> str:
    if isinstance(cell, bars.Bar):
        return _draw_bar(cell)
    if isinstance(cell, _Signs):
        return cell.markup
    if isinstance(cell, columns.FormattableColumn):
        return _say(cell.human_readable())
    if isinstance(cell, layout.Indented):
        return f'<div class="note">{_draw_cell(cell.cell)}</div>'
    drawn = layout.render(cell)
    if isinstance(drawn, console.Group):
        return ''.join(map(_draw_cell, drawn.renderables))
    return _say(
        drawn.plain if isinstance(drawn, rich_text.Text) else str(cell)
    )


def _draw_bar(bar: bars.Bar) -> str:
    parts = [
        f'<rect{_class(style)} x="{begin}" width="{end - begin}" height="8"/>'
        for begin, end, style in bar.divide(100)
    ]
    return (
        '<svg viewBox="0 0 100 8" preserveAspectRatio="none" '
        f'aria-hidden="true">{"".join(parts)}</svg>'
    )


class _Signs(typing.NamedTuple):
    """A cell that is HTML already."""

    markup: str


def _draw_map(drawn: topology.Map) -> Iterator[str]:
    by, groups, signs = drawn.collect_rows()
    marks = {}
    for host, sign in signs.items():
        meant = _say(host)
        if host in drawn.numbers:
            meant += f': {_say(drawn.head)} {drawn.numbers[host]}'
        marks[host] = (
            f'<i{_class(sign.style)} title="{meant}">{_say(sign.shown)}</i>'
        )
    compared = bars.compare([group.number for group in groups], drawn.style)
    meanings = dict(drawn.explain(signs.values()))
    rows = []
    for group, bar in zip(groups, compared, strict=True):
        name = messages.clean(group.name or topology.NO_GROUP)
        shown = ''.join(marks[host] for host in group.hosts)
        counts = collections.Counter(
            meanings.get(signs[host].legend_key, '') for host in group.hosts
        )
        aloud = ', '.join(f'{n} {what}' for what, n in counts.most_common())
        cell = _Signs(
            f'<span class="signs" role="img" aria-label="{_say(aloud)}">'
            f'{shown}</span>'
        )
        rows.append((name, cell, group.number, bar))
    names = topology.GROUPS[by].capitalize(), 'Hosts', drawn.head, ''
    yield from _draw_table(names, rows, f'Hosts by {topology.GROUPS[by]}')
    said = [
        f'<span class="kind">{_say(entry)} {_say(meant)}</span>\n'
        for entry, meant in meanings.items()
    ]
    yield f'<p class="aside">{"".join(said)}</p>\n'


def _say(text: str) -> str:
    """Escape a text for HTML, in a tag or between tags."""
    return html.escape(layout.disarm(messages.without_secrets(text)))


def _class(*names: str) -> str:
    """Return the class attribute of a tag; empty without a name."""
    shown = ' '.join(filter(None, names))
    return f' class="{shown}"' if shown else ''


@functools.cache
def _frame() -> tuple[str, str, str]:
    """Return the HTML before the links, before the answers and after them."""
    style, script = (
        pathlib.Path(__file__).with_suffix(suffix).read_text()
        for suffix in ('.css', '.js')
    )
    policy = '; '.join(
        (
            "default-src 'none'",
            f"style-src '{_hash(style)}'",
            f"script-src '{_hash(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        '<title>nova-ext-sched</title>\n'
        f'<style>{style}</style>\n</head>\n<body>\n<nav>\n'
    )
    return (
        head,
        f'</nav>\n<main>\n{_HERE}',
        f'{_HERE}</main>\n<script>{script}</script>\n</body>\n</html>\n',
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f'sha256-{base64.b64encode(digest).decode()}'


def _read(path: pathlib.Path) -> tuple[str, str]:
    """Return the links and answers of a page; none if there is no file.

    :raises base.UsageError: a page that this release did not write
    """
    try:
        text = path.read_text(encoding='utf-8', errors='replace')
    except FileNotFoundError:
        return '', ''
    except OSError as exc:
        raise base.UsageError(
            f'--html-add: {path} cannot be read: {exc.strerror or exc}.'
        ) from exc
    head, between, end = _frame()
    links, _, answers = text.removeprefix(head).partition(between)
    if f'{head}{links}{between}{answers}' != text or not text.endswith(end):
        raise base.UsageError(
            f'--html-add: {path} is not a page that this release wrote; '
            f'--html writes a new one.'
        )
    return links, answers.removesuffix(end)
