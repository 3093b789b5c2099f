# SPDX-License-Identifier: Apache-2.0

"""Finds names in nova.conf that oslo.config never reads.

oslo.config ignores an option or a section that nobody registered. A misspelt
or misplaced option of ours would silently leave hosts open, so it is refused.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import difflib
import os
import re
import typing

from oslo_config import cfg

from nova_ext_sched import exception
from nova_ext_sched import messages

# How alike two names of sections are, from 0 to 1: a letter wrong in each
# word, or a word left out.
_ALIKE_SECTIONS = 0.75

# The same for options: a letter or two wrong.
_ALIKE_OPTIONS = 0.8

# The names of the options in each section of one source.
_Sections = Mapping[str, typing.Iterable[str]]


def check(conf: cfg.ConfigOpts, groups: Sequence[str]) -> None:
    """Refuse names in nova.conf that look like misspelt names of ours.

    A section is similar to ours if its name nearly is and nobody registered
    it, and ours is in no file.

    ===================================================  ===================
    in a file or the environment (``OS_<GROUP>__...``)   result
    ===================================================  ===================
    in our section, an option that nobody registered     refused
    in any other section, an option of ours that is not
    registered there                                     refused
    a section that differs from ours in punctuation      refused
    a similar section, with an option that is or nearly
    is one of ours                                       refused
    a similar section without such an option             :func:`warnings`
    any other section                                    another package's
    our section in another case                          oslo.config reads it
    ===================================================  ===================

    :param conf: has read nova.conf, with the options of ``groups`` registered
    :param groups: our sections
    :raises exception.InvalidValues: one or more such names; each names
        the nearest right one
    """
    sources = list(_sources(conf))
    findings = [
        finding
        for group in groups
        for sections in sources
        for section, keys in sections.items()
        for finding in _check_section(
            conf, groups, group, section, keys, _has(sources, group)
        )
    ]
    if findings:
        raise exception.InvalidValues(findings)


def warnings(conf: cfg.ConfigOpts, groups: Sequence[str]) -> Iterator[str]:
    """Yield a message for each similar section without an option of ours.

    It may be another package's, or ours with nothing in it.
    """
    sources = list(_sources(conf))
    for group in groups:
        if _has(sources, group):
            continue
        for section in {name: 0 for sections in sources for name in sections}:
            if _is_similar(conf, section, group):
                name = messages.clean(section)
                yield (
                    f'nova.conf has a section [{name}] and no section '
                    f'[{group}]. If [{name}] is meant for nova-ext-sched, '
                    f'correct its name. If another package reads it, add an '
                    f'empty header [{group}].'
                )


def _check_section(
    conf: cfg.ConfigOpts,
    groups: Sequence[str],
    group: str,
    section: str,
    keys: typing.Iterable[str],
    found: bool,
) -> Iterator[exception.InvalidValue]:
    known = sorted(conf[group])
    if section.lower() == group:
        for key in keys:
            if key in known:
                continue
            others = [other for other in groups if key in conf[other]]
            yield (
                _wrong_section(section, key, others[0])
                if others
                else _unknown_option(group, key, known)
            )
        return
    near = {key: _nearest(key, known, _ALIKE_OPTIONS) for key in keys}
    if _plain(section) == _plain(group):
        yield _misspelt_section(group, section)
    elif not found and _is_similar(conf, section, group):
        if any(near.values()):
            yield _misspelt_section(
                group, section, may_be_anothers=not set(near) & set(known)
            )
    elif section.lower() not in groups:
        for key in keys:
            name = _as_registered(key)
            if name in known and not _is_registered(conf, section, name):
                yield _wrong_section(section, key, group)


def _sources(conf: cfg.ConfigOpts) -> Iterator[_Sections]:
    # oslo.config offers the names of sections alone. Each namespace has the
    # files that one source parsed; a driver of [DEFAULT] config_source has a
    # namespace of its own.
    for source in [conf, *conf._sources]:
        namespace = getattr(source, '_namespace', None)
        if namespace is not None:
            yield from namespace._parsed
    environment: dict[str, list[str]] = {}
    for name in os.environ:
        if match := re.fullmatch(r'OS_([A-Z0-9_:-]+?)__(\w+)', name):
            group, key = match.groups()
            if group != 'DEFAULT':
                group = group.lower()
            environment.setdefault(group, []).append(key.lower())
    yield environment


def _has(sources: Sequence[_Sections], group: str) -> bool:
    return any(
        section.lower() == group
        for sections in sources
        for section in sections
    )


def _is_registered(conf: cfg.ConfigOpts, section: str, key: str) -> bool:
    if section == 'DEFAULT':
        return key in conf
    name = section.lower()
    # An option of [DEFAULT] may have the name of the section.
    options = conf[name] if name in conf else None
    return isinstance(options, Mapping) and key in options


def _is_similar(conf: cfg.ConfigOpts, section: str, group: str) -> bool:
    name, ours = _plain(section), _plain(group)
    # Ours with more words at the end are another package's.
    if section in conf or name == ours or name.startswith(f'{ours}_'):
        return False
    ratio = difflib.SequenceMatcher(None, name, ours).ratio()
    return ratio >= _ALIKE_SECTIONS


def _plain(section: str) -> str:
    return re.sub(r'[\W_]+', '_', section.lower()).strip('_')


def _as_registered(key: str) -> str:
    return key.lower().replace('-', '_')


def _nearest(
    key: str, known: Sequence[str], cutoff: float = 0.6
) -> str | None:
    near = difflib.get_close_matches(_as_registered(key), known, 1, cutoff)
    return near[0] if near else None


def _misspelt_section(
    group: str, section: str, may_be_anothers: bool = False
) -> exception.InvalidValue:
    name = messages.clean(section)
    way_out = (
        f' (if another package reads [{name}], add an empty header [{group}])'
    )
    return exception.InvalidValue(
        where='nova.conf',
        expected=f'the section [{group}]' + way_out * may_be_anothers,
        got=f'[{name}]',
    )


def _wrong_section(
    section: str, key: str, group: str
) -> exception.InvalidValue:
    return exception.InvalidValue(
        where=f'nova.conf: [{section}]',
        expected=f'{_as_registered(key)} in the section [{group}]',
        got=key,
    )


def _unknown_option(
    group: str, key: str, known: Sequence[str]
) -> exception.InvalidValue:
    near = _nearest(key, known)
    return exception.InvalidValue(
        where=f'nova.conf: [{group}]',
        expected=f'the option {near}'
        if near
        else f'one of the options {", ".join(known)}',
        got=key,
    )
