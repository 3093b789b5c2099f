# SPDX-License-Identifier: Apache-2.0

"""What placement accepts as a name, a UUID or an amount.

Each function returns the value that it was given, or says which form was
expected and what was got. Placement's own patterns are followed
(placement.schemas.common); an undashed UUID, which placement takes in some
places, is refused, because it compares UUIDs as strings.
"""

import re

from nova_ext_sched import exception

_NAME = re.compile(r'[A-Z0-9_]{1,255}')
_UUID = re.compile(r'[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}')
_SUFFIX = re.compile(r'[a-zA-Z0-9_-]{1,64}')
_AMOUNT = re.compile(r'[0-9]{1,18}')

CUSTOM = 'CUSTOM_'


def check_trait(value: str, where: str) -> str:
    """Return ``value`` if it can be the name of a trait.

    Whether placement knows the trait is another question.

    :param where: what the value is part of, for the error
    :raises exception.InvalidValue: it is of another form
    """
    if not _NAME.fullmatch(value):
        raise exception.InvalidValue(
            where=where,
            expected='a trait name of A-Z, 0-9 and _',
            got=value,
        )
    return value


def check_custom_trait(value: str, where: str) -> str:
    """Return ``value`` if it can be the name of a trait of the operator's.

    :raises exception.InvalidValue: it is of another form
    """
    if not (value.startswith(CUSTOM) and _NAME.fullmatch(value)) or (
        value == CUSTOM
    ):
        raise exception.InvalidValue(
            where=where,
            expected='a trait name of CUSTOM_ and A-Z, 0-9 and _ after it',
            got=value,
        )
    return value


def check_resource_class(value: str, where: str) -> str:
    """Return ``value`` if it can be the name of a resource class.

    :raises exception.InvalidValue: it is of another form
    """
    if not _NAME.fullmatch(value):
        raise exception.InvalidValue(
            where=where,
            expected='a resource class name of A-Z, 0-9 and _',
            got=value,
        )
    return value


def check_uuid(value: str, where: str) -> str:
    """Return ``value`` if it is a UUID with its dashes, in either case.

    :raises exception.InvalidValue: it is of another form
    """
    if not _UUID.fullmatch(value):
        raise exception.InvalidValue(
            where=where,
            expected='a UUID of the form 8-4-4-4-12 hexadecimal digits',
            got=value,
        )
    return value


def check_suffix(value: str, where: str) -> str:
    """Return ``value`` if it can be the suffix of a granular request group.

    :raises exception.InvalidValue: it is of another form
    """
    if not _SUFFIX.fullmatch(value):
        raise exception.InvalidValue(
            where=where,
            expected='a suffix of 1 to 64 characters a-z, A-Z, 0-9, _ and -',
            got=value,
        )
    return value


def check_amount(value: int, where: str) -> int:
    """Return ``value`` if it is an amount that can be asked for.

    :raises exception.InvalidValue: it is less than 1
    """
    if value < 1:
        raise exception.InvalidValue(
            where=where, expected='an integer, 1 or more', got=value
        )
    return value


def parse_amount(text: str, where: str) -> int:
    """Return the amount that ``text`` writes in decimal digits.

    :raises exception.InvalidValue: it is no integer of 1 or more
    """
    if not _AMOUNT.fullmatch(text):
        raise exception.InvalidValue(
            where=where, expected='an integer, 1 or more', got=text
        )
    return check_amount(int(text), where)
