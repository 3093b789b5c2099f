# SPDX-License-Identifier: Apache-2.0

"""Other words for those of a cloud.

All is replaced that is not known: what nova, a policy or an option of the
cloud names, and nova's enumerated values, are kept.

======================  ===================================================
in a text               what becomes of it
======================  ===================================================
numbers, dates,         kept
operators
a known word            kept: of a key, a state, an enumerated value, a
                        standard trait, a resource class, an option
a prefix that is known  kept, and what follows it replaced (``CUSTOM_``,
                        ``filter_tenant_id``, prefixes of options)
a UUID, with dashes or  the same UUID everywhere, as it is written
without
an address (PCI, MAC,   an address of the same kind
IP)
any other word          six letters or more, none of them a vowel
======================  ===================================================

The words of a kind are numbered in their sorted order, so that who compares
two texts gets the same answer. Words that differ in case alone differ in case
alone. What a pattern or ``<in>`` looks for within words is a word of its own
there. Nothing is derived from the text: there is no key.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import functools
import ipaddress
import math
import re
import typing
import uuid

from nova.api.validation.extra_specs import validators
from nova.compute import task_states
from nova.compute import vm_states
import nova.conf
from nova.network import model as network_model
from nova.objects import fields
from nova.scheduler import host_manager
import os_resource_classes
import os_traits

from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import own_hosts
from nova_ext_sched.policy import preferred_aggregates
from nova_ext_sched.saved import listed

CONF = nova.conf.CONF

#: Columns and keys of JSON whose values are nova's own, or numbers in hex.
KEPT = frozenset(
    'action binary destination_type dev_type event hypervisor_type locked_by '
    'migration_type product_id result schema source_type status task_state '
    'topic type vendor_id vm_state'.split()
)
#: Options whose values name keys, prefixes and classes. Those of all others
#: are replaced as every text is.
OPTIONS = {
    'blazar:physical:host': 'blazar_az_prefix project_id_key',
    'compute': 'packing_host_numa_cells_allocation_strategy',
    'filter_scheduler': 'aggregate_image_properties_isolation_namespace '
    'aggregate_image_properties_isolation_separator available_filters '
    'enabled_filters image_properties_default_architecture weight_classes',
    'metrics': 'weight_setting',
    'nova_ext_sched': 'failover_key failover_takes failure_domain_key '
    'force_metadata_check_ignored_keys '
    'isolation_trait_sources left_out_property licence_os_types '
    'member_project_keys '
    'member_sources placement_req_default_forbidden_member_prefix '
    'placement_req_required_member_prefix preference_key request_filters '
    'restart_priority_key restart_priority_sources '
    'special_hosts_key weighers',
}
# Of these, with what texts begin.
_OF_PREFIXES = 'force_metadata_check_ignored_keys member_project_keys'.split()
_PREFIXES = (
    isolation.RECORD,
    own_hosts.TENANTS,
    *('CUSTOM_', 'image_', 'instance_type_', 'num_proj_', 'num_vm_'),
    *('num_os_type_', 'num_task_'),
)
# What no list of nova or ours has: sentinels, operators, keys of metadata and
# of requests, and how faults begin that a command knows.
_WORDS = """
    true false yes no on off none null any all all-in in or and not s default
    nova internal cell0 INSTANCE MIGRATION admin owner
    instance_type force_metadata_check blazar preemptible owner
    affinity anti-affinity soft-affinity soft-anti-affinity
    nova_object.name nova_object.version nova_object.namespace
    nova_object.changes nova_object.data
    group same_host different_host query build_near_host_ip cidr target_cell
    different_failure_domain reservation max_server_per_host
    max_server_per_failure_domain _nova_check_type
    trait resources group_policy required forbidden preferred member_of
    in_tree same_subtree request_groups limits_ratio io_workload
    arch model vendor topology features cores sockets threads cells
    generation parent root inventories traits aggregates allocations servers
    total reserved min_unit max_unit step_size allocation_ratio
    project user type base_image_ref public private shared community
    highest high medium low lowest disabled
    AUTO nova-ext-sched
    No valid host was found Exceeded maximum number of retries
    is not mapped to any cell
