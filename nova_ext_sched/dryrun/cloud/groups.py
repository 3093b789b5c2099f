# SPDX-License-Identifier: Apache-2.0

"""Reads the names of server groups."""

from collections.abc import Collection
import typing

from nova.db.api import api as api_db
from nova.db.api import models as api_models
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_ext_sched import messages
from nova_ext_sched import named
from nova_ext_sched.dryrun.cloud import process

_GROUP = api_models.InstanceGroup


def read_names(uuids: Collection[str]) -> dict[str, str]:
    """Return the names of existing server groups.

    :param uuids: what may be that of a group; without any, nova's database is
        not asked
    :raises Exception: what the API database or its driver raises
    """
    if not uuids:
        return {}
    names = _select_names(process.context(), _GROUP.uuid.in_(uuids))
    return {uuid: messages.clean(name) for uuid, name in names.items() if name}


def find_id(wanted: str, project: str | None) -> str:
    """Return the UUID of the server group that an operator names.

    :param wanted: a UUID, or a name
    :param project: the ID of the only one whose groups are meant; None for
        all, because groups of two projects may have one name
    :raises exception.UnknownName: there is none, or there are several
    """
    if uuidutils.is_uuid_like(wanted):
        return wanted
    is_meant = sa.true() if project is None else _GROUP.project_id == project
    names = _select_names(process.context(), is_meant)
    return named.find('server group', wanted, names)


@api_db.context_manager.reader
def _select_names(context: typing.Any, is_meant: typing.Any) -> dict[str, str]:
    query = sa.select(_GROUP.uuid, _GROUP.name).where(is_meant)
    return {uuid: name or '' for uuid, name in context.session.execute(query)}
