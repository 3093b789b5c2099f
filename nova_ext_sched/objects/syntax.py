# SPDX-License-Identifier: Apache-2.0

"""What placement accepts as a name, a UUID or an amount.

Each function returns the value, or raises exception.InvalidValue, which says
what form is expected. Placement's own patterns are followed
(placement.schemas.common). ``where`` is what the value is part of.
"""

import re
import typing

from nova_ext_sched import exception

_NAME = re.compile(r'[A-Z0-9_]{1,255}')
_CUSTOM_NAME = re.compile(r'CUSTOM_[A-Z0-9_]{1,248}')
_UUID = re.compile(r'[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}')
_SUFFIX = re.compile(r'[a-zA-Z0-9_-]{1,64}')
_AMOUNT = re.compile(r'0*[1-9][0-9]{0,17}')

CUSTOM = 'CUSTOM_'


def check_trait(value: str, where: str) -> str:
    """Return ``value`` if it can be a trait; placement may not know it."""
    return _check(_NAME, value, where, 'a trait name of A-Z, 0-9 and _')


def check_custom_trait(value: str, where: str) -> str:
    """Return ``value`` if it can be a trait that an operator creates."""
    expected = 'a trait name of CUSTOM_ followed by A-Z, 0-9 and _'
    return _check(_CUSTOM_NAME, value, where, expected)


def check_resource_class(value: str, where: str) -> str:
    """Return ``value`` if it can be a resource class."""
    expected = 'a resource class name of A-Z, 0-9 and _'
    return _check(_NAME, value, where, expected)


def check_uuid(value: str, where: str) -> str:
    """Return a UUID in lower case.

    Placement and nova compare UUIDs as strings on SQLite and PostgreSQL, and
    write them in lower case. One without dashes is refused for that reason.
    """
    expected = 'a UUID of the form 8-4-4-4-12 hexadecimal digits'
    return _check(_UUID, value, where, expected).lower()


def check_suffix(value: str, where: str) -> str:
    """Return ``value`` if it can be the suffix of a granular request group."""
    expected = 'a suffix of 1 to 64 characters a-z, A-Z, 0-9, _ and -'
    return _check(_SUFFIX, value, where, expected)


def check_amount(value: int | str, where: str) -> int:
    """Return an amount that can be asked for, given also as its digits."""
    if not _AMOUNT.fullmatch(str(value)):
        raise exception.InvalidValue(
            where=where, expected='an integer, 1 or more', got=value
        )
    return int(value)


def _check(
    pattern: re.Pattern[str], value: typing.Any, where: str, expected: str
) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise exception.InvalidValue(where=where, expected=expected, got=value)
    return value
