# SPDX-License-Identifier: Apache-2.0

"""Finds lines in nova.conf that oslo.config never reads.

oslo.config ignores an option or a section that nobody registered. A misspelt
or misplaced option of ours would silently leave hosts open, so it is refused.
Of an option that is written twice it reads the last line.
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

# Lists of nova's that say whether a policy is on. They are one line each;
# available_filters has a line for each entry.
_OF_NOVA = {'filter_scheduler': ('enabled_filters', 'weight_classes')}

# Options of [DEFAULT] that nova last read in release 23, each as what they are
# today; the names of the others are the same.
_MOVED = {
    'scheduler_available_filters': 'available_filters',
    'scheduler_default_filters': 'enabled_filters',
    'scheduler_host_subset_size': 'host_subset_size',
    'scheduler_tracks_instance_changes': 'track_instance_changes',
    'scheduler_weight_classes': 'weight_classes',
    **{
        name: name
        for name in (
            'aggregate_image_properties_isolation_namespace',
            'aggregate_image_properties_isolation_separator',
            'disk_weight_multiplier',
            'io_ops_weight_multiplier',
            'isolated_hosts',
            'isolated_images',
            'max_instances_per_host',
            'max_io_ops_per_host',
            'ram_weight_multiplier',
            'restrict_isolated_hosts_to_isolated_images',
        )
    },
}

# Whose options nobody but nova-scheduler's code registers.
_OF_THE_SCHEDULER = ('filter_scheduler', 'metrics', 'scheduler')

# A section of one source, with its options and their values: as many as the
# source has lines of the name.
_Section = tuple[str, Mapping[str, Sequence[str]]]


def check(conf: cfg.ConfigOpts, groups: Sequence[str]) -> None:
    """Refuse names in nova.conf that look like misspelt names of ours.

    ===================================================  ===================
    in a file or the environment (``OS_<GROUP>__...``)   result
    ===================================================  ===================
    in our section, an option that nobody registered     refused
    in any other section, an option of ours that is not
    registered there                                     refused
    ours is in no file, and a section has nearly its
    name and is registered by nobody                     refused
    any other section                                    another package's
    our section in another case                          oslo.config reads it
    ===================================================  ===================

    :param conf: has read nova.conf, with the options of ``groups`` and of all
        other packages registered
    :param groups: our sections
    :raises exception.InvalidValues: one or more such names; each names
        the nearest right one
    """
    sections = [*_list_sections(conf)]
    present = {section.lower() for section, _ in sections}
    findings = [
        finding
        for section, keys in sections
        for finding in _check_section(conf, groups, present, section, keys)
    ]
    if findings:
        raise exception.InvalidValues(findings)


def _check_section(
    conf: cfg.ConfigOpts,
    groups: Sequence[str],
    present: typing.Container[str],
    section: str,
    keys: typing.Iterable[str],
) -> Iterator[exception.InvalidValue]:
    name = section.lower()
    missing = [
        group
        for group in groups
        # Ours with more words at the end are another package's.
        if group not in present and not name.startswith(f'{group}_')
    ]
    near = difflib.get_close_matches(name, missing, 1, _ALIKE_SECTIONS)
    if near and section not in conf:
        theirs = messages.clean(section)
        yield exception.InvalidValue(
            where='nova.conf',
            expected=f'the section [{near[0]}] (if another package reads '
            f'[{theirs}], add an empty header [{near[0]}])',
            got=f'[{theirs}]',
        )
        return
    home = {option: group for group in groups for option in conf[group]}
    for key in keys:
        # oslo.config reads options as they are registered.
        spelt = key.lower().replace('-', '_')
        option = key if name in groups else spelt
        if option in home:
            if not _is_registered(conf, section, option):
                yield exception.InvalidValue(
                    where=f'nova.conf: [{section}]',
                    expected=f'{spelt} in the section [{home[option]}]',
                    got=key,
                )
        elif name in groups:
            known = sorted(conf[name])
            alike = difflib.get_close_matches(spelt, known, 1)
            yield exception.InvalidValue(
                where=f'nova.conf: [{name}]',
                expected=f'the option {alike[0]}'
                if alike
                else f'one of the options {", ".join(known)}',
                got=key,
            )


def find_repeated(
    conf: cfg.ConfigOpts, groups: Sequence[str]
) -> Iterator[str]:
    """Yield the options that one file has more than once.

    :param conf: see :func:`check`; ``groups`` too
    :returns: a message for each, with what to do about it
    """
    for section, options in _list_sections(conf):
        name = section.lower()
        if name not in groups and name not in _OF_NOVA:
            continue
        for key, values in options.items():
            if len(values) > 1 and key in _OF_NOVA.get(name, (key,)):
                yield (
                    f'[{name}] {messages.clean(key)} is written '
                    f'{len(values)} times in one file of nova.conf. Only '
                    f'the last line counts: '
                    f'{messages.quoted(values[-1])}. Keep one line.'
                )


def find_moved(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield the options of [DEFAULT] that nova-scheduler reads no more.

    :param conf: see :func:`check`
    :returns: a message for each, with what to do about it
    """
    keys = {
        key.lower().replace('-', '_')
        for section, keys in _list_sections(conf)
        if section == 'DEFAULT'
        for key in keys
    }
    for key in sorted(keys & _MOVED.keys()):
        # Another package may have registered it there.
        if key not in conf:
            yield (
                f'nova has ignored [DEFAULT] {key} since release 24 (Xena). '
                f'Use [filter_scheduler] {_MOVED[key]} instead.'
            )


def find_unknown(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield the options of nova-scheduler's sections that nova does not have.

    :param conf: see :func:`check`
    :returns: a message for each, with what to do about it
    """
    before = {
        (old.group or name, (old.name or opt['opt'].name).replace('-', '_'))
        for name, group in conf._groups.items()
        for opt in group._opts.values()
        for old in opt['opt'].deprecated_opts
    }
    for section, keys in _list_sections(conf):
        name = section.lower()
        if name not in _OF_THE_SCHEDULER or name not in conf:
            continue
        for key in keys:
            spelt = key.lower().replace('-', '_')
            if spelt in conf[name] or (name, spelt) in before:
                continue
            near = difflib.get_close_matches(spelt, [*conf[name]], 1)
            meant = f' Is {near[0]} meant?' if near else ''
            yield (
                f'[{name}] {messages.clean(key)} is no option of this '
                f'nova, which ignores it.{meant} Correct or remove the '
                f'line.'
            )


def _list_sections(conf: cfg.ConfigOpts) -> Iterator[_Section]:
    # oslo.config offers the names of sections alone. Each namespace has the
    # files that one source parsed; a driver of [DEFAULT] config_source has a
    # namespace of its own.
    for source in [conf, *conf._sources]:
        namespace = getattr(source, '_namespace', None)
        for parsed in namespace._parsed if namespace is not None else ():
            yield from parsed.items()
    environment: dict[str, dict[str, list[str]]] = {}
    for name, value in os.environ.items():
        if match := re.fullmatch(r'OS_([A-Z0-9_:-]+?)__(\w+)', name):
            group, key = match.groups()
            if group != 'DEFAULT':
                group = group.lower()
            environment.setdefault(group, {})[key.lower()] = [value]
    yield from environment.items()


def _is_registered(conf: cfg.ConfigOpts, section: str, key: str) -> bool:
    if section == 'DEFAULT':
        return key in conf
    name = section.lower()
    # An option of [DEFAULT] may have the name of the section.
    options = conf[name] if name in conf else None
    return isinstance(options, Mapping) and key in options
