# SPDX-License-Identifier: Apache-2.0

"""Compares an extra spec of a flavor with an aggregate's metadata.

A part of :mod:`nova_ext_sched.policy.aggregate_instance_type`, which has the
table of decisions.
"""

from collections.abc import Mapping
from collections.abc import Sequence

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.policy import expression
from nova_ext_sched.policy import force_metadata_check

#: The bits that :meth:`Rule.examine` returns. PRESENT: the aggregate has the
#: key, so a flavor that wants its absence fails. OFFERED: the aggregate offers
#: a value that the flavor accepts. REFUSED: the aggregate is forced and does
#: not accept the flavor. MALFORMED: the two cannot be compared.
PRESENT, OFFERED, REFUSED, MALFORMED = 1, 2, 4, 8

# Values of a key in one sentence: enough to recognize, short enough to read.
_MOST_VALUES = 5

#: Names of aggregates by the value that they have for a key, and by whether
#: they are forced to have the flavor agree with it.
Offers = Mapping[tuple[str, bool], Sequence[str]]


class Rule:
    """The extra specs of a flavor for one metadata key of aggregates.

    :ivar fault: the sentence that says how the extra spec is malformed, else
        None
    :ivar wants: the values that the extra spec accepts; absence where the
        flavor is silent about the key

    :param flavor: the flavor's name
    :param key: the key in metadata
    :param spec: the key as the flavor has it; None if the flavor is silent
    """

    def __init__(
        self, flavor: str, key: str, spec: str | None = None, value: str = ''
    ) -> None:
        self.key = key
        self.spec = spec
        self.wants = expression.ABSENCE
        self.fault: str | None = None
        # As messages show them.
        self._flavor = f'flavor {messages.clean(flavor)}'
        self._spec = f'{self._flavor}: extra spec {messages.quoted(spec)}'
        self._key = messages.quoted(key)
        self._value = messages.quoted(value)
        if spec is not None:
            try:
                self.wants = expression.parse(value)
            except exception.InvalidValue as exc:
                self.fault = f'{self._spec}: {say_fault(exc)}'

    def examine(
        self, name: str, value: str, forced: bool
    ) -> tuple[int, list[str]]:
        """Compare the rule with an aggregate that has the key.

        :param forced: whether the value is an expression that the flavor must
            agree with
        :returns: the bits that apply, and a message for each fault
        """
        if self.fault is not None:
            return MALFORMED, [self.fault]
        where = f'aggregate {messages.clean(name)}: metadata {self._key}'
        try:
            offer = (
                expression.parse_values(value)
                if forced
                else expression.literal(expression.split(value))
            )
        except exception.InvalidValue as exc:
            return MALFORMED, [f'{where}: {say_fault(exc)}']
        if words := self.wants.unreadable(offer):
            return MALFORMED, [
                f'{where}: expected numbers, because {self._flavor} compares '
                f'them with {self._value}, got {_few(words)}'
            ]
        bits, faults = 0, []
        if not (self.wants.absent and offer.absent):
            bits |= PRESENT
        if self.wants.meets_value(offer):
            bits |= OFFERED
        elif words := offer.unreadable(self.wants):
            faults.append(
                f'{self._spec}: expected numbers, because {where} compares '
                f'them with {messages.quoted(value)}, got {_few(words)}'
            )
        if forced and not self.wants.meets(offer):
            bits |= REFUSED
        return bits, faults

    @property
    def unmet(self) -> str:
        """The reason if no aggregate of the cloud meets the rule."""
        return (
            f'{self._spec}: no aggregate has {self._key} with a value that '
            f'{self._value} accepts, so servers with the flavor find no host'
        )

    def reason(self, offers: Offers) -> str:
        """Return why hosts in these aggregates are rejected."""
        if self.fault is not None:
            return self.fault
        faults: list[str] = []
        refusing: dict[str, Sequence[str]] = {}
        offering: dict[str, list[str]] = {}
        for (value, forced), names in sorted(offers.items()):
            bits, sentences = self.examine(names[0], value, forced)
            if bits & MALFORMED:
                faults += sentences * len(names)
            if bits & REFUSED:
                refusing[value] = names
            offering.setdefault(value, []).extend(names)
        if faults:
            more = len(faults) - 1
            return min(faults) + (
                f', and {more} more like this' if more else ''
            )
        wants = (
            f'{self._flavor} has no extra spec {self._key}'
            if self.spec is None
            else f'{self._flavor} wants {self._key} to be {self._value}'
        )
        if refusing:
            return (
                f'{wants} and {force_metadata_check.FLAG} is on in aggregates '
                f'that demand {_values(refusing)}'
            )
        if offering:
            return f'{wants} and the aggregates offer {_values(offering)}'
        return f'{wants} and no aggregate of the host has the key'


def say_fault(exc: exception.InvalidValue) -> str:
    """Describe a malformed expression: the expected form, then the text."""
    return f'expected {exc.expected}, got {messages.quoted(exc.got)}'


def _few(words: Sequence[str]) -> str:
    return messages.first_few(words, _MOST_VALUES, messages.quoted)


def _values(names_by_value: Mapping[str, Sequence[str]]) -> str:
    def show(item: tuple[str, Sequence[str]]) -> str:
        value, names = item
        return f'{messages.quoted(value)} ({messages.first_few(names)})'

    return messages.first_few(
        sorted(names_by_value.items()), _MOST_VALUES, show
    )
