# SPDX-License-Identifier: Apache-2.0
"""What a flavor wants of one key, and how a conflict about it is told.

A part of :mod:`nova_ext_sched.policy.aggregate_instance_type`.
"""

from collections.abc import Iterable
from collections.abc import Mapping

from nova_ext_sched import exception
from nova_ext_sched.policy import expression as language
from nova_ext_sched.policy import force_metadata_check

# Operators' values reach the log: bounded, whatever their length.
_LONGEST = 1000


class Rule:
    """What a flavor wants of one key of the aggregates' metadata.

    :ivar wants: what the extra spec accepts; where it is malformed, the
        sentence that says so
    :ivar place: number of the rule's lowest bit in a digest

    :param flavor: the flavor's name
    :param key: the key in metadata
    :param spec: the extra spec as the flavor has it; None where the flavor
        is silent about the key, and so wants absence
    :param value: the extra spec's value
    """

    def __init__(
        self, flavor: str, key: str, spec: str | None, value: str, place: int
    ) -> None:
        self.key = key
        self.spec = spec
        self.place = place
        self._flavor = flavor
        self._value = value
        self._where = f'flavor {flavor}: extra spec {spec!r}'
        self.wants: language.Expression | str = language.ABSENCE
        if spec is not None:
            try:
                self.wants = language.parse(value, self._where)
            except exception.InvalidValue as exc:
                self.wants = _bounded(str(exc))

    def faults(
        self,
        force: force_metadata_check.ForceMetadataCheck,
        name: str,
        metadata: Mapping[str, str],
    ) -> list[str]:
        """Return what is malformed where an aggregate has the key.

        :param name: the aggregate's name
        :returns: a sentence each, which names aggregate or flavor, key and
            value
        """
        if self.key not in metadata:
            return []
        if isinstance(self.wants, str):
            return [self.wants]
        value = metadata[self.key]
        where = f'aggregate {name}: metadata {self.key!r}'
        if force.forces(metadata, self.key):
            try:
                offer = language.parse_values(value, where)
            except exception.InvalidValue as exc:
                return [_bounded(str(exc))]
        elif self.spec is None:
            return []
        else:
            offer = language.literal(language.split(value))
        found = [
            f'{where}: expected numbers, because flavor {self._flavor} '
            f'compares them by {self._value!r}, got {got!r}'
            for got in self.wants.unreadable(offer)
        ]
        if not found and not self.wants.meets(offer):
            found = [
                f'{self._where}: expected a number, because aggregates '
                f'compare it by {value!r}, got {got!r}'
                for got in offer.unreadable(self.wants)
            ]
        return list(map(_bounded, found))

    def reason(
        self,
        force: force_metadata_check.ForceMetadataCheck,
        aggregates: Iterable[tuple[str, Mapping[str, str]]],
    ) -> str:
        """Return why a host is rejected by this rule: wanted and offered.

        :param aggregates: name and metadata of each aggregate of the host
        """
        offers: dict[str, list[str]] = {}
        forcing = []
        for name, metadata in aggregates:
            if self.key in metadata:
                offers.setdefault(metadata[self.key], []).append(name)
                if force.forces(metadata, self.key):
                    forcing.append(name)
        wants = (
            f'has no extra spec {self.key!r}'
            if self.spec is None
            else f'wants {self._value!r} of {self.key!r}'
        )
        offered = ', '.join(
            f'{value!r} ({", ".join(names)})'
            for value, names in sorted(offers.items())
        )
        forced = (
            f'; {force_metadata_check.FLAG} is on in {", ".join(forcing)}'
            if forcing
            else ''
        )
        return _bounded(
            f'flavor {self._flavor} {wants} and its aggregates offer '
            f'{offered or "no such key"}{forced}'
        )


def _bounded(sentence: str) -> str:
    if len(sentence) <= _LONGEST:
        return sentence
    return sentence[:_LONGEST] + '...'
