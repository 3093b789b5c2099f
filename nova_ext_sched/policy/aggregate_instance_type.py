#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""Match a flavor's extra specs with the metadata of a host's aggregates.

Follows the specification "Aggregate Instance Type Filter" and, for what it
leaves as it was, nova.scheduler.filters.aggregate_instance_extra_specs. The
expressions are those of :mod:`nova_ext_sched.policy.extra_specs`.

What a flavor *wants* of a key is what its expression accepts, or absence
where it has no extra spec for the key. What the aggregates of a host *offer*
is what they accept together: an aggregate without the flag gives its values
as they stand, a forced one (``force_metadata_check`` true) gives them read as
expressions, and where no aggregate has the key the offer is absence.

==============================  ==============  =============  ===========
flavor's extra spec             an aggregate    a forced one   decision
                                has the key     has the key
==============================  ==============  =============  ===========
``key``,                        yes             any            wants must
``aggregate_instance_extra_                                    meet offer
specs:key``
same                            no              no             wants must
                                                               accept
                                                               absence
``other_scope:key``             yes             any            wants must
                                                               meet offer
``other_scope:key``             no              no             passes
none                            any             yes            offer must
                                                               accept
                                                               absence
none                            any             no             passes
``group_policy``, a reserved    any             any            passes
prefix
==============================  ==============  =============  ===========

A host passes where it passes for every key. A malformed expression, or a
value that is no number where the other side compares numbers, rejects the
host. ``force_metadata_check`` itself, the ignored keys, ``group_policy`` and
keys of the reserved prefixes are never forced; where a flavor wants one of
them, its values count as they stand. The scope ``aggregate_instance_extra_
specs`` is taken off a flavor's key only: in metadata it is part of the key.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

from oslo_utils import strutils

from nova_ext_sched import exception
from nova_ext_sched.policy import extra_specs as language
from nova_ext_sched.policy import verdict

SCOPE = 'aggregate_instance_extra_specs'
FLAG = 'force_metadata_check'

#: nova's own unscoped extra spec; aggregates have nothing to say about it.
GROUP_POLICY = 'group_policy'

Aggregates = Iterable[tuple[str, Mapping[str, str]]]

# A digest is a bit set. Bit 0: the aggregate has something to report. Then
# three bits a rule: an aggregate has the key; its offer meets what the flavor
# wants; one side cannot be read.
_REPORT = 1
_HAS, _MEETS, _FAULT = 0, 1, 2
_BITS = 3

# Operators' values reach the log: bounded, whatever their length.
_LONGEST = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class _Rule:
    """What the flavor wants of one key.

    :param key: the key in aggregates' metadata
    :param spec: the extra spec as the flavor has it; None where it has none
    :param wants: None where the flavor's value is malformed
    :param mandatory: whether a host without the key is judged
    :param place: number of the rule's lowest bit in a digest
    """

    key: str
    spec: str | None
    value: str
    wants: language.Expression | None
    mandatory: bool
    place: int