"""

_WORD = re.compile(r"""[^\s,;|=<>!()\[\]{}"'*?:&$~]+""")
_NUMBER = re.compile(r'[-+.^%\d]+([KMGT]i?)?B?', re.IGNORECASE)
_ADDRESS = re.compile(
    r"""
    (?P<time>(?<!\d)\d{4}-\d\d-\d\d([T\ ]\d\d:\d\d(:\d\d(\.\d+)?)?)?
     (Z|[+-]\d\d:\d\d)?(?!\w))
    |(?P<uuid>(?<![0-9a-z])[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}
     (?![0-9a-z]))
    |(?P<pci>(?<![0-9a-z])[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]
     (?![0-9a-z]))
    |(?P<mac>(?<![0-9a-z:])([0-9a-f]{2}:){5}[0-9a-f]{2}(?![0-9a-z:]))
    |(?P<ip>(?<![\w.])(\d{1,3}(\.\d{1,3}){3}|[0-9a-f]*(:[0-9a-f]*){2,7})
     (?![\w.]))
    """,
    re.IGNORECASE | re.VERBOSE,
)
# What is looked for within words.
_PATTERN = re.compile(r'([^\s,;|=<>!"\'*:]+)\*|<(?:all-)?in>\s+([^<>]+)')

# Letters of words: they spell no word, and no number in hex.
_LETTERS = 'bcdfghjklmnpqrstvwxz'
_FIRST = 'x'
# They belong to the text around a word.
_EDGES = '._-@/'


class Words:
    """The words of one cloud, and those in their place.

    :meth:`note` takes all texts, :meth:`settle` chooses, then
    :meth:`replace` returns a text with other words.
    """

    def __init__(self) -> None:
        self._known = {one.lower() for one in _find_known()}
        self._prefixes = [*_PREFIXES]
        self._parts: list[str] = []
        self._texts: set[str] = set()
        # The forms of each word by kind and what the database compares.
        self._forms: dict[str, dict[str, set[str]]] = {}
        self._chosen: dict[tuple[str, str], str] = {}
        self.replace = functools.lru_cache(100_000)(self._replace)

    def keep(self, text: str) -> str:
        """Keep the words of a text, wherever they are; return it."""
        self._known.update(one.lower() for one in (text, *split(text)))
        return text

    def note(self, text: str) -> str:
        """Know that a text is there; return it."""
        self._texts.add(text)
        return text

    def settle(self) -> None:
        """Choose a word for each that was noted."""
        self._keep_options()
        words = {
            self._strip(one) for text in self._texts for one in split(text)
        }
        present = self._known.intersection(map(str.lower, words))
        parts: set[str] = set()
        for text in self._texts:
            for begin, within in _PATTERN.findall(text):
                for part in map(self._strip, split(f'{begin} {within}')):
                    parts.add(part)
                    # What finds a word that is kept is kept.
                    is_found = str.__contains__ if within else str.startswith
                    if any(is_found(one, part.lower()) for one in present):
                        self._known.add(part.lower())
        self._parts = sorted(parts - {''}, key=lambda one: (-len(one), one))
        for text in self._texts:
            self._replace(text)
        self._texts.clear()
        for kind, keys in self._forms.items():
            for rank, key in enumerate(sorted(keys), 1):
                for number, form in enumerate(sorted(keys[key])):
                    self._chosen[kind, form] = _MAKE[kind](
                        rank, form, number, len(keys)
                    )

    def _strip(self, word: str) -> str:
        known = [one for one in self._prefixes if word.startswith(one)]
        return word.removeprefix(known[0]) if known else word

    def _replace(self, text: str) -> str:
        if text.lower() in self._known:
            return text
        done, at = [], 0
        for match in _ADDRESS.finditer(text):
            kind = str(match.lastgroup)
            if kind == 'ip' and not _is_ip(match[0]):
                continue
            done += [
                _WORD.sub(self._replace_match, text[at : match.start()]),
                match[0] if kind == 'time' else self._choose(kind, match[0]),
            ]
            at = match.end()
        return ''.join([*done, _WORD.sub(self._replace_match, text[at:])])

    def _replace_match(self, match: re.Match[str]) -> str:
        text = match[0]
        if text.lower() in self._known:
            return text
        for prefix in self._prefixes:
            if text.startswith(prefix):
                return prefix + self._replace(text.removeprefix(prefix))
        word = text.strip(_EDGES)
        before, after = text.split(word, 1) if word else (text, '')
        return before + self._replace_word(word) + after

    def _replace_word(self, word: str) -> str:
        if not word or _NUMBER.fullmatch(word) or word.lower() in self._known:
            return word
        for part in self._parts:
            if part in word and part != word:
                before, after = word.split(part, 1)
                return ''.join(map(self._replace_word, (before, part, after)))
        return self._choose('word', word)

    def _choose(self, kind: str, form: str) -> str:
        """Return the word in place of one; before they are chosen, note it."""
        if self._chosen:
            return self._chosen[kind, form]
        key = change.fold(form) if kind == 'word' else form.lower()
        if kind == 'uuid':
            key = key.replace('-', '')
        keys = self._forms.setdefault(kind, {})
        keys.setdefault(key, set()).add(form)
        return form

    def _keep_options(self) -> None:
        """Keep the keys, prefixes and classes that options name."""
        for group, names in OPTIONS.items():
            for name in names.split() if group in CONF else ():
                value = CONF[group].get(name)
                for one in value if isinstance(value, list) else [value]:
                    self.keep(str(one))
                    if name in _OF_PREFIXES or name.endswith('prefix'):
                        # The last word of what texts begin with.
                        self._prefixes += split(str(one))[-1:]
        key = CONF.nova_ext_sched.preference_key
        self.keep(f'{key}{preferred_aggregates.FLAVORS}')
        self.keep(f'{key}{preferred_aggregates.PROJECTS}')
        self._prefixes.sort(key=len, reverse=True)


