# SPDX-License-Identifier: Apache-2.0

"""The nearest flavor that fits a host which has too little room.

It has the extra specs of the one that is asked for, gives no more of anything,
and takes the image. A host that only room refuses has as much as it needs.
"""

from collections.abc import Iterator
import functools
import typing

from nova import objects
from oslo_utils import units

from nova_ext_sched import fields
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import refusals

_GIVES = ('VCPU', 'MEMORY_MB', 'DISK_GB')


def find(judged: matrix.Matrix, ctxt: typing.Any, spec_obj: typing.Any) -> str:
    """Return its name; empty where there is none.

    :param judged: all constraints are in
    :param ctxt: a context of the project that asks
    :param spec_obj: the nova RequestSpec
    """
    free = list(_list_free(judged))
    if not free:
        return ''
    asked = spec_obj.flavor
    wanted = _measure(asked)
    fitting = []
    for flavor in objects.FlavorList.get_all(
        ctxt, filters={'is_public': True}
    ):
        given = _measure(flavor)
        if (
            flavor.extra_specs == asked.extra_specs
            and given != wanted
            and all(given[name] <= wanted[name] for name in _GIVES)
            and any(
                all(given[name] <= number for name, number in its.items())
                for its in free
            )
            and _takes_image(flavor, spec_obj)
        ):
            # How much of each it gives of what is asked for.
            nearness = sum(given[n] / (wanted[n] or 1) for n in _GIVES)
            fitting.append((-nearness, flavor.name))
    return min(fitting, default=(0, ''))[1]


def _takes_image(flavor: typing.Any, spec_obj: typing.Any) -> bool:
    """Return whether nova-api takes a flavor with the image of a request.

    nova's own check asks the policies of nova-api, which may take no flavor
    without a disk.
    """
    get = functools.partial(fields.get_field, spec_obj.image)
    if flavor.memory_mb < (get('min_ram') or 0):
        return False
    if fields.get_field(spec_obj, 'is_bfv'):
        return True
    least = max((get('min_disk') or 0) * units.Gi, get('size') or 0)
    given = flavor.root_gb * units.Gi
    return given >= least if given else not spec_obj.flavor.root_gb


def _measure(flavor: typing.Any) -> dict[str, int]:
    """Return the amounts of a nova Flavor, by resource class."""
    disk = flavor.root_gb + flavor.ephemeral_gb + -(-flavor.swap // 1024)
    return dict(
        zip(_GIVES, (flavor.vcpus, flavor.memory_mb, disk), strict=True)
    )


def _list_free(judged: matrix.Matrix) -> Iterator[dict[str, int]]:
    """Yield the free amounts of hosts that lack room alone."""
    free: dict[str, dict[str, int]] = {}
    others = set()
    for one, column in zip(judged.constraints, judged.columns, strict=True):
        for uuid, refused in column.refused.items():
            resource = one.capacity.resource if one.capacity else ''
            # As many CPUs, whichever class they count in.
            resource = 'VCPU' if resource == 'PCPU' else resource
            if resource in _GIVES and uuid in column.free:
                free.setdefault(uuid, {})[resource] = column.free[uuid]
            if any(refusals.SMALLER not in each.acts for each in refused):
                others.add(uuid)
    for uuid in free.keys() - others:
        yield free[uuid]
