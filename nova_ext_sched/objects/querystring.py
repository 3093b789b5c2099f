# SPDX-License-Identifier: Apache-2.0

"""The forms of the parameters of a request group in a placement query.

Follows specs alloc-candidates-member-of and negative-aggregate-membership,
and placement.lib and placement.util, which parse the same on the server:

=========================  ================================================
``resources=A:1,B:2``      amounts by resource class
``required=X,!Y``          X is required, Y forbidden
``member_of=<uuid>``       the provider is in the aggregate
``member_of=in:<u>,<v>``   in one or more of them; repeated, each must hold
``member_of=!<uuid>``      not in the aggregate
``member_of=!in:<u>,<v>``  in none of them
``in_tree=<uuid>``         the provider is in the tree of that provider
=========================  ================================================
"""

from collections.abc import Iterable
import re

from nova_ext_sched import exception
from nova_ext_sched.policy import syntax

#: A parameter of a request group: its kind, and its suffix or None.
KEY = re.compile(
    r'(resources|required|member_of|in_tree)([a-zA-Z0-9_-]{1,64})?'
)

Pairs = list[tuple[str, str]]


def parse_resources(value: str, where: str) -> dict[str, int]:
    """Return the amounts that a ``resources`` parameter asks for.

    :raises exception.InvalidValue: it is of another form, or names a class
        twice
    """
    resources: dict[str, int] = {}
    for item in value.split(','):
        name, colon, amount = item.partition(':')
        if not colon or name in resources:
            raise exception.InvalidValue(
                where=where,
                expected='VCPU:2,MEMORY_MB:1024 with each class once',
                got=value,
            )
        syntax.check_resource_class(name, where)
        resources[name] = syntax.parse_amount(amount, f'{where} {name}')
    return resources


def parse_traits(value: str, where: str) -> tuple[set[str], set[str]]:
    """Return the traits that a parameter requires and those it forbids.

    :raises exception.InvalidValue: it is of another form; ``in:X,Y`` (one of
        several traits, microversion 1.39) is no form of this package
    """
    required: set[str] = set()
    forbidden: set[str] = set()
    if value.startswith('in:'):
        raise exception.InvalidValue(
            where=where, expected='traits of the form X,!Y', got=value
        )
    for item in value.split(','):
        if item.startswith('!'):
            forbidden.add(syntax.check_trait(item[1:], where))
        else:
            required.add(syntax.check_trait(item, where))
    return required, forbidden


def format_traits(required: Iterable[str], forbidden: Iterable[str]) -> str:
    """Return the value of a ``required`` parameter, sorted."""
    return ','.join(
        [*sorted(required), *('!' + trait for trait in sorted(forbidden))]
    )


def parse_member_of(value: str, where: str) -> tuple[set[str], set[str]]:
    """Return the OR set that a ``member_of`` requires, and what it forbids.

    One of the two is empty.

    :raises exception.InvalidValue: it is of another form; ``!`` inside of
        ``in:`` is one
    """
    body = value.removeprefix('!')
    listed = body.startswith('in:')
    items = body.removeprefix('in:').split(',') if listed else [body]
    if listed and any(item.startswith('!') for item in items):
        raise exception.InvalidValue(
            where=where,
            expected='member_of=in:<uuid>,<uuid> for one of several and '
            'another member_of=!in:<uuid>,<uuid> for none of several; ! '
            'cannot stand inside of in:',
            got=value,
        )
    uuids = {syntax.check_uuid(item, where) for item in items}
    if body is value:
        return uuids, set()
    return set(), uuids
