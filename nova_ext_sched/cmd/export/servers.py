# SPDX-License-Identifier: Apache-2.0

"""Servers that stand, as far as a request can meet them."""

from collections.abc import Collection
import typing

from nova import objects
from nova.compute import utils as compute_utils
from nova.scheduler import utils as scheduler_utils

from nova_ext_sched.cmd import nova_scheduler

# Databases limit the number of values in one statement.
_AT_ONCE = 500


class Server(typing.NamedTuple):
    """A server and its host; ``uses`` is what a claim of it takes."""

    uuid: str
    host: str
    project: str
    flavor: typing.Any
    is_on_volume: bool
    uses: dict[str, int]


def read(
    scheduler: nova_scheduler.ReadOnlyHostManager, uuids: Collection[str]
) -> dict[str, Server]:
    """Return those of the servers that stand on a host, by UUID."""
    listed = list(uuids)
    found: dict[str, Server] = {}
    for start in range(0, len(listed), _AT_ONCE):
        wanted = listed[start : start + _AT_ONCE]
        for servers in scheduler.ask_cells(_select, wanted).values():
            found |= {server.uuid: server for server in servers}
    return found


def _select(context: typing.Any, uuids: Collection[str]) -> list[Server]:
    return [
        Server(
            instance.uuid,
            instance.host,
            instance.project_id,
            instance.flavor,
            compute_utils.is_volume_backed_instance(context, instance),
            scheduler_utils.resources_from_flavor(instance, instance.flavor),
        )
        for instance in objects.InstanceList.get_by_filters(
            context,
            {'deleted': False, 'uuid': uuids},
            expected_attrs=['flavor'],
        )
        if instance.host
    ]
