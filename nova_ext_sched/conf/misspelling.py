# SPDX-License-Identifier: Apache-2.0

"""Finds names in nova.conf that oslo.config never reads.

oslo.config ignores an option or a section that nobody registered. A misspelt
option of ours would silently leave hosts open, so it is refused.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import difflib
import os
import re
import typing

from oslo_config import cfg

from nova_ext_sched import exception
from nova_ext_sched import messages

# Where an option of ours is written by mistake.
_NEIGHBOURS = ('DEFAULT', 'scheduler', 'filter_scheduler')

# How alike two names of sections are, from 0 to 1: a letter wrong in each
# word, or a word left out.
_ALIKE = 0.75

_Sections = typing.Mapping[str, typing.Iterable[str]]


def check(conf: cfg.ConfigOpts, groups: Sequence[str]) -> None:
    """Refuse names in nova.conf that look like misspelt names of ours.

    ==================================================  ====================
    in a file or the environment (``OS_<GROUP>__...``)  result
    ==================================================  ====================
    an option of the section that nobody registered,
    another of ``groups`` has it or not                 refused
    an option of the section, in one beside it that
    has no such option                                  refused
    a section that differs in punctuation only          refused
    a section that is alike, ours is missing            refused
    a section that is alike, ours is there              taken for another's
    a section that is registered, or is ours with more
    words after ``_``                                   taken for another's
    the section in another case                         read by oslo.config
    ==================================================  ====================

    :param conf: has read nova.conf, with the options of ``groups`` registered
    :raises exception.InvalidValues: one or more such names; each fault names
        the nearest right one
    """
    sources = list(_sources(conf))
    faults = [
        fault
        for group in groups
        for fault in _check_group(conf, group, groups, sources)
    ]
    if faults:
        raise exception.InvalidValues(faults)


def _check_group(
    conf: cfg.ConfigOpts,
    group: str,
    groups: Sequence[str],
    sources: Sequence[_Sections],
) -> list[exception.InvalidValue]:
    known = sorted(conf[group])
    found = any(
        name.lower() == group for sections in sources for name in sections
    )
    faults: list[exception.InvalidValue] = []
    for sections in sources:
        for section, keys in sections.items():
            if section.lower() == group:
                for key in keys:
                    if key in known:
                        continue
                    others = [name for name in groups if key in conf[name]]
                    faults.append(
                        _wrong_section(section, key, others[0])
                        if others
                        else _unknown_option(group, key, known)
                    )
            elif section in _NEIGHBOURS:
                faults += [
                    _wrong_section(section, key, group)
                    for key in keys
                    if key in known and key not in _registered(conf, section)
                ]
            elif section not in conf and _is_like(section, group, found):
                faults.append(
                    exception.InvalidValue(
                        where='nova.conf',
                        expected=f'the section [{group}]',
                        got=f'[{messages.clean(section)}]',
                    )
                )
    return faults


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


def _registered(
    conf: cfg.ConfigOpts, section: str
) -> typing.Container[typing.Any]:
    if section == 'DEFAULT':
        return conf
    return conf[section] if section in conf else ()


def _is_like(section: str, group: str, found: bool) -> bool:
    name, group = (
        re.sub(r'[\W_]+', '_', text.lower()).strip('_')
        for text in (section, group)
    )
    if name == group:
        return True
    if found or name.startswith(f'{group}_'):
        return False
    ratio = difflib.SequenceMatcher(None, name, group).ratio()
    return ratio >= _ALIKE


def _wrong_section(
    section: str, key: str, group: str
) -> exception.InvalidValue:
    return exception.InvalidValue(
        where=f'nova.conf: [{section}]',
        expected=f'{key} in the section [{group}]',
        got=key,
    )


def _unknown_option(
    group: str, key: str, known: Sequence[str]
) -> exception.InvalidValue:
    near = difflib.get_close_matches(key.lower().replace('-', '_'), known, n=1)
    return exception.InvalidValue(
        where=f'nova.conf: [{group}]',
        expected=f'the option {near[0]}'
        if near
        else f'one of the options {", ".join(known)}',
        got=key,
    )
