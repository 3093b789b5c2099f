# SPDX-License-Identifier: Apache-2.0

"""Relative room: the share of a host that a request leaves free.

The scarcest of the resources that the request takes decides. Of each, nova
knows how much there is, with its allocation ratio, and how much is used.

=====================================  ====================================
a resource                             its share
=====================================  ====================================
the request takes some of it           what is free after the request, of
                                       all that there is
more is used than there is             0
the request takes none of it           does not count
the host reports none                  does not count: placement found it
                                       on another provider
=====================================  ====================================

=====================================  ====================================
resources that count                   share of the host
=====================================  ====================================
at least one                           the smallest one
none                                   0
=====================================  ====================================
"""

from collections.abc import Iterable

from nova_ext_sched.policy import declaration

DECLARATION = declaration.Policy(
    name='relative-room',
    summary='Servers go to the host with the largest free share of its '
    'scarcest resource, whatever its size.',
    weigher='RelativeRoomWeigher',
    prefers='the largest free share of the scarcest resource',
)


def find_share(amounts: Iterable[tuple[float, float, float]]) -> float:
    """Return the smallest free share after the request, from 0 to 1.

    :param amounts: of each resource, in any unit: all of it, times its
        allocation ratio; what servers use, and what is reserved; and what the
        request asks for
    """
    share = 1.0
    counts = False
    for total, used, asked in amounts:
        if total > 0 and asked > 0:
            counts = True
            free = (total - used - asked) / total
            if free < share:
                share = free
    return max(0.0, share) if counts else 0.0
