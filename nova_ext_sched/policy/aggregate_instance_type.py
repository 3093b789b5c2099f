# SPDX-License-Identifier: Apache-2.0

"""Match a flavor's extra specs with the metadata of a host's aggregates.

Follows the specification "Aggregate Instance Type Filter" and, for what it
leaves as it was, nova.scheduler.filters.aggregate_instance_extra_specs. The
expressions are those of :mod:`nova_ext_sched.policy.expression`.

A flavor *wants* the states that its expression accepts: values, absence, or
both. An aggregate that has the key *offers* its value as plain text. If it is
forced (``force_metadata_check`` true), it offers the states that its value
accepts as an expression.

A host passes for an extra spec if a value that the flavor wants is offered, or
if the flavor wants absence and nothing contradicts it:

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

In addition, each forced aggregate must offer, for each of its keys, a state
that the flavor wants. A flavor without the extra spec wants absence. Each
forced aggregate is judged on its own: no other aggregate lifts its
restriction.

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

A malformed expression rejects the host. If the flavor compares numbers, an
offered value that is not a number also rejects it, whatever else is offered:
nova's filter passes or raises there by chance. If a forced aggregate compares
numbers, it does not accept a flavor's value that is not a number, and reports
it.

A forced aggregate (:mod:`.force_metadata_check`) forces all its keys but the
flag, those of ``force_metadata_check_ignored_keys``, ``group_policy`` and keys
of reserved prefixes. Where a flavor wants one that is not forced, its values
count as they stand. The scope ``aggregate_instance_extra_specs`` is taken off
a flavor's key only: in metadata it is part of the key, which no extra spec
matches. That is reported, and so is a misspelt scope of a flavor, which makes
an extra spec optional.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

from nova_ext_sched import messages
from nova_ext_sched.policy import act
from nova_ext_sched.policy import aggregate_instance_rule
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import force_metadata_check
from nova_ext_sched.policy import memo
from nova_ext_sched.policy import slips
from nova_ext_sched.policy import verdict

DECLARATION = declaration.Policy(
    name='aggregate-instance-type',
    summary="A flavor's extra specs match the metadata of the host's "
    'aggregates.',
    refuses='have aggregates that do not match the flavor',
    host_filter='AggregateInstanceTypeFilter',
    acts=(
        act.take_out('flavors that do not match its metadata'),
        act.put_into('all flavors that match its metadata'),
        act.set_item('all flavors that match it'),
    ),
)

SCOPE = 'aggregate_instance_extra_specs'

# nova's own unscoped extra spec; aggregates have nothing to say about it.
_GROUP_POLICY = 'group_policy'

# Name and metadata of each.
Aggregates = Iterable[tuple[str, Mapping[str, str]]]

# What an aggregate means to a flavor is an integer of bits, because a host's
# aggregates are then combined by "|": sets take four times as long. Bit 0:
# something is malformed. Then the four bits of each rule.
_REPORT = 1
_RULE_BITS = 4

#: The rule that hosts fail by, and its bits.
Cause = tuple[aggregate_instance_rule.Rule, int]

_PlacedRule = tuple[int, aggregate_instance_rule.Rule]


class Decision:
    """The decision for one flavor, for any number of hosts.

    For speed a host is judged in two steps: :meth:`read` reads an aggregate
    once, and :meth:`passes` decides by the bits of a host's aggregates,
    combined by ``|``. :meth:`judge` does the same and adds the reason.

    :param flavor: the flavor's name, for reasons and faults
    :param ignored: metadata keys that no aggregate forces; with ``*`` at the
        end all that begin so
    :param reserved_prefixes: prefixes of keys that belong to another policy
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
        self._unforced = {force_metadata_check.FLAG, _GROUP_POLICY, *ignored}
        self._unforced_prefixes = (
            *self._reserved,
            *(name[:-1] for name in ignored if name.endswith('*')),
        )
        # The rules of each key, each with the place of its bits.
        self._rules: dict[str, list[_PlacedRule]] = {}
        # Bit PRESENT of every rule, and of those that want a value even where
        # no aggregate has the key.
        self._every = 0
        self._mandatory = 0
        # By key and value of an aggregate, and whether it is forced.
        self._known_bits = memo.Memo(lambda item: self._examine('', *item)[0])
        #: What is malformed in the flavor: a message for each.
        self.request_faults: list[str] = []
        for spec, value in sorted(extra_specs.items()):
            if spec != _GROUP_POLICY and not spec.startswith(self._reserved):
                self._add_spec(spec, value)
        self._wanted = set(self._rules)
        # An aggregate that has one with the scope is reported.
        self._noticed = self._wanted | {
            f'{SCOPE}:{key}' for key in self._rules
        }

    def read(self, metadata: Mapping[str, str]) -> int:
        """Judge the metadata of one aggregate for the flavor, as bits.

        Combine the bits of a host's aggregates by ``|``; 0 stands for an
        aggregate, or a host, without any. Never raises.

        :returns: bits, odd where :meth:`faults` has something to say
        """
        flag = force_metadata_check.read(metadata)
        bits = _REPORT if flag is None else 0
        # Half the time of "&" with the view of the keys.
        for key in metadata if flag else self._noticed.intersection(metadata):
            bits |= self._known_bits[key, metadata[key], flag]
        return bits

    def passes(self, bits: int) -> bool:
        """Return whether a host with these aggregates' bits passes."""
        return not self._failing(bits)

    def cause(self, bits: int) -> Cause:
        """Return why hosts with these bits are rejected.

        :meth:`reason` can be given all the aggregates of the hosts of one
        cause together.
        """
        failing = self._failing(bits)
        # By key, so that of several causes one is reported whatever the order
        # of the hosts.
        place, rule = min(
            (
                placed
                for rules in self._rules.values()
                for placed in rules
                if failing >> placed[0] & 1
            ),
            key=lambda placed: (placed[1].key, placed[1].spec or ''),
        )
        return rule, bits >> place & ((1 << _RULE_BITS) - 1)

    def reason(self, cause: Cause, aggregates: Aggregates) -> str:
        """Return why hosts in these aggregates are rejected."""
        rule, _ = cause
        offers: dict[tuple[str, bool], list[str]] = {}
        for name, metadata in aggregates:
            if rule.key in metadata:
                forced = self._forces(
                    rule.key, force_metadata_check.read(metadata)
                )
                value = metadata[rule.key] or ''
                offers.setdefault((value, forced), []).append(name)
        return rule.reason(offers)

    def judge(self, aggregates: Aggregates) -> verdict.Verdict:
        """Decide about a host in these aggregates, with the reason."""
        aggregates = sorted(aggregates, key=lambda aggregate: aggregate[0])
        bits = 0
        for _, metadata in aggregates:
            bits |= self.read(metadata)
        if self.passes(bits):
            return verdict.PASS
        return verdict.reject(self.reason(self.cause(bits), aggregates))

    def faults(self, name: str, metadata: Mapping[str, str]) -> list[str]:
        """List malformed values where an aggregate and the flavor meet.

        Each sentence names aggregate or flavor, key and value.
        """
        faults = [
            *force_metadata_check.faults(name, metadata),
            *find_slips(name, metadata),
        ]
        flag = force_metadata_check.read(metadata)
        for key, value in metadata.items():
            faults += self._examine(name, key, value, flag)[1]
        return faults

    def find_unmet(self, aggregates: Iterable[Mapping[str, str]]) -> list[str]:
        """Return a sentence for each extra spec that nothing satisfies.

        :param aggregates: the metadata of all aggregates of the cloud
        """
        met = 0
        for metadata in aggregates:
            if not self.is_refused_by(metadata):
                met |= self.read(metadata) >> 1
        return [
            rule.unmet
            for rules in self._rules.values()
            for place, rule in rules
            if rule.fault is None and (self._mandatory & ~met) >> place & 1
        ]

    def is_refused_by(self, metadata: Mapping[str, str]) -> bool:
        """Return whether an aggregate refuses the flavor by itself."""
        bits = self.read(metadata)
        return bool((bits >> 2 | bits >> 3) & self._every)

    def _failing(self, bits: int) -> int:
        # Bit PRESENT of every rule by which the host is rejected.
        every = self._every
        wanted = bits & every | self._mandatory
        offered = bits >> 1
        rejected = bits >> 2 | bits >> 3
        return wanted & ~offered | rejected & every

    def _examine(
        self, name: str, key: str, value: str | None, flag: bool | None
    ) -> tuple[int, list[str]]:
        # Returns the bits and the faults of one item of an aggregate.
        forced = self._forces(key, flag)
        if forced and key not in self._rules:
            # The flavor is silent about a key that an aggregate forces.
            self._add_rule(aggregate_instance_rule.Rule(self._flavor, key))
        # Its sentence is one of find_slips.
        bits = _REPORT if is_scoped(key) else 0
        faults: list[str] = []
        if forced or key in self._wanted:
            for place, rule in self._rules[key]:
                found, sentences = rule.examine(name, value or '', forced)
                bits |= found << place
                faults += sentences
        return bits | (_REPORT if faults else 0), faults

    def _forces(self, key: str, flag: bool | None) -> bool:
        return (
            bool(flag)
            and key not in self._unforced
            and not key.startswith(self._unforced_prefixes)
        )

    def _add_spec(self, spec: str, value: str) -> None:
        key = spec.removeprefix(f'{SCOPE}:')
        rule = aggregate_instance_rule.Rule(self._flavor, key, spec, value)
        place = self._add_rule(rule)
        if key == spec and ':' in spec:
            # Of another scope, it is optional.
            if is_scoped(spec):
                self.request_faults.append(
                    f'flavor {messages.clean(self._flavor)}: extra spec '
                    f'{messages.quoted(spec)}: expected the scope {SCOPE}; '
                    f'hosts without the key pass, because any other is '
                    f'optional'
                )
            return
        if rule.fault is not None:
            self.request_faults.append(rule.fault)
        if rule.fault is not None or not rule.wants.absent:
            self._mandatory |= 1 << place

    def _add_rule(self, rule: aggregate_instance_rule.Rule) -> int:
        place = 1 + _RULE_BITS * self._every.bit_count()
        self._every |= 1 << place
        self._rules.setdefault(rule.key, []).append((place, rule))
        return place


def is_scoped(key: str) -> bool:
    """Return whether a key has the scope, or one that looks like it."""
    prefix = f'{SCOPE}:'
    return slips.nearly_begins(key, [prefix]) or slips.resembles(key, prefix)


def find_slips(name: str, metadata: Mapping[str, str]) -> list[str]:
    """List misspelt metadata keys and values of an aggregate.

    :param name: the aggregate's
    """
    slips = force_metadata_check.find_slips(name, metadata)
    slips += [
        f'aggregate {messages.clean(name)}: metadata {messages.quoted(key)}: '
        f'expected a key without the scope {SCOPE}, which belongs into '
        f'flavors; no extra spec matches it'
        for key in metadata
        if is_scoped(key)
    ]
    return slips