class Decision:
    """The decision for one flavor, for any number of hosts.

    For speed a host is judged in two steps: :meth:`digest` reads an
    aggregate once, and the digests of a host's aggregates, combined by ``|``,
    tell :meth:`passes` the answer. The union of what aggregates offer meets
    the flavor exactly where one of them does, so nothing is lost.
    :meth:`judge` takes the same way and adds the reason.

    :param flavor: the flavor's name, for reasons and faults
    :param extra_specs: the flavor's extra specs
    :param ignored: metadata keys that no aggregate forces
    :param reserved_prefixes: beginnings of keys that are another policy's
    """

    def __init__(
        self,
        flavor: str,
        extra_specs: Mapping[str, str],
        ignored: Collection[str] = (),
        reserved_prefixes: Collection[str] = (),
    ) -> None:
        self._flavor = flavor
        # The empty prefix would be that of every key.
        self._reserved = tuple(filter(None, reserved_prefixes))
        self._unforced = {FLAG, GROUP_POLICY, *ignored}
        self._rules: dict[str, list[_Rule]] = {}
        self._places = 0
        self._all_has = 0
        self._needed = 0
        # The bits of each value of each key, as it stands and as expression.
        self._literals: dict[str, dict[str, int]] = {}
        self._forced: dict[tuple[str, str], int] = {}
        self._flags: dict[str, bool | None] = {}
        #: What is malformed in the flavor: a sentence each.
        self.request_faults: list[str] = []
        # In the order of keys, so that of several causes one is reported
        # whatever the order of the extra specs.
        for spec in sorted(extra_specs):
            if spec != GROUP_POLICY and not spec.startswith(self._reserved):
                self._add_spec(spec, extra_specs[spec])

    def digest(self, metadata: Mapping[str, str]) -> int:
        """Return what the metadata of one aggregate means to the flavor.

        Combine the digests of a host's aggregates by ``|``; 0 stands for an
        aggregate, or a host, without any. Never raises.

        :returns: a bit set, odd where :meth:`faults` has something to say
        """
        digest = 0
        if FLAG in metadata:
            flag = self._read_flag(metadata[FLAG])
            if flag:
                return self._forced_digest(metadata)
            if flag is None:
                digest = _REPORT
        # Clouds whose aggregates are not shared by hosts spend their time
        # here: no call for a value that was seen before.
        literals = self._literals
        for key in literals.keys() & metadata.keys():
            value = metadata[key]
            known = literals[key]
            if value in known:
                digest |= known[value]
            else:
                digest |= self._literal_bits(key, value)
        return digest

    def passes(self, digest: int) -> bool:
        """Return whether a host passes whose aggregates have the digest."""
        return not self._failing(digest)

    def judge(self, aggregates: Aggregates) -> verdict.Verdict:
        """Decide about a host, with the reason where it is rejected.

        :param aggregates: name and metadata of each aggregate of the host
        """
        aggregates = sorted(aggregates, key=lambda item: item[0])
        digest = 0
        for _, metadata in aggregates:
            digest |= self.digest(metadata)
        failing = self._failing(digest)
        if not failing:
            return verdict.PASS
        rule = min(
            (
                rule
                for rules in self._rules.values()
                for rule in rules
                if failing >> rule.place & 1
            ),
            key=lambda rule: (rule.key, rule.spec or ''),
        )
        faulty = digest >> rule.place + _FAULT & 1
        if rule.wants is None or faulty:
            for sentence in self._faults_of_rule(rule, aggregates):
                return verdict.reject(sentence)
        return verdict.reject(self._reason(rule, aggregates))

    def faults(self, name: str, metadata: Mapping[str, str]) -> list[str]:
        """Return what is malformed where an aggregate and the flavor meet.

        :param name: the aggregate's name
        :returns: a sentence each, which names aggregate or flavor, key and
            value
        """
        found = []
        if FLAG in metadata and self._read_flag(metadata[FLAG]) is None:
            booleans = ', '.join(
                strutils.TRUE_STRINGS + strutils.FALSE_STRINGS
            )
            found.append(
                f'aggregate {name}: metadata {FLAG!r}: expected one of '
                f'{booleans}, got {metadata[FLAG]!r}; the aggregate forces '
                f'nothing'
            )
        for key in metadata:
            for rule in self._rules.get(key, ()):
                found += self._faults_of_rule(rule, [(name, metadata)])
        return list(map(_bounded, found))

    def _failing(self, digest: int) -> int:
        # The lowest bit of every rule by which the host is rejected.
        has = digest >> _HAS & self._all_has
        meets = digest >> _MEETS & self._all_has
        fault = digest >> _FAULT & self._all_has
        return (has & ~meets) | (self._needed & ~has) | fault

    def _add_spec(self, spec: str, value: str) -> None:
        scope, colon, rest = spec.partition(':')
        escaped = bool(colon) and scope == SCOPE
        mandatory = escaped or not colon
        key = rest if escaped else spec
        try:
            wants = language.parse(value, self._spec_where(spec))
        except exception.InvalidValue as exc:
            wants = None
            if mandatory:
                self.request_faults.append(_bounded(str(exc)))
        rule = self._add_rule(key, spec, value, wants, mandatory)
        self._literals.setdefault(key, {})
        if mandatory and not (wants and wants.absent):
            self._needed |= 1 << rule.place

    def _add_rule(
        self,
        key: str,
        spec: str | None,
        value: str,
        wants: language.Expression | None,
        mandatory: bool,
    ) -> _Rule:
        place = 1 + _BITS * self._places
        self._places += 1
        self._all_has |= 1 << place
        rule = _Rule(key, spec, value, wants, mandatory, place)
        self._rules.setdefault(key, []).append(rule)
        return rule

    def _read_flag(self, text: str) -> bool | None:
        try:
            return self._flags[text]
        except KeyError:
            pass
        try:
            flag = strutils.bool_from_string(text, strict=True)
        except ValueError:
            flag = None
        self._flags[text] = flag
        return flag

    def _is_forced(self, key: str) -> bool:
        return key not in self._unforced and not key.startswith(
            self._reserved
        )

    def _forced_digest(self, metadata: Mapping[str, str]) -> int:
        digest = 0
        for key, value in metadata.items():
            if self._is_forced(key):
                digest |= self._forced_bits(key, value)
            elif key in self._literals:
                digest |= self._literal_bits(key, value)
        return digest

    def _literal_bits(self, key: str, value: str) -> int:
        bits = self._literals[key].get(value)
        if bits is None:
            offer = language.literal(language.split(value))
            bits = self._literals[key][value] = self._bits(key, offer)
        return bits

    def _forced_bits(self, key: str, value: str) -> int:
        bits = self._forced.get((key, value))
        if bits is None:
            if key not in self._rules:
                # The flavor is silent about a key that an aggregate forces.
                self._add_rule(key, None, '', language.ABSENCE, False)
            try:
                offer = language.parse_values(value, '')
            except exception.InvalidValue:
                offer = None
            bits = self._forced[key, value] = self._bits(key, offer)
        return bits

    def _bits(self, key: str, offer: language.Expression | None) -> int:
        bits = 0
        for rule in self._rules[key]:
            bits |= 1 << rule.place + _HAS
            if (
                offer is None
                or rule.wants is None
                or rule.wants.unreadable(offer)
                or offer.unreadable(rule.wants)
            ):
                bits |= 1 << rule.place + _FAULT | _REPORT
            elif rule.wants.meets(offer):
                bits |= 1 << rule.place + _MEETS
        return bits

    def _forces(self, metadata: Mapping[str, str]) -> bool:
        return FLAG in metadata and bool(self._read_flag(metadata[FLAG]))

    def _spec_where(self, spec: str) -> str:
        return f'flavor {self._flavor}: extra spec {spec!r}'

    def _faults_of_rule(
        self, rule: _Rule, aggregates: Aggregates
    ) -> list[str]:
        if rule.wants is None:
            try:
                language.parse(
                    rule.value, self._spec_where(rule.spec or rule.key)
                )
            except exception.InvalidValue as exc:
                return [_bounded(str(exc))]
        found = []
        for name, metadata in aggregates:
            if rule.key in metadata:
                found += self._faults_of_offer(rule, name, metadata)
        return list(map(_bounded, found))

    def _faults_of_offer(
        self, rule: _Rule, name: str, metadata: Mapping[str, str]
    ) -> list[str]:
        assert rule.wants is not None
        value = metadata[rule.key]
        where = f'aggregate {name}: metadata {rule.key!r}'
        if self._forces(metadata) and self._is_forced(rule.key):
            try:
                offer = language.parse_values(value, where)
            except exception.InvalidValue as exc:
                return [str(exc)]
        elif rule.spec is None:
            return []
        else:
            offer = language.literal(language.split(value))
        if unreadable := rule.wants.unreadable(offer):
            return [
                f'{where}: expected numbers, because flavor {self._flavor} '
                f'compares them by {rule.value!r}, got {got!r}'
                for got in unreadable
            ]
        return [
            f'{self._spec_where(rule.spec or rule.key)}: expected a number, '
            f'because aggregates compare it by {value!r}, got {got!r}'
            for got in offer.unreadable(rule.wants)
        ]

    def _reason(self, rule: _Rule, aggregates: Aggregates) -> str:
        offers: dict[str, list[str]] = {}
        forcing = []
        for name, metadata in aggregates:
            if rule.key in metadata:
                offers.setdefault(metadata[rule.key], []).append(name)
                if self._forces(metadata) and self._is_forced(rule.key):
                    forcing.append(name)
        wants = (
            f'flavor {self._flavor} wants {rule.value!r} of {rule.key!r}'
            if rule.spec is not None
            else f'flavor {self._flavor} has no extra spec {rule.key!r}'
        )
        offered = ', '.join(
            f'{value!r} ({", ".join(names)})'
            for value, names in sorted(offers.items())
        )
        force = (
            f'; {FLAG} is on in {", ".join(forcing)}' if forcing else ''
        )
        return _bounded(
            f'{wants} and its aggregates offer {offered or "no such key"}'
            f'{force}'
        )


def _bounded(sentence: str) -> str:
    if len(sentence) <= _LONGEST:
        return sentence
    return sentence[:_LONGEST] + '...'
