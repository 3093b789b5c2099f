# SPDX-License-Identifier: Apache-2.0

"""An integer, 1 or more, as people write it.

The value of a rule that nova has stored is read by
:func:`nova_ext_sched.policy.anti_affinity.read_value` instead: it takes what
nova's own filter takes.
"""

import re
import typing

from nova_ext_sched import exception

EXPECTED = 'an integer, 1 or more'

_DIGITS = re.compile(r'0{0,99}[1-9][0-9]{0,17}')


def check(value: typing.Any, where: str) -> int:
    """Return an amount that is an integer or its digits.

    ``int`` alone would take ``+3``, ``1_000``, the digits of other scripts and
    any length too.

    :param where: the path of the value, for the error
    :raises exception.InvalidValue: it has another form
    """
    if not _DIGITS.fullmatch(str(value)):
        raise exception.InvalidValue(where=where, expected=EXPECTED, got=value)
    return int(value)
