# SPDX-License-Identifier: Apache-2.0

"""Match a flavor's extra specs with the metadata of a host's aggregates.

Follows the specification "Aggregate Instance Type Filter" and, for what it
leaves as it was, nova.scheduler.filters.aggregate_instance_extra_specs. The
expressions are those of :mod:`nova_ext_sched.policy.expression`.

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

A host passes where it passes for every key. A malformed expression rejects
the host. So does an offered value that is no number where the flavor compares
numbers, whatever else is offered: nova's filter passes or raises there by
chance. A flavor's value that is no number where aggregates compare numbers is
not accepted by those, and reported.

``force_metadata_check`` itself, the ignored keys, ``group_policy`` and keys of
the reserved prefixes are never forced; where a flavor wants one of them, its
values count as they stand. The scope ``aggregate_instance_extra_specs`` is
taken off a flavor's key only: in metadata it is part of the key.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

from nova_ext_sched import exception
from nova_ext_sched.policy import aggregate_instance_rule
from nova_ext_sched.policy import expression as language
from nova_ext_sched.policy import force_metadata_check
from nova_ext_sched.policy import verdict

SCOPE = 'aggregate_instance_extra_specs'

Aggregates = Iterable[tuple[str, Mapping[str, str]]]

# A digest is a bit set. Bit 0: the aggregate has something to report. Then
# three bits a rule: an aggregate has the key; its offer meets what the flavor
# wants; one side cannot be read.
_REPORT = 1
_HAS, _MEETS, _FAULT = 0, 1, 2
_BITS = 3


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
        self._force = force_metadata_check.ForceMetadataCheck(
            ignored, reserved_prefixes
        )
        self._rules: dict[str, list[aggregate_instance_rule.Rule]] = {}
        self._places = 0
        self._all_has = 0
        self._needed = 0
        # The bits of each value of each key, as it stands and as expression.
        self._literals: dict[str, dict[str, int]] = {}
        self._forced: dict[tuple[str, str], int] = {}
        #: What is malformed in the flavor: a sentence each.
        self.request_faults: list[str] = []
        # In the order of keys, so that of several causes one is reported
        # whatever the order of the extra specs.
        for spec in sorted(extra_specs):
            if not self._force.is_foreign(spec):
                self._add_spec(spec, extra_specs[spec])

    def digest(self, metadata: Mapping[str, str]) -> int:
        """Return what the metadata of one aggregate means to the flavor.

        Combine the digests of a host's aggregates by ``|``; 0 stands for an
        aggregate, or a host, without any. Never raises.

        :returns: a bit set, odd where :meth:`faults` has something to say
        """
        digest = 0
        if force_metadata_check.FLAG in metadata:
            flag = self._force.flag(metadata)
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
        if isinstance(rule.wants, str):
            return verdict.reject(rule.wants)
        if digest >> (rule.place + _FAULT) & 1:
            for name, metadata in aggregates:
                for fault in rule.faults(self._force, name, metadata):
                    return verdict.reject(fault)
        return verdict.reject(rule.reason(self._force, aggregates))

    def faults(self, name: str, metadata: Mapping[str, str]) -> list[str]:
        """Return what is malformed where an aggregate and the flavor meet.

        :param name: the aggregate's name
        :returns: a sentence each, which names aggregate or flavor, key and
            value
        """
        found = self._force.faults(name, metadata)
        for key in metadata:
            for rule in self._rules.get(key, ()):
                found += rule.faults(self._force, name, metadata)
        return found

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
        rule = self._add_rule(key, spec, value)
        self._literals.setdefault(key, {})
        if not mandatory:
            return
        if isinstance(rule.wants, str):
            self.request_faults.append(rule.wants)
            self._needed |= 1 << rule.place
        elif not rule.wants.absent:
            self._needed |= 1 << rule.place

    def _add_rule(
        self, key: str, spec: str | None = None, value: str = ''
    ) -> aggregate_instance_rule.Rule:
        place = 1 + _BITS * self._places
        self._places += 1
        self._all_has |= 1 << place
        rule = aggregate_instance_rule.Rule(
            self._flavor, key, spec, value, place
        )
        self._rules.setdefault(key, []).append(rule)
        return rule

    def _forced_digest(self, metadata: Mapping[str, str]) -> int:
        digest = 0
        for key, value in metadata.items():
            if self._force.may_force(key):
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
                self._add_rule(key)
            try:
                offer = language.parse_values(value, '')
            except exception.InvalidValue:
                offer = None
            bits = self._forced[key, value] = self._bits(key, offer)
        return bits

    def _bits(self, key: str, offer: language.Expression | None) -> int:
        bits = 0
        for rule in self._rules[key]:
            wants = rule.wants
            bits |= 1 << (rule.place + _HAS)
            if (
                offer is None
                or isinstance(wants, str)
                or wants.unreadable(offer)
            ):
                bits |= 1 << (rule.place + _FAULT) | _REPORT
            elif wants.meets(offer):
                bits |= 1 << (rule.place + _MEETS)
            elif offer.unreadable(wants):
                bits |= _REPORT
        return bits
