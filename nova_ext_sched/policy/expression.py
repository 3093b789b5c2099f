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
and ``<or>`` reads every second word. The operators repeat nova's, so that
tools on a workstation without nova decide as the scheduler does. A test
compares them with nova's.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import itertools
import math
import operator

from nova_ext_sched import exception

ANY = '*'
ABSENT = '~'
FORBIDDEN = '!'
OR = '<or>'

SENTINELS = frozenset((ANY, ABSENT, FORBIDDEN))

NUMBERS: dict[str, Callable[[float, float], bool]] = {
    '=': operator.ge,
    '>=': operator.ge,
    '<=': operator.le,
    '==': operator.eq,
    '!=': operator.ne,
}

EQUAL = 's=='

STRINGS: dict[str, Callable[[str, str], bool]] = {
    EQUAL: operator.eq,
    's!=': operator.ne,
    's<': operator.lt,
    's<=': operator.le,
    's>': operator.gt,
    's>=': operator.ge,
}

IN = '<in>'
ALL_IN = '<all-in>'


def is_number(value: str) -> bool:
    """Return whether the operators on numbers can read ``value``."""
    try:
        float(value)
    except ValueError:
        return False
    return True


@dataclasses.dataclass(frozen=True, slots=True)
class Operator:
    """One operator with its operand.

    :param accepts: whether it accepts a value; never raises
    :param operand: the operand as one string
    :param samples: values at the borders of what it accepts, of which at
        least one is accepted where any value is (``== nan`` accepts none)
    :param compares_numbers: whether a value that is no number is a fault
    :param is_literal: whether it accepts the operand and nothing else
    """

    accepts: Callable[[str], bool]
    operand: str
    samples: tuple[str, ...]
    compares_numbers: bool = False
    is_literal: bool = False

    def meets(self, other: 'Operator') -> bool:
        """Return whether it finds a value that both accept.

        This tries the samples of both and the two operands joined. True is
        always right. False is right for a literal with any, two operators on
        numbers, two on the order of strings, two on substrings, and a
        substring with a lower bound or ``s!=``. For other mixtures (``<= 0``
        with ``<in> 7``) a value may exist that is not found: the result is
        then False, and the host is rejected.
        """
        if self.is_literal:
            return other.accepts(self.operand)
        return any(
            self.accepts(value) and other.accepts(value)
            for value in itertools.chain(
                self.samples,
                other.samples,
                (self.operand + other.operand, other.operand + self.operand),
            )
        )


#: What accepts every value.
ANYTHING = Operator(lambda value: True, '', ('',))


def number(name: str, words: Sequence[str]) -> Operator:
    """Parse a numeric operator, one of NUMBERS; its operand is the first word.

    :raises ValueError: it is no number
    :raises IndexError: there is none
    """
    operand = words[0]
    compare = NUMBERS[name]
    bound = float(operand)

    def accepts(value: str) -> bool:
        try:
            return compare(float(value), bound)
        except ValueError:
            return False

    neighbours = (
        math.nextafter(bound, -math.inf),
        math.nextafter(bound, math.inf),
    )
    return Operator(
        accepts,
        operand,
        (operand, *map(repr, neighbours), '0', '1', '2'),
        compares_numbers=True,
    )


def string(name: str, words: Sequence[str]) -> Operator:
    """Parse a string operator, one of STRINGS; its operand is the first word.

    :raises IndexError: there is none
    """
    operand = words[0]
    compare = STRINGS[name]
    return Operator(
        lambda value: compare(value, operand),
        operand,
        # The empty string is the first of all, and no string stands between
        # one and the same with a NUL after it.
        ('', operand, operand + '\0'),
        is_literal=name == EQUAL,
    )


def substring(name: str, words: Sequence[str]) -> Operator:
    """Parse an operator for strings that contain its one operand, or all.

    :raises IndexError: there is none
    """
    first, more = words[0], words[1:]
    parts = (first, *more) if name == ALL_IN else (first,)
    joined = ''.join(parts)
    # '!' is the first printable character, for upper bounds.
    return Operator(
        lambda value: all(part in value for part in parts),
        joined,
        (joined, '!' + joined),
    )


#: What makes each operator, given its name and the words after it.
OPERATORS: dict[str, Callable[[str, Sequence[str]], Operator]] = {
    **dict.fromkeys(NUMBERS, number),
    **dict.fromkeys(STRINGS, string),
    IN: substring,
    ALL_IN: substring,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Expression:
    """The states of a key that an expression, or several together, accept.

    :param absent: whether the absence of the key is accepted
    """

    operators: tuple[Operator, ...] = ()
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
                if one.is_literal and not is_number(one.operand)
            }
        )


#: What an absent key accepts.
ABSENCE = Expression(absent=True)


def literal(values: Iterable[str]) -> Expression:
    """Return an expression that accepts exactly these values."""
    return Expression(tuple(string(EQUAL, (value,)) for value in values))


def union(expressions: Iterable[Expression]) -> Expression:
    """Return an expression that accepts whatever any of these accepts."""
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
    first, *operands = words or (text,)
    if first == OR:
        return _parse_or(text, operands)
    if make := OPERATORS.get(first):
        try:
            return Expression((make(first, operands),))
        except (IndexError, ValueError):
            operand = 'NUMBER' if first in NUMBERS else 'WORD'
            more = ' [WORD ...]' if first == ALL_IN else ''
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
        return Expression((ANYTHING,))
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
    return Expression(
        literal(set(parts) - SENTINELS).operators
        + ((ANYTHING,) if ANY in parts else ()),
        ABSENT in parts,
    )
