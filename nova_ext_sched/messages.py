# SPDX-License-Identifier: Apache-2.0

"""Cleans and quotes people's texts for messages, logs and errors."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import difflib
import functools
import re
import string
import typing

# The password of a URL, as of a database or of RabbitMQ.
_URL_PASSWORD = re.compile(r'(://[^:/@\s]*):[^@\s]*@')

# A name, piece by piece.
_PIECES = re.compile('[0-9]+|[^0-9]+')

# The last number of a host's name, before its domain.
_NUMBERED = re.compile(r'([^.]*?)([0-9]+)([^0-9.]*(?:\..*)?)')

# Where oslo.config found a value.
_LOCATION = re.compile(r"LocationInfo\(location=<[^>]*>, detail='([^']*)'\)")

# What oslo.messaging writes behind an error of another process.
_REMOTE = re.compile(r"(?:\['?|u')?Traceback \(most recent call last\)")

# So many names are a choice; how much one is like another that is meant.
_FEW = 3
_LIKE = 0.4

# What is read of an exception: more than is shown, as a password may follow.
_LONGEST_LINE = 2000


def clean(text: object, longest: int = 255) -> str:
    """Return a text that a user or an operator wrote, safe for one line.

    A name, a metadata value or a scheduler hint may have any length and any
    characters. A line break would forge a line of the log. A character above
    U+FFFF has four bytes in UTF-8, and nova's tables in MySQL take three: a
    fault with an emoji cannot be stored, and its server stays in BUILD.

    ===============================  =======================================
    text                             result
    ===============================  =======================================
    printable, up to U+FFFF, short   as it is
    with other characters            as a Python literal in ASCII
    longer than ``longest``          the beginning as a literal, then ``...``
    ===============================  =======================================

    :param text: what somebody wrote, or what ``str`` gives of it
    :param longest: number of characters shown; nova's metadata keys have no
        more than 255
    """
    text = str(text)
    if is_clean(text, longest):
        return text
    return ascii(text[:longest]) + ('...' if len(text) > longest else '')


def is_clean(text: str, longest: int = 255) -> bool:
    """Return whether :func:`clean` leaves a text as it is."""
    return len(text) <= longest and _is_safe(text)


def quoted(text: object) -> str:
    """Return a value that somebody wrote, in quotation marks, for one line."""
    text = str(text)
    shown = clean(text)
    # What is not as it was is a literal, which has quotation marks.
    return f"'{text}'" if shown == text else shown


def literal(value: object, longest: int = 255) -> str:
    """Return a value of any type as a Python literal for one line.

    It is in ASCII where :func:`clean` would not leave it as it is.
    """
    # What is not shown need not be looked at: it may be megabytes.
    cut = value[: longest + 1] if isinstance(value, str) else value
    text = repr(cut)
    if not _is_safe(text[: longest + 1]):
        text = ascii(cut)
    return text[:longest] + ('...' if len(text) > longest else '')


def _is_safe(text: str) -> bool:
    """Return whether logs and nova's tables take every character."""
    return text.isprintable() and max(text, default='') <= '\uffff'


def say_error(exc: BaseException) -> str:
    """Return an exception as one line: its type, and the first line it says.

    The further lines of a database's error are its statement. There is no
    secret in it.
    """
    # To look for secrets in megabytes would take hours.
    line = str(exc)[:_LONGEST_LINE].strip().partition('\n')[0]
    return f'{type(exc).__name__}: {clean(without_secrets(line), 1000)}'


def without_traceback(text: str) -> str:
    """Return a service's recorded text, without a traceback."""
    found = _REMOTE.search(text)
    return text[: found.start()].rstrip() if found else text


def without_secrets(text: str) -> str:
    """Return a text without the passwords in it.

    Errors of database drivers and HTTP clients may carry URLs of nova.conf.
    """
    # Not before: the commands are to be in charge of signals at once.
    from oslo_utils import strutils

    return strutils.mask_password(_URL_PASSWORD.sub(r'\1:***@', text))


