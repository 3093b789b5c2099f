# SPDX-License-Identifier: Apache-2.0

"""Clouds with isolated aggregates, for the tests of isolation."""

from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.policy import isolation

X, Y, Z = 'CUSTOM_X', 'CUSTOM_Y', 'STORAGE_DISK_SSD'
FLAG = 'HW_CPU_X86_VMX'
_SHORT = {'X': X, 'Y': Y, 'Z': Z, 'FLAG': FLAG}


def record(trait):
    return isolation.RECORD + trait


def aggregate(number, hosts, *traits):
    metadata = {f'trait:{trait}': 'required' for trait in traits}
    return isolation_cloud.Aggregate(
        number, f'uuid{number}', f'agg{number}', tuple(hosts), metadata
    )


def node(host, *traits, inside=(), name=None, **elsewhere):
    """Return a node with traits, in aggregates of these numbers."""
    name = name or host
    return isolation_cloud.Node(
        *(host, name, f'provider of {name}', frozenset(traits)),
        frozenset(f'uuid{number}' for number in inside),
        elsewhere,
    )


def make(aggregates, nodes, known):
    return isolation_cloud.Cloud(
        tuple(aggregates), tuple(nodes), frozenset(known)
    )


def read(aggregates, nodes='', known=f'X rX Z {FLAG}'):
    """Return a cloud that is written down.

    :param aggregates: the hosts and the traits of each; the first is agg1:
        ``a b: X Y; c: Z``
    :param nodes: host, provider if it is named otherwise, traits, placement's
        aggregates, and traits that are elsewhere: ``a X; c/node rX @1 Y=gpu``
    :param known: the traits that placement knows; rX is the record of X
    """
    return make(
        (
            aggregate(number, hosts.split(), *_read_traits(traits))
            for number, (hosts, _, traits) in enumerate(
                (text.partition(':') for text in _split(aggregates)), 1
            )
        ),
        map(read_node, _split(nodes)),
        _read_traits(known),
    )


def read_node(text):
    place, *words = text.split()
    host, _, name = place.partition('/')
    elsewhere = [one.split('=') for one in words if '=' in one]
    inside = [one[1:] for one in words if one[0] == '@']
    traits = [one for one in words if one[0] != '@' and '=' not in one]
    return node(
        *(host, *_read_traits(' '.join(traits))),
        inside=inside,
        name=name,
        **{_SHORT[one]: names.split(',') for one, names in elsewhere},
    )


def _split(text):
    return [one for one in text.split(';') if one.strip()]


def _read_traits(text):
    return [
        record(_SHORT[one[1:]]) if one[0] == 'r' else _SHORT.get(one, one)
        for one in text.split()
    ]
