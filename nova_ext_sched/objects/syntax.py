# SPDX-License-Identifier: Apache-2.0

"""What placement accepts as a name, a UUID or an amount.

Each function returns the value, or raises exception.InvalidValue, which says
what form is expected. Placement's own patterns are followed
(placement.schemas.common). ``where`` is what the value is part of. What the
policies read too, the name of a trait and an amount, stands with them.
"""

import re
import typing

from nova_ext_sched import exception
from nova_ext_sched.policy import amount
from nova_ext_sched.policy import isolation

_UUID = re.compile(r'[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}')
_SUFFIX = re.compile(r'[a-zA-Z0-9_-]{1,64}')

check_amount = amount.check


def check_trait(value: str, where: str) -> str:
    """Return ``value`` if it can be a trait; placement may not know it."""
    return _check(
        _is_name(value), value, where, 'a trait name of A-Z, 0-9 and _'
    )


def check_custom_trait(value: str, where: str) -> str:
    """Return ``value`` if it can be a trait that an operator creates."""
    expected = 'a trait name of CUSTOM_ followed by A-Z, 0-9 and _'
    is_custom = _is_name(value) and re.match('CUSTOM_.', value)
    return _check(is_custom, value, where, expected)


def check_resource_class(value: str, where: str) -> str:
    """Return ``value`` if it can be a resource class."""
    expected = 'a resource class name of A-Z, 0-9 and _'
    return _check(_is_name(value), value, where, expected)


def check_uuid(value: str, where: str) -> str:
    """Return a UUID in lower case.

    Placement and nova compare UUIDs as strings on SQLite and PostgreSQL, and
    write them in lower case. One without dashes is refused for that reason.
    """
    expected = 'a UUID of the form 8-4-4-4-12 hexadecimal digits'
    is_uuid = isinstance(value, str) and _UUID.fullmatch(value)
    return _check(is_uuid, value, where, expected).lower()


def check_suffix(value: str, where: str) -> str:
    """Return ``value`` if it can be the suffix of a granular request group."""
    expected = 'a suffix of 1 to 64 characters a-z, A-Z, 0-9, _ and -'
    is_suffix = isinstance(value, str) and _SUFFIX.fullmatch(value)
    return _check(is_suffix, value, where, expected)


def _is_name(value: typing.Any) -> bool:
    # Placement has one pattern for traits and resource classes.
    return isinstance(value, str) and isolation.is_trait_name(value)


def _check(is_valid: typing.Any, value: str, where: str, expected: str) -> str:
    if not is_valid:
        raise exception.InvalidValue(where=where, expected=expected, got=value)
    return value
