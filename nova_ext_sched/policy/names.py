# SPDX-License-Identifier: Apache-2.0

"""Names of reservations and keys, as members of projects write them."""

from collections.abc import Collection

from nova_ext_sched import exception
from nova_ext_sched import messages

#: Things that one request may name. Members write thousands in one call.
MOST = 100


def check(names: Collection[str], things: str, where: str) -> None:
    """Refuse a request that has too many names, or a malformed one.

    A name has up to 255 printable characters, each up to U+FFFF: as long as
    nova's columns, and what every database takes.

    :param names: the names in the request
    :param things: the kind of named objects, in the plural
    :param where: their place, for the message
    :raises exception.RequestRefused: so the request has no host
    """
    if len(names) > MOST:
        raise exception.RequestRefused(
            f'the request names {len(names)} {things}: expected at most '
            f'{MOST}',
            by_member=True,
        )
    for name in sorted(names):
        if not messages.is_clean(name):
            raise exception.RequestRefused(
                f'{where}: expected a name of up to 255 printable '
                f'characters, got {messages.clean(name)}',
                by_member=True,
            )
