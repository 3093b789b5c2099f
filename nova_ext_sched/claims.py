# SPDX-License-Identifier: Apache-2.0

"""Finds servers that are placed but that no host state shows yet.

When nova-scheduler has chosen a host, it claims the resources in placement.
The host state in the scheduler's memory shows the server only after
nova-compute has built it. Until then a second request, or a second scheduler,
counts one server too few. The allocation in placement exists all the time.
"""

from collections.abc import Collection
from collections.abc import Sequence
import datetime
import functools
import time
import typing

from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.api import models
from nova.scheduler.client import report
from oslo_utils import timeutils
import sqlalchemy as sa

from nova_ext_sched import faults
from nova_ext_sched import messages

_faults = faults.FaultLog(__name__)

#: Seconds after its creation in which a server may be under way. Well above
#: [compute] scheduler_instance_sync_interval, after which host states have
#: every server that nova-compute has begun to build.
RECENT_SECONDS = 600

#: Number of allocations read for one request.
MOST_LOOKUPS = 32

#: Milliseconds after which no further allocation is read for a request.
MOST_MILLISECONDS = 1000


class Claims(typing.NamedTuple):
    """The servers that are under way.

    :ivar waiting: UUIDs of the servers that no scheduler has placed yet
    :ivar by_provider: UUIDs of the servers that hold an allocation, by the
        UUID of the resource provider
    """

    waiting: frozenset[str]
    by_provider: dict[str, set[str]]


NONE = Claims(frozenset(), {})


def find(servers: Collection[str]) -> Claims:
    """Return those of ``servers``, which no host state shows, under way.

    This takes one select, and a request to placement for each server that was
    created in the last :data:`RECENT_SECONDS`. The newest come first: at most
    :data:`MOST_LOOKUPS`, and none after :data:`MOST_MILLISECONDS`. If they
    cannot be read, they do not count, with a warning: nova-compute checks the
    group again before it builds a server.
    """
    try:
        recent = _get_recent(nova_context.get_admin_context(), servers)
        return _read_allocations(recent)
    except Exception as exc:
        _faults.warn(
            'Servers of a server group that are under way cannot be looked '
            'up. A full host may be chosen; nova-compute then refuses the '
            f'server: {messages.describe(exc)}',
            key=type(exc).__name__,
        )
        return NONE


def _read_allocations(servers: Sequence[tuple[str, int | None]]) -> Claims:
    client = report.report_client_singleton()
    ctxt = nova_context.get_admin_context()
    waiting = set()
    by_provider: dict[str, set[str]] = {}
    deadline = time.monotonic() + MOST_MILLISECONDS / 1000
    for server, cell in servers:
        if time.monotonic() > deadline:
            break
        allocations = client.get_allocs_for_consumer(ctxt, server)
        for provider in allocations['allocations']:
            by_provider.setdefault(provider, set()).add(server)
        # A server has a cell as soon as conductor has the scheduler's answer.
        if not allocations['allocations'] and cell is None:
            waiting.add(server)
    return Claims(frozenset(waiting), by_provider)


@functools.lru_cache(maxsize=1)
def _recent_query() -> sa.Select:
    mapping = models.InstanceMapping
    return (
        sa.select(mapping.instance_uuid, mapping.cell_id)
        .where(
            mapping.instance_uuid.in_(sa.bindparam('servers', expanding=True)),
            mapping.created_at >= sa.bindparam('since'),
            sa.or_(
                mapping.queued_for_delete.is_(None),
                mapping.queued_for_delete.is_(False),
            ),
        )
        .order_by(mapping.id.desc())
        .limit(MOST_LOOKUPS)
    )


@api_db.context_manager.reader
def _get_recent(
    context: typing.Any, servers: Collection[str]
) -> Sequence[typing.Any]:
    since = timeutils.utcnow() - datetime.timedelta(seconds=RECENT_SECONDS)
    return context.session.execute(
        _recent_query(), {'servers': list(servers), 'since': since}
    ).all()
