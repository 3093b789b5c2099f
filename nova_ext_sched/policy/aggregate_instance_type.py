# SPDX-License-Identifier: Apache-2.0

"""Match a flavor's extra specs with the metadata of a host's aggregates.

Follows the specification "Aggregate Instance Type Filter" and, for what it
leaves as it was, nova.scheduler.filters.aggregate_instance_extra_specs. The
expressions are those of :mod:`nova_ext_sched.policy.expression`.

A flavor *wants* the states that its expression accepts: values, absence, or
both. An aggregate that has the key *offers* its value as it stands or, where
it is forced (``force_metadata_check`` true), the states that its value accepts
as an expression.

A host passes for an extra spec where a value that the flavor wants is offered,
or where the flavor wants absence and nothing contradicts it:

==============================  =====================  =====================
aggregates of the host          flavor wants a value   flavor wants absence
that have the key
==============================  =====================  =====================
none                            rejected [1]_          passes
some                            passes where one       passes where each of
                                offers it              them offers absence
==============================  =====================  =====================

.. [1] An extra spec of a scope other than ``aggregate_instance_extra_specs``
   passes.

Besides, each forced aggregate must offer, for each key of its own, a state
that the flavor wants; a flavor without the extra spec wants absence. Each is
judged by itself: what another aggregate offers lifts no restriction.

=====================  ===================  =================
forced aggregate       flavor               decision
=====================  ===================  =================
``1``                  ``1``                passes
``1``                  ``2``, or no key     rejected
``!``                  ``1``                rejected
``!``                  ``!``, or no key     passes
``1`` and another      ``1``, or ``2``      rejected
forced one ``2``
same                   ``<or> 1 <or> 2``    passes
=====================  ===================  =================

A malformed expression rejects the host. So does an offered value that is no
number where the flavor compares numbers, whatever else is offered: nova's
filter passes or raises there by chance. A flavor's value that is no number
where a forced aggregate compares numbers is not accepted by it, and reported.

``force_metadata_check`` itself, the ignored keys, ``group_policy`` and keys of
the reserved prefixes are never forced; where a flavor wants one of them, its
values count as they stand. The scope ``aggregate_instance_extra_specs`` is
taken off a flavor's key only: in metadata it is part of the key.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

from nova_ext_sched.policy import aggregate_instance_rule
from nova_ext_sched.policy import force_metadata_check
from nova_ext_sched.policy import verdict

SCOPE = 'aggregate_instance_extra_specs'

Aggregates = Iterable[tuple[str, Mapping[str, str]]]

# A digest is a bit set. Bit 0: something is malformed. Then four bits a rule,
# those of aggregate_instance_rule.
_REPORT = 1
_RULE_BITS = 4

#: The rule that hosts fail by, and its bits.
Cause = tuple[aggregate_instance_rule.Rule, int]


class Decision:
    """The decision for one flavor, for any number of hosts.

    For speed a host is judged in two steps: :meth:`digest` reads an
    aggregate once, and the digests of a host's aggregates, combined by ``|``,
    tell :meth:`passes` the answer. :meth:`judge` takes the same way and adds
    the reason.

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
        self._rules: list[aggregate_instance_rule.Rule] = []
        # Positions in the list, by key.
        self._positions: dict[str, list[int]] = {}
        # Bit PRESENT of every rule, and of those that want a value where no
        # aggregate has the key either.
        self._every = 0
        self._mandatory = 0
        # The bits of each value of each key, as it stands and as expression.
        self._literals: dict[str, dict[str, int]] = {}
        self._forced: dict[tuple[str, str], int] = {}
        #: What is malformed in the flavor: a sentence each.
        self.request_faults: list[str] = []
        for spec, value in sorted(extra_specs.items()):
            if not self._force.is_foreign(spec):
                self._add_spec(spec, value)

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

    def cause(self, digest: int) -> Cause:
        """Return what tells apart why hosts are rejected.

        Hosts of one cause fail by the same extra spec or forced key, and in
        the same way, so that :meth:`reason` can be given all their aggregates
        together.

        :param digest: of a host that does not pass
        """
        failing = self._failing(digest)
        # By key, so that of several causes one is reported whatever the order
        # of the hosts.
        position, rule = min(
            (
                (position, rule)
                for position, rule in enumerate(self._rules)
                if failing >> _shift(position) & 1
            ),
            key=lambda item: (item[1].key, item[1].spec or ''),
        )
        return rule, digest >> _shift(position) & ((1 << _RULE_BITS) - 1)

    def reason(self, cause: Cause, aggregates: Aggregates) -> str:
        """Return why hosts are rejected.

        :param aggregates: name and metadata of each aggregate of the hosts
        """
        rule, _ = cause
        offers: dict[tuple[str, bool], list[str]] = {}
        for name, metadata in aggregates:
            if rule.key in metadata:
                forced = self._force.forces(metadata, rule.key)
                value = metadata[rule.key] or ''
                offers.setdefault((value, forced), []).append(name)
        return rule.reason(offers)

    def judge(self, aggregates: Aggregates) -> verdict.Verdict:
        """Decide about a host, with the reason where it is rejected.

        :param aggregates: name and metadata of each aggregate of the host
        """
        aggregates = list(aggregates)
        digest = 0
        for _, metadata in aggregates:
            digest |= self.digest(metadata)
        if self.passes(digest):
            return verdict.PASS
        return verdict.reject(self.reason(self.cause(digest), aggregates))

    def faults(self, name: str, metadata: Mapping[str, str]) -> list[str]:
        """Return what is malformed where an aggregate and the flavor meet.

        :param name: the aggregate's name
        :returns: a sentence each, which names aggregate or flavor, key and
            value
        """
        found = self._force.faults(name, metadata)
        for key, value in metadata.items():
            forced = self._force.forces(metadata, key)
            if forced or key in self._literals:
                for position in self._positions_of(key):
                    rule = self._rules[position]
                    found += rule.examine(name, value or '', forced)[1]
        return found

    def _failing(self, digest: int) -> int:
        # The lowest bit of every rule by which the host is rejected.
        every = self._every
        wanted = digest & every | self._mandatory
        offered = digest >> 1
        rejected = digest >> 2 | digest >> 3
        return wanted & ~offered | rejected & every

    def _add_spec(self, spec: str, value: str) -> None:
        scope, colon, rest = spec.partition(':')
        escaped = bool(colon) and scope == SCOPE
        key = rest if escaped else spec
        rule = aggregate_instance_rule.Rule(self._flavor, key, spec, value)
        present = self._add_rule(rule)
        self._literals.setdefault(key, {})
        if colon and not escaped:
            return
        if rule.fault is not None:
            self.request_faults.append(rule.fault)
        if rule.fault is not None or not rule.wants.absent:
            self._mandatory |= present

    def _add_rule(self, rule: aggregate_instance_rule.Rule) -> int:
        # Returns the rule's lowest bit.
        position = len(self._rules)
        self._rules.append(rule)
        self._positions.setdefault(rule.key, []).append(position)
        present = 1 << _shift(position)
        self._every |= present
        return present

    def _positions_of(self, key: str) -> list[int]:
        if key not in self._positions:
            # The flavor is silent about a key that an aggregate forces.
            self._add_rule(aggregate_instance_rule.Rule(self._flavor, key))
        return self._positions[key]

    def _forced_digest(self, metadata: Mapping[str, str]) -> int:
        digest = 0
        for key, value in metadata.items():
            if self._force.may_force(key):
                bits = self._forced.get((key, value))
                if bits is None:
                    bits = self._bits(key, value, True)
                    self._forced[key, value] = bits
                digest |= bits
            elif key in self._literals:
                digest |= self._literal_bits(key, value)
        return digest

    def _literal_bits(self, key: str, value: str) -> int:
        bits = self._literals[key].get(value)
        if bits is None:
            bits = self._literals[key][value] = self._bits(key, value, False)
        return bits

    def _bits(self, key: str, value: str, forced: bool) -> int:
        bits = 0
        for position in self._positions_of(key):
            found, faults = self._rules[position].examine(
                '', value or '', forced
            )
            bits |= found << _shift(position)
            if faults:
                bits |= _REPORT
        return bits


def _shift(position: int) -> int:
    return 1 + position * _RULE_BITS
