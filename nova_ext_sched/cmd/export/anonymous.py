# SPDX-License-Identifier: Apache-2.0

"""The document without the names of the cloud.

Each name and ID has one word, the same everywhere, so that what refers to what
stays as it is. Numbers, and words that nova or a policy gives a meaning, stay.

================================  ==========================================
text                              becomes
================================  ==========================================
a name of the document            its word: ``host-1``, ``project-2``
CUSTOM_ trait or resource class   CUSTOM_TRAIT_1, CUSTOM_CLASS_1
key that nova or nova.conf names  stays
key after a reserved prefix       the prefix and a word
any other key                     a word
value of a key that nova reads    stays, but for names of the document
value of an option                its word, if it is a name of the document
any other value                   the words of an expression, each replaced;
                                  as it is where the key is also compared by
                                  order or by parts of words
================================  ==========================================
"""

import collections
from collections.abc import Iterable
import re
import typing

from nova.objects import image_meta
from oslo_utils import uuidutils

from nova_ext_sched.cmd.export import unsaid
from nova_ext_sched.conf import failure_domain

Document = dict[str, typing.Any]

# Parts whose things have names.
_PARTS = (
    'hosts aggregates flavors images server_groups servers projects'.split()
)
# Fields that name a thing, where their names do not say which.
_KINDS = {'name': 'host', 'expect': 'host', 'boot': 'server'}
# What keys may have in them, and what its words begin with.
_CUSTOM_WORDS = {'trait': 'CUSTOM_TRAIT_', 'resources': 'CUSTOM_CLASS_'}
_CUSTOM = re.compile(r'(trait|resources)(\w*:)(CUSTOM_\w+)')
_NUMBER = re.compile(r'[-+]?\d{1,12}(\.\d+)?')
_WORD = re.compile(r'[^\s,]+')
_NAME = re.compile(r'[\w.:-]+')
# What an expression is made of, and what has a meaning of its own.
_OPERATORS = frozenset(
    '= == != >= <= s== s!= s< s<= s> s>= <in> <all-in> <or> ~ * !'.split()
)
_BY_PARTS = re.compile(r'(^|\s)(s[<>]=?|<in>|<all-in>)(\s|$)')
_MEANT = frozenset(
    'true false yes no on off required forbidden nova default none'.split()
)
# Scopes of extra specs that nova reads.
_SCOPES = frozenset(
    'accel capabilities hw hw_rng hw_video os pci_passthrough powervm quota '
    'resources trait vmware'.split()
)
_SCOPE = 'aggregate_instance_extra_specs:'
_TENANT = 'filter_tenant_id'
# Keys whose values name what the cloud has.
_NAMING = (
    _TENANT,
    *'instance_type blazar:owner same_host different_host'.split(),
)
_KNOWN = frozenset(
    'group_policy force_metadata_check cpu_allocation_ratio '
    'ram_allocation_ratio disk_allocation_ratio max_instances_per_host '
    'max_io_ops_per_host query reservation different_failure_domain '
    'max_server_per_failure_domain different_cell target_cell'.split()
).union(_NAMING, image_meta.ImageMetaProps.fields)
# What options list by these words, whatever has such a name.
_SOURCES = ('flavor', 'image', 'hint')
# Hints that have addresses.
_ADDRESSES = ('build_near_host_ip', 'cidr')


def rename(
    described: Document, missing: unsaid.Unsaid
) -> tuple[Document, dict[str, str]]:
    """Return a document without the names of the cloud.

    :param missing: gets what may make its results differ
    :returns: the document, and the word of each name
    """
    renamer = _Renamer(described, missing)
    return renamer.rename(), renamer.words


