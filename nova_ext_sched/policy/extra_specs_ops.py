# SPDX-License-Identifier: Apache-2.0

"""The operators of extra specs, and what accepts a value as it stands.

They repeat nova.scheduler.filters.extra_specs_ops, so that tools on a
workstation without nova decide as the scheduler does. A test compares them
with nova's.
"""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import itertools
import math
import operator

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
        """Return whether a value is found that both accept.

        This tries the samples of both and the two operands joined. True is
        always right. False is right for a literal with any, two operators on
        numbers, two on the order of strings, two on substrings, and a
        substring with a lower bound or ``s!=``. For other mixtures (``<= 0``
        with ``<in> 7``) a value may exist that is not found: the result is
        then False, and the host is rejected.
        """
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


def literal(value: str) -> Operator:
    """Return what accepts a value as it stands."""
    return Operator(value.__eq__, value, (value,), is_literal=True)


def number(name: str, words: Sequence[str]) -> Operator:
    """Return one of NUMBERS with its operand, the first word.

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
    """Return one of STRINGS with its operand, which is not empty.

    :raises IndexError: there is none
    """
    operand = words[0]
    if name == EQUAL:
        return literal(operand)
    compare = STRINGS[name]
    # The empty string is the first of all, and no string stands between one
    # and the same with a NUL after it.
    samples = ('', operand, operand + '\0')
    return Operator(lambda value: compare(value, operand), operand, samples)


def substring(name: str, words: Sequence[str]) -> Operator:
    """Return what accepts the strings that contain one operand, or all.

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
