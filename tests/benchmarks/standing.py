# SPDX-License-Identifier: Apache-2.0

"""Servers that stand on the hosts of many_hosts, with all their rows."""

import typing

from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from oslo_utils import uuidutils
from placement import db_api as placement_db
from placement.db.sqlalchemy import models as placement_models
import sqlalchemy as sa

from tests.benchmarks import test_audit


class Place(typing.NamedTuple):
    """Where a copy stands.

    :ivar kind: the number of the server that it is a copy of
    :ivar host: the number of its host
    :ivar group: the UUID of that one's server group, and of the copy's
    """

    kind: int
    host: int
    group: tuple[str, str] | None = None


def copy(case, kinds, places):
    """Copy the rows of servers.

    :param case: a ManyHostsTestCase
    :param kinds: UUIDs of servers that run
    """
    mapping = case.cell_mappings['cell1']
    ctxt = nova_context.get_admin_context()
    with nova_context.target_cell(ctxt, mapping) as target:
        cell = main_db.get_engine(context=target)
    api = api_db.context_manager.writer.get_engine()
    placement = placement_db.get_placement_engine()
    with cell.begin() as connection:
        # They have a row in one table alone.
        table = main_models.Instance.__table__
        connection.execute(sa.delete(table).where(table.c.host.like('copy%')))
    instances = test_audit.Rows(cell, main_models.Instance, 'uuid', kinds)
    specs = test_audit.Rows(
        api, api_models.RequestSpec, 'instance_uuid', kinds
    )
    others = [
        test_audit.Rows(engine, model, 'instance_uuid', kinds)
        for engine, model in (
            (cell, main_models.InstanceExtra),
            (cell, main_models.InstanceInfoCache),
            (api, api_models.InstanceMapping),
        )
    ]
    consumers = test_audit.Rows(
        placement, placement_models.Consumer, 'uuid', kinds
    )
    with api.connect() as connection:
        table = api_models.InstanceGroup.__table__
        ids = dict(
            connection.execute(sa.select(table.c.uuid, table.c.id)).all()
        )
    with placement.connect() as connection:
        table = placement_models.ResourceProvider.__table__
        providers = dict(
            connection.execute(sa.select(table.c.uuid, table.c.id)).all()
        )
        table = placement_models.Allocation.__table__
        held = [
            connection.execute(
                sa.select(table.c.resource_class_id, table.c.used).where(
                    table.c.consumer_id == uuid
                )
            ).all()
            for uuid in kinds
        ]
    members, allocations = [], []
    for kind, index, group in places:
        uuid = uuidutils.generate_uuid()
        host = f'copy{index}'
        instances.copy(kind, uuid=uuid, host=host, node=host)
        # Its UUID is in parts of it too.
        spec = specs.rows[kind]['spec'].replace(kinds[kind], uuid)
        if group:
            if group[0] in spec:
                members.append(
                    {'instance_uuid': uuid, 'group_id': ids[group[1]]}
                )
            spec = spec.replace(*group)
        specs.copy(kind, instance_uuid=uuid, spec=spec)
        for rows in others:
            rows.copy(kind, instance_uuid=uuid)
        consumers.copy(kind, uuid=uuid)
        allocations += [
            {
                'resource_provider_id': providers[case.uuids[index]],
                'consumer_id': uuid,
                'resource_class_id': class_,
                'used': used,
            }
            for class_, used in held[kind]
        ]
    for rows in (instances, specs, *others, consumers):
        rows.insert()
    if members:
        with api.begin() as connection:
            connection.execute(
                sa.insert(api_models.InstanceGroupMember), members
            )
    with placement.begin() as connection:
        connection.execute(sa.insert(placement_models.Allocation), allocations)
