# SPDX-License-Identifier: Apache-2.0

"""Checks names, UUIDs and amounts as placement does.

Each function takes a value, and what it is part of, for the error. It returns
the value, or raises exception.InvalidValue, which says what form is expected.
Placement's own patterns are followed (placement.schemas.common). An amount is
read by the policies too, and stands with them.
"""

import functools
import re
import typing

from nova_ext_sched import exception
from nova_ext_sched.policy import amount


def _check(
    pattern: str, expected: str, value: typing.Any, where: str
) -> typing.Any:
    if not isinstance(value, str) or not re.fullmatch(pattern, value):
        raise exception.InvalidValue(where=where, expected=expected, got=value)
    return value


check_amount = amount.check
#: A trait; placement may not know it.
check_trait = functools.partial(
    _check, '[A-Z0-9_]{1,255}', 'a trait name of A-Z, 0-9 and _'
)
#: A trait that an operator may create.
check_custom_trait = functools.partial(
    _check,
    'CUSTOM_[A-Z0-9_]{1,248}',
    'a trait name of CUSTOM_ followed by A-Z, 0-9 and _',
)
check_resource_class = functools.partial(
    _check, '[A-Z0-9_]{1,255}', 'a resource class name of A-Z, 0-9 and _'
)
#: The suffix of a granular request group; empty for the group without one.
check_suffix = functools.partial(
    _check,
    '[a-zA-Z0-9_-]{0,64}',
    'a suffix of 1 to 64 characters a-z, A-Z, 0-9, _ and -',
)


def check_uuid(value: typing.Any, where: str) -> str:
    """Return a UUID in lower case.

    Placement and nova compare UUIDs as strings on SQLite and PostgreSQL, and
    write them in lower case. One without dashes is refused for that reason.
    """
    pattern = '[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}'
    expected = 'a UUID of the form 8-4-4-4-12 hexadecimal digits'
    return _check(pattern, expected, value, where).lower()
