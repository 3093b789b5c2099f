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

SENTINELS = frozenset((ANY, ABSENT, FORBIDDEN))


@dataclasses.dataclass(frozen=True, slots=True)
class Expression:
    """The states of a key that an expression, or several together, accept.

    :param absent: whether the absence of the key is accepted
    """

    operators: tuple[extra_specs_ops.Operator, ...] = ()
    absent: bool = False

    def meets(self, other: 'Expression') -> bool:
        """Return whether a state exists that both accept."""
        return (self.absent and other.absent) or self.meets_value(other)

    def meets_value(self, other: 'Expression') -> bool:
        """Return whether a value exists that both accept."""
        return any(
            ours.meets(theirs)
            for ours, theirs in itertools.product(
                self.operators, other.operators
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
            {
                one.operand
                for one in other.operators
                if one.is_literal
                and not extra_specs_ops.is_number(one.operand)
            }
        )


#: What an absent key accepts.
ABSENCE = Expression(absent=True)


def literal(values: Iterable[str]) -> Expression:
    """Return the expression that accepts the values as they stand."""
    return Expression(tuple(map(extra_specs_ops.literal, values)))


def union(expressions: Iterable[Expression]) -> Expression:
    """Return the expression that accepts what any of them accepts."""
    expressions = list(expressions)
    return Expression(
        tuple(op for one in expressions for op in one.operators),
        any(one.absent for one in expressions),
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
    if make := extra_specs_ops.OPERATORS.get(first):
        try:
            return Expression((make(first, operands),))
        except (IndexError, ValueError):
            operand = 'NUMBER' if first in extra_specs_ops.NUMBERS else 'WORD'
            more = ' [WORD ...]' if first == extra_specs_ops.ALL_IN else ''
            raise _invalid(f"'{first} {operand}{more}'", text) from None
    if FORBIDDEN in words:
        if operands:
            raise _invalid(
                f"{FORBIDDEN!r} with nothing beside it ('s== WORD' compares "
                f'with a word that is {FORBIDDEN!r})',
                text,
            )
        return ABSENCE
    if words == [ANY]:
        return Expression((extra_specs_ops.ANYTHING,))
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
    values = map(extra_specs_ops.literal, set(parts) - SENTINELS)
    anything = (extra_specs_ops.ANYTHING,) if ANY in parts else ()
    return Expression((*values, *anything), ABSENT in parts)