def split(text: str) -> list[str]:
    """Return the words of a text."""
    return [one.strip(_EDGES) for one in _WORD.findall(text)]


def _is_ip(text: str) -> bool:
    try:
        return ipaddress.ip_address(text) is not None
    except ValueError:
        return False


def _make_word(rank: int, form: str, number: int, total: int) -> str:
    letters, width = [], max(5, math.ceil(math.log(total + 1, len(_LETTERS))))
    for _ in range(width):
        rank, letter = divmod(rank, len(_LETTERS))
        letters.append(_LETTERS[letter])
    text = _FIRST + ''.join(reversed(letters))
    if not number and form in (form.lower(), form.upper()):
        return text if form == form.lower() else text.upper()
    # Others of the same letters: the bits of the number are capitals.
    number += 1
    marks = text[1:] * (1 + number // 2 ** (width - 1))
    first = text[0].upper() if form[:1].isupper() else text[0]
    return first + ''.join(
        one.upper() if number >> place & 1 else one
        for place, one in enumerate(marks)
    )


def _make_uuid(rank: int, form: str, *_: int) -> str:
    made = str(uuid.UUID(int=rank << 64))
    if int(form.replace('-', ''), 16) == 0:
        # That of cell0 is nova's.
        made = str(uuid.UUID(int=0))
    made = made if '-' in form else made.replace('-', '')
    return made.upper() if form != form.lower() else made


def _make_ip(rank: int, form: str, *_: typing.Any) -> str:
    if ':' in form:
        return str(ipaddress.IPv6Address((0xFD << 120) + rank))
    return str(ipaddress.IPv4Address((10 << 24) + rank))


_MAKE: Mapping[str, Callable[..., str]] = {
    'word': _make_word,
    'uuid': _make_uuid,
    'pci': lambda rank, *_: (
        f'{rank >> 16:04x}:{rank >> 8 & 255:02x}:{rank >> 3 & 31:02x}.'
        f'{rank & 7}'
    ),
    'mac': lambda rank, *_: 'fe:' + rank.to_bytes(5).hex(':'),
    'ip': _make_ip,
}


def _find_known() -> Iterator[str]:
    """Yield the words that nova, we and the form of the file name."""
    for text in (
        _WORDS,
        *KEPT,
        *(
            value
            for module in (vm_states, task_states, network_model)
            for name, value in vars(module).items()
            if isinstance(value, str) and name.isupper()
        ),
        *(
            text
            for names in (
                *(listed.API, listed.CELL),
                *(listed.OBJECTS, listed.OPTIONS),
            )
            for item in names.items()
            for text in item
        ),
        *_find_keys(listed.JSON),
        *_find_keys(listed.IMAGE),
        *_find_keys(listed.VOLUME),
        *_find_keys(listed.PORT),
        *(
            str(value)
            for kind in vars(fields).values()
            if isinstance(kind, type) and issubclass(kind, fields.Enum)
            for value in getattr(kind, 'ALL', ())
        ),
        *(
            str(text)
            for name, spec in validators.VALIDATORS.items()
            # What is in braces is another's.
            for text in (
                re.sub(r'{.*?}', ' ', name),
                *(spec.value.get('enum') or ()),
            )
        ),
        *vars(host_manager.HostState('', '', None)),
    ):
        yield text
        yield from split(text)
    yield from os_traits.get_traits()
    yield from os_resource_classes.STANDARDS


def _find_keys(form: typing.Any) -> Iterator[str]:
    if isinstance(form, list):
        yield from _find_keys(form[0])
    elif isinstance(form, Mapping):
        for key, part in form.items():
            yield key
            yield from _find_keys(part)