class _Renamer:
    def __init__(self, described: Document, missing: unsaid.Unsaid) -> None:
        self._document = described
        self._unsaid = missing
        self.words: dict[str, str] = {}
        self._counts: collections.Counter[str] = collections.Counter()
        ours = described.get('nova_conf', {}).get('nova_ext_sched', {})
        self._prefixes = tuple(
            prefix
            for name, values in ours.items()
            if name.endswith('_prefix')
            for prefix in filter(None, _listed(values))
        )
        # Keys that an option names.
        self._named = {failure_domain.OPTS[0].default} | {
            str(value) for values in ours.values() for value in _listed(values)
        }
        self._by_parts = {
            key
            for part in ('aggregates', 'flavors', 'images')
            for one in described.get(part, {}).values()
            for items in one.values()
            if isinstance(items, dict)
            for key, value in items.items()
            if _BY_PARTS.search(value)
        }

    def rename(self) -> Document:
        for part in _PARTS:
            for one in self._document.get(part, ()):
                name = one['name'] if isinstance(one, dict) else one
                self._word(name, _kind(part))
        defaults = self._document.get('nova_conf', {}).get('DEFAULT', {})
        for zone in defaults.values():
            self._word(zone, 'zone')
        for aggregate in self._document.get('aggregates', {}).values():
            self._word(aggregate.get('availability_zone', ''), 'zone')
        self._unsaid.add(
            'key',
            'whose values stay, as parts of them are compared',
            len(self._by_parts),
        )
        self._unsaid.add(
            'server group',
            'whose members are dealt to hosts in another order',
            len(self._document.get('server_groups', ())),
        )
        return {
            part: self._rename(part, value)
            for part, value in self._document.items()
        }

    def _rename(self, part: str, value: typing.Any) -> typing.Any:
        if part == 'nova_conf':
            return {
                group: {name: self._option(one) for name, one in items.items()}
                for group, items in value.items()
            }
        if isinstance(value, list):
            return [self._describe(one) for one in value]
        if isinstance(value, dict):
            return {
                self._known(name): self._describe(one)
                for name, one in value.items()
            }
        return value

    def _describe(self, one: typing.Any) -> typing.Any:
        if isinstance(one, str):
            return self._known(one)
        return {
            key: self._field(key, value)
            for key, value in one.items()
            if key != 'uuid'
        }

    def _field(self, key: str, value: typing.Any) -> typing.Any:
        match key:
            case 'metadata' | 'extra_specs' | 'properties' | 'hints':
                return self._map(value)
            case 'traits':
                return [self._word(name, 'trait') for name in value]
            case 'inventories' | 'used':
                return {
                    self._word(name, 'resources'): of
                    for name, of in value.items()
                }
            case 'availability_zone':
                return ':'.join(
                    self._word(one, 'zone') for one in value.split(':')
                )
            case _ if _kind(key) not in map(_kind, _PARTS):
                return value
        texts = [self._word(one, _kind(key)) for one in _listed(value)]
        return texts if isinstance(value, list) else texts[0]

    def _map(self, items: dict[str, typing.Any]) -> dict[str, typing.Any]:
        found = {}
        for key, value in items.items():
            if key in _ADDRESSES:
                self._unsaid.add('scheduler hint', 'with an address')
                continue
            texts = [self._value(key, one) for one in _listed(value)]
            found[self._key(key)] = (
                texts if isinstance(value, list) else texts[0]
            )
        return found

    def _key(self, key: str) -> str:
        if match := _CUSTOM.fullmatch(key):
            kind, rest, name = match.groups()
            return kind + rest + self._word(name, kind)
        if key.startswith(_SCOPE):
            return _SCOPE + self._key(key.removeprefix(_SCOPE))
        for prefix in filter(key.startswith, self._prefixes):
            return prefix + self._word(key.removeprefix(prefix), 'reserved')
        if key in self.words:
            return self.words[key]
        if key.startswith(_TENANT):
            return _TENANT + self._word(key.removeprefix(_TENANT), 'suffix')
        if self._is_read(key):
            return key
        scope, colon, rest = key.partition(':')
        if colon and rest:
            return f'{self._word(scope, "scope")}:{self._key(rest)}'
        return self._word(key, 'key')

    def _is_read(self, key: str) -> bool:
        """Return whether nova or nova.conf gives a key a meaning."""
        return (
            key in _KNOWN
            or key in self._named
            or key.partition(':')[0] in _SCOPES
        )

    def _value(self, key: str, value: str) -> str:
        plain = key.removeprefix(_SCOPE)
        if key in self._by_parts or plain == 'query':
            return _NAME.sub(lambda match: self._known(match[0]), value)
        if (
            self._is_read(plain)
            and not plain.startswith(_NAMING)
            and plain not in self._named
        ):
            return value
        if value in self.words:
            return self.words[value]
        return _WORD.sub(
            lambda match: (
                match[0]
                if match[0] in _OPERATORS
                else self._word(match[0], 'value')
            ),
            value,
        )

    def _option(self, value: typing.Any) -> typing.Any:
        found = [new for one in _listed(value) for new in self._options(one)]
        return found if isinstance(value, list) else ','.join(found)

    def _options(self, value: str) -> list[str]:
        if value in _SOURCES:
            return [value]
        if not value.startswith('CUSTOM_'):
            return [self._known(value)]
        names = {value}
        if value.endswith('*'):
            # A pattern of names is a name.
            names = {
                trait
                for host in self._document['hosts']
                for trait in host.get('traits', ())
                if trait.startswith(value[:-1])
            }
        return [self._word(name, 'trait') for name in sorted(names)]

    def _known(self, text: str) -> str:
        return self.words.get(text, text)

    def _word(self, text: str, kind: str) -> str:
        prefix = _CUSTOM_WORDS.get(kind, f'{kind}-')
        if (
            not text
            or (kind in _CUSTOM_WORDS and not text.startswith('CUSTOM_'))
            or text.lower() in _MEANT
            or _NUMBER.fullmatch(text)
        ):
            return text
        if text in self.words:
            return self.words[text]
        # An ID of a project has no hyphen.
        if kind == 'value' and '-' in text and uuidutils.is_uuid_like(text):
            # nova-api takes nothing else here.
            self.words[text] = uuidutils.generate_uuid()
        else:
            self._counts[prefix] += 1
            self.words[text] = f'{prefix}{self._counts[prefix]}'
        return self.words[text]


def _kind(key: str) -> str:
    """Return what a part or a field names: ``server_groups``, a group."""
    return _KINDS.get(key, key.rpartition('_')[2].removesuffix('s'))


def _listed(value: typing.Any) -> Iterable[typing.Any]:
    return value if isinstance(value, list) else (value,)