def change_texts(
    value: typing.Any,
    change: Callable[[str], str],
    kept: Collection[str] = (),
) -> typing.Any:
    """Return a value of JSON with each of its texts changed.

    :param kept: keys whose values stay as they are, as all keys do
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [change_texts(one, change, kept) for one in value]
    if isinstance(value, Mapping):
        return {
            key: one if key in kept else change_texts(one, change, kept)
            for key, one in value.items()
        }
    return value


def count(noun: str, number: int) -> str:
    """Return a number of things: ``1 host``, ``2 hosts``."""
    return f'{number} {noun}' + ('' if number == 1 else 's')


def agree(number: int, singular: str, plural: str) -> str:
    """Return the form of a verb that agrees with a number of things."""
    return singular if number == 1 else plural


def part(
    number: int, whole: int, noun: str, singular: str, plural: str
) -> str:
    """Return how many of all things do something.

    ``part(1, 3, 'host', 'is down', 'are down')`` is ``1 of 3 hosts is down``.

    :param number: of those that do it
    :param whole: of all
    :param noun: their kind, in the singular
    :param singular: verb and object if one of them does it
    :param plural: the same if several do
    """
    verb = singular if whole == 1 else agree(number, singular, plural)
    return f'{number} of {count(noun, whole)} {verb}'


def first_few(
    names: Sequence[typing.Any],
    most: int = 10,
    show: Callable[[typing.Any], str] = clean,
) -> str:
    """Return the first names for a message, and how many more there are.

    :param most: number of names shown, or one more where that is all: enough
        to recognize, short enough to read
    :param show: returns the text for one name, and must clean it
    """
    # One alone is shown: to count it is as long.
    most += len(names) == most + 1
    more = len(names) - most
    shown = ', '.join(show(name) for name in names[:most])
    return shown + (f' and {more} more' if more > 0 else '')


def say_time(seconds: float) -> str:
    """Return a time in the unit that people would use."""
    if seconds < 90:
        return count('second', round(seconds))
    minutes = round(seconds / 60)
    if minutes < 90:
        return count('minute', minutes)
    return f'{count("hour", minutes // 60)} {minutes % 60} min'


# A plan sorts the same hosts for each of its servers.
@functools.lru_cache(maxsize=2**14)
def in_order(name: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts names as people do: host2 before host10."""
    return tuple(
        (int(piece), '') if piece[0] in string.digits else (0, piece)
        for piece in _PIECES.findall(name)
    )


def find_domain(hosts: Iterable[str]) -> str:
    """Return the domain that names of hosts share, with its first dot.

    ``.prod.example.net`` of ``cmp-0101.az1.prod.example.net`` and
    ``cmp-0207.az2.prod.example.net``; nothing where one of them has another,
    or where there is one host alone.
    """
    parts = [host.split('.')[:0:-1] for host in {*hosts}]
    shared: list[str] = []
    for labels in zip(*parts, strict=False) if len(parts) > 1 else ():
        if len({*labels}) > 1:
            break
        shared.insert(0, labels[0])
    return ''.join(f'.{label}' for label in shared)


def in_ranges(names: Iterable[str], most: int | None = None) -> str:
    """Return names of hosts in one phrase, numbers that follow as a range.

    ``a2``, ``b`` and ``a3`` are ``a[2-3], b``; what a range has in front of
    its numbers and behind them is equal, and so are leading zeros.

    :param most: names and ranges that are shown; of the others their number
    """
    runs: list[tuple[tuple[str, ...], list[str]]] = []
    last: dict[tuple[str, ...], list[str]] = {}
    for name in sorted(dict.fromkeys(map(clean, names)), key=in_order):
        parts = _NUMBERED.fullmatch(name)
        number = parts[2] if parts else ''
        key: tuple[str, ...] = (parts[1], parts[3]) if parts else (name,)
        run = last.get(key)
        if run and number == str(int(run[-1]) + 1).zfill(len(run[-1])):
            run.append(number)
        else:
            last[key] = [number]
            runs.append((key, last[key]))
    if most is None or len(runs) == most + 1:
        # One alone is shown, as in first_few.
        most = len(runs)
    found: dict[tuple[str, ...], list[list[str]]] = {}
    for key, run in runs[:most]:
        found.setdefault(key, []).append(run)
    more = sum(len(run) for _, run in runs[most:])
    said = ', '.join(_say_runs(key, runs) for key, runs in found.items())
    return said + (f' and {more} more' if more else '')


def _say_runs(key: Sequence[str], runs: Sequence[Sequence[str]]) -> str:
    said = ','.join(
        run[0] if len(run) == 1 else f'{run[0]}-{run[-1]}' for run in runs
    )
    if len(key) == 1:
        return key[0]
    before, after = key
    is_one = len(runs) == 1 == len(runs[0])
    return f'{before}{said if is_one else f"[{said}]"}{after}'


def nearest(name: str, names: Iterable[str], most: int = 10) -> str:
    """List the names most similar to a name, for a message.

    Those that begin with it come before others. Of a few that are shown, none
    is that is not like it at all.

    :param name: what somebody wrote in place of one of them
    :param names: there may be none
    :param most: how many are shown; up to three are joined by "or", without a
        count of the others
    """
    matcher = difflib.SequenceMatcher(b=name[:255])

    def order(one: str) -> tuple[bool, float, str]:
        matcher.set_seq1(one)
        begins = bool(name) and one.lower().startswith(name.lower())
        return not begins, -matcher.ratio(), one

    ranked = sorted({*names}, key=order)
    if most > _FEW:
        return first_few(ranked, most) or 'none'
    like = [one for one in ranked[:most] if order(one) < (True, -_LIKE, '')]
    *others, last = [clean(one) for one in like] or ['']
    return f'{", ".join(others)} or {last}' if others else last


def say_option(exc: Exception) -> str:
    """Return oslo.config's error about nova.conf, with the file's name alone.

    It shows a Python object in place of the file.
    """
    return _LOCATION.sub(r'\1', str(exc))


def install_extra(extra: str) -> str:
    """Return how to install an extra of this package, which is on no index."""
    return (
        f"in a clone of nova-ext-sched, pip install '.[{extra}]'; from a "
        f"wheel, pip install './nova_ext_sched-VERSION-py3-none-any.whl"
        f"[{extra}]'"
    )
