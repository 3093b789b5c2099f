# SPDX-License-Identifier: Apache-2.0

"""The language of extra specs: which states of a key an expression accepts.

A key is in one of these states: it has a value, or it is absent. Follows the
specification "Aggregate Instance Type Filter" for the sentinels and
nova.scheduler.filters.extra_specs_ops for everything else:

==========================  ================================================
expression                  accepts
==========================  ================================================
``*``                       any value
``~``                       absence
``!``                       absence; with anything beside it: malformed
``<or> a <or> b``           a, b; each may be ``*`` or ``~``
``= 4``, ``>= 4``           numbers from 4 on
``<= 4``, ``== 4``,         numbers up to 4, equal to 4, other than 4
``!= 4``
``s== a``, ``s!= a``,       strings equal to a, other than a, and before or
``s< a``, ``s<= a``,        after a in the order of code points
``s> a``, ``s>= a``
``<in> a``                  strings that contain a
``<all-in> a b``            strings that contain a and b
anything else               the value itself, as it is written
==========================  ================================================

As with nova's, the words after the first operand of an operator are not read,
and ``<or>`` reads every second word.
"""

from collections.abc import Iterable
import dataclasses
import itertools

from nova_ext_sched import exception
from nova_ext_sched.policy import extra_specs_ops

ANY = '*'
ABSENT = '~'
FORBIDDEN = '!'
OR = '<or>'
IN = '<in>'
ALL_IN = '<all-in>'
EQUAL_STRING = 's=='

SENTINELS = frozenset((ANY, ABSENT, FORBIDDEN))


@dataclasses.dataclass(frozen=True, slots=True)
class Expression:
    """The states of a key that an expression, or several together, accept.

    :param values: values that are accepted as they stand
    :param absent: whether the absence of the key is accepted
    """

    values: frozenset[str] = frozenset()
    operators: tuple[extra_specs_ops.Operator, ...] = ()
    absent: bool = False

    def meets(self, other: 'Expression') -> bool:
        """Return whether a state exists that both accept.

        ===========  =====  ===================  =======
        accepted by  value  operator, ``*`` too  absence
        ===========  =====  ===================  =======
        value        equal  if it accepts it     no
        operator     as     Operator.meets       no
        absence      no     no                   yes
        ===========  =====  ===================  =======

        An expression that accepts several states meets another if one of them
        does.
        """
        return (self.absent and other.absent) or self.meets_value(other)

    def meets_value(self, other: 'Expression') -> bool:
        """Return whether a value exists that both accept."""
        return (
            not self.values.isdisjoint(other.values)
            or self._operator_accepts(other.values)
            or other._operator_accepts(self.values)
            or any(
                ours.meets(theirs)
                for ours, theirs in itertools.product(
                    self.operators, other.operators
                )
            )
        )

    def unreadable(self, other: 'Expression') -> list[str]:
        """Return the values of ``other`` that an operator here cannot read.

        nova's matcher raises on these. They are always faults, whatever else
        is accepted, so the answer does not depend on which value is tried
        first.
        """
        if not any(op.compares_numbers for op in self.operators):
            return []
        return sorted(
            value
            for value in other.values
            if not extra_specs_ops.is_number(value)
        )

    def _operator_accepts(self, values: Iterable[str]) -> bool:
        return any(
            op.accepts(value) for op in self.operators for value in values
        )


#: What an absent key accepts.
ABSENCE = Expression(absent=True)


def literal(values: Iterable[str]) -> Expression:
    """Return the expression that accepts the values as they stand."""
    return Expression(values=frozenset(values))


def union(expressions: Iterable[Expression]) -> Expression:
    """Return the expression that accepts what any of them accepts."""
    expressions = list(expressions)
    return Expression(
        values=frozenset().union(*(e.values for e in expressions)),
        operators=tuple(op for e in expressions for op in e.operators),
        absent=any(e.absent for e in expressions),
    )


def parse(text: str) -> Expression:
    """Read an expression.

    :raises exception.InvalidValue: nova's matcher would raise, or the text
        cannot mean what it seems to
    """
    words = text.split()
    if not words:
        return literal((text,))
    first, *operands = words
    if first == OR:
        return _parse_or(text, operands)
    if first in extra_specs_ops.NUMBERS:
        if not operands or not extra_specs_ops.is_number(operands[0]):
            raise _invalid(f"'{first} NUMBER'", text)
        return _operator(extra_specs_ops.number(first, operands[0]))
    if first in (*extra_specs_ops.STRINGS, EQUAL_STRING, IN, ALL_IN):
        if not operands:
            more = ' [WORD ...]' if first == ALL_IN else ''
            raise _invalid(f"'{first} WORD{more}'", text)
        if first == EQUAL_STRING:
            return literal(operands[:1])
        if first in extra_specs_ops.STRINGS:
            return _operator(extra_specs_ops.string(first, operands[0]))
        needles = operands if first == ALL_IN else operands[:1]
        return _operator(extra_specs_ops.substring(needles))
    if FORBIDDEN in words:
        if operands:
            raise _invalid(
                f"{FORBIDDEN!r} with nothing beside it ('s== WORD' compares "
                f'with a word that is {FORBIDDEN!r})',
                text,
            )
        return ABSENCE
    if words == [ANY]:
        return _operator(extra_specs_ops.ANYTHING)
    if words == [ABSENT]:
        return ABSENCE
    return literal((text,))


def parse_values(text: str) -> Expression:
    """Read the value of a metadata item whose parts are expressions.

    :param text: expressions, separated by commas; they accept together
    :raises exception.InvalidValue: one of them is malformed
    """
    parts = split(text)
    if FORBIDDEN in parts and len(parts) > 1:
        raise _invalid(f'{FORBIDDEN!r} with nothing beside it', text)
    return union(parse(part) for part in parts)


def split(text: str) -> set[str]:
    """Return the values of a metadata item: nova splits them at commas."""
    return {part.strip() for part in text.split(',')}


def _operator(operator: extra_specs_ops.Operator) -> Expression:
    return Expression(operators=(operator,))


def _invalid(expected: str, text: str) -> exception.InvalidValue:
    return exception.InvalidValue(
        where='expression', expected=expected, got=text
    )


def _parse_or(text: str, words: list[str]) -> Expression:
    parts, separators = words[::2], words[1::2]
    if not parts:
        raise _invalid(f"'{OR} VALUE [{OR} VALUE ...]'", text)
    # nova takes every second word whatever stands between. With a sentinel
    # among the words it is not nova's language, and a misspelling would pass
    # unnoticed.
    if not SENTINELS.isdisjoint(words) and (
        FORBIDDEN in words
        or len(separators) == len(parts)
        or any(word != OR for word in separators)
    ):
        raise _invalid(
            f"'{OR} VALUE [{OR} VALUE ...]', each VALUE a word, {ANY!r} or "
            f'{ABSENT!r}',
            text,
        )
    return Expression(
        values=frozenset(parts) - SENTINELS,
        operators=(extra_specs_ops.ANYTHING,) if ANY in parts else (),
        absent=ABSENT in parts,
    )
