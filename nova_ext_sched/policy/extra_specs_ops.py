# SPDX-License-Identifier: Apache-2.0

"""The operators of extra specs that accept more values than can be listed.

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

STRINGS: dict[str, Callable[[str, str], bool]] = {
    's!=': operator.ne,
    's<': operator.lt,
    's<=': operator.le,
    's>': operator.gt,
    's>=': operator.ge,
}


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
    """

    accepts: Callable[[str], bool]
    operand: str
    samples: tuple[str, ...]
    compares_numbers: bool = False

    def meets(self, other: 'Operator') -> bool:
        """Return whether a value is found that both accept.

        This tries the samples of both and the two operands joined. True is
        always right. False is right for two operators on numbers, two on the
        order of strings, two on substrings, and a substring with a lower
        bound or ``s!=``. For other mixtures (``<= 0`` with ``<in> 7``) a value
        may exist that is not found: the result is then False, and the host is
        rejected.
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


def number(name: str, operand: str) -> Operator:
    """Return one of NUMBERS with its operand, which must be a number."""
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


def string(name: str, operand: str) -> Operator:
    """Return one of STRINGS with its operand, which must not be empty."""
    compare = STRINGS[name]
    # The empty string is the first of all, and no string stands between one
    # and the same with a NUL after it.
    samples = ('', operand, operand + '\0')
    return Operator(lambda value: compare(value, operand), operand, samples)


def substring(operands: Sequence[str]) -> Operator:
    """Return what accepts the strings that contain all the operands."""
    joined = ''.join(operands)
    # '!' is the first printable character, for upper bounds.
    return Operator(
        lambda value: all(part in value for part in operands),
        joined,
        (joined, '!' + joined),
    )
