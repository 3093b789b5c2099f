# SPDX-License-Identifier: Apache-2.0

"""Licences together: servers with a licence share few hosts.

Which licences there are is named by two options, ``licence_traits`` and
``licence_os_types``. A request has those of its traits and that of its image's
``os_type``.

============  =====================  ========================================
the request   its licences are used  order of the hosts
============  =====================  ========================================
no licence    any                    no preference
licences      on some hosts          those with most of its licences first;
                                     of these, the licences' own order
licences      nowhere                the licences' own order
licences      nobody knows           the licences' own order
============  =====================  ========================================

The licences' own order depends on their names and the hosts' alone. So two
schedulers that know nothing of each other choose the same host, and the next
one when it is full.
"""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
import zlib

from nova_ext_sched.policy import declaration

DECLARATION = declaration.Policy(
    name='licences',
    summary='Servers with a licence go to hosts where it is used already, so '
    'that few hosts need one.',
    weigher='LicencesWeigher',
    prefers='hosts with servers of the same licence',
    turned_on_by='[nova_ext_sched] licence_traits or licence_os_types',
    turned_on=lambda conf: bool(
        conf.nova_ext_sched.licence_traits
        or conf.nova_ext_sched.licence_os_types
    ),
    without_weigher='servers with a licence go to any host',
)


def find(
    traits: Collection[str],
    os_type: str | None,
    licence_traits: Collection[str],
    licence_os_types: Collection[str],
) -> frozenset[str]:
    """Return the licences of a server.

    :param traits: the traits that it requires
    :returns: traits, and ``os_type=`` with the value
    """
    found = {*traits}.intersection(licence_traits)
    if os_type in licence_os_types:
        found.add(name_os_type(os_type or ''))
    return frozenset(found)


def name_os_type(value: str) -> str:
    """Return the licence of servers whose image has this ``os_type``."""
    return f'os_type={value}'


def weigh(
    hosts: Sequence[str],
    licences: Set[str],
    running: Mapping[str, Set[str]],
) -> list[float]:
    """Return a weight of each host, from 0 to 1.

    Most of it is for the share of the licences that a host has. Of hosts that
    have as many, the first by the licences' own order gets a bonus, the next
    half of that, and so on: no other weigher decides between the first few.

    :param hosts: names, the same one more than once for nodes of one service
    :param licences: of the request, at least one
    :param running: the hosts of each licence
    """
    seed = ','.join(sorted(licences))
    order = sorted(
        {*hosts}, key=lambda host: zlib.crc32(f'{seed}/{host}'.encode())
    )
    shares = {
        host: sum(host in running.get(one, ()) for one in licences)
        / len(licences)
        for host in order
    }
    # Half of the step from one share to the next.
    most = 0.5 / (len(licences) + 1)
    bonus = dict.fromkeys(shares.values(), most)
    weights = {}
    for host in order:
        share = shares[host]
        weights[host] = share * (1 - 2 * most) + bonus[share]
        bonus[share] /= 2
    return [weights[host] for host in hosts]
