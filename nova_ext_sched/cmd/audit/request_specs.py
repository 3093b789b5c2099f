# SPDX-License-Identifier: Apache-2.0

"""Request specs in bulk, as nova stored them.

nova's own loader (nova.objects.RequestSpec.get_by_instance_uuids) reads the
server group anew for each server, fails for all where one is broken, and may
write what it migrated. Here each group is read once, a broken spec is its own
server's fault, and nothing is written.
"""

from collections.abc import Collection
import functools
import typing

from nova import exception as nova_exception
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models
from oslo_serialization import jsonutils
import sqlalchemy as sa

# Servers of one group stand on many hosts, and a group with its members costs
# some milliseconds to read. The number bounds the memory.
_GROUPS = 1024


@api_db.context_manager.reader
def select(context: typing.Any, uuids: Collection[str]) -> dict[str, str]:
    """Return the stored text of each server that has a request spec."""
    specs = models.RequestSpec
    query = sa.select(specs.instance_uuid, specs.spec).where(
        specs.instance_uuid.in_(uuids)
    )
    return {uuid: text for uuid, text in context.session.execute(query)}


class Loader:
    """Makes nova RequestSpecs of what is stored."""

    def __init__(self, ctxt: typing.Any) -> None:
        self._ctxt = ctxt
        self._group = functools.lru_cache(maxsize=_GROUPS)(self._read_group)

    def load(self, uuid: str, text: str) -> typing.Any:
        """Return the RequestSpec of a server.

        :param text: what :func:`select` returned
        :raises Exception: whatever JSON, oslo.versionedobjects or nova raise
            where it is broken
        """
        spec = objects.RequestSpec.obj_from_primitive(
            jsonutils.loads(text), self._ctxt
        )
        spec.instance_uuid = uuid
        # nova stores a group without its members, and specs of old releases
        # without its UUID.
        group = spec.instance_group if 'instance_group' in spec else None
        if group is not None:
            spec.instance_group = self._group(
                group.uuid
                if 'uuid' in group
                else spec.get_scheduler_hint('group')
            )
        return spec

    def _read_group(self, uuid: str) -> typing.Any:
        try:
            return objects.InstanceGroup.get_by_uuid(self._ctxt, uuid)
        except nova_exception.InstanceGroupNotFound:
            # It was deleted, and asks nothing of its members any more.
            return None
