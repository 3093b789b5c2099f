# SPDX-License-Identifier: Apache-2.0

"""The last requests whose servers stand, as steps."""

import typing

from nova.db.api import api as api_db
from nova.db.api import models
import sqlalchemy as sa

from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.audit import request_specs
from nova_ext_sched.cmd.export import servers
from nova_ext_sched.cmd.export import unsaid

_PAGE = 500
# A scenario's bound for texts.
_LONGEST = 255

Request = tuple[servers.Server, typing.Any]


def read(
    ctxt: typing.Any,
    scheduler: nova_scheduler.ReadOnlyHostManager,
    most: int,
    missing: unsaid.Unsaid,
) -> list[Request]:
    """Return the latest requests whose servers stand, the latest last.

    :param most: how many
    :param missing: gets those that cannot be read
    :returns: each server with its nova RequestSpec
    """
    found: list[Request] = []
    loader = request_specs.Loader(ctxt)
    last = None
    while page := _select(ctxt, last):
        last = page[-1].id
        standing = servers.read(scheduler, [row.instance_uuid for row in page])
        for row in page:
            if row.instance_uuid not in standing:
                continue
            try:
                spec = loader.load(row.instance_uuid, row.spec)
            except Exception:
                missing.add('request', 'that cannot be read')
                continue
            found.append((standing[row.instance_uuid], spec))
            if len(found) == most:
                return found[::-1]
    return found[::-1]


@api_db.context_manager.reader
def _select(context: typing.Any, last: int | None) -> list[typing.Any]:
    specs = models.RequestSpec
    query = (
        sa.select(specs.id, specs.instance_uuid, specs.spec)
        .order_by(specs.id.desc())
        .limit(_PAGE)
    )
    if last is not None:
        query = query.where(specs.id < last)
    return list(context.session.execute(query))


def hints(spec: typing.Any, missing: unsaid.Unsaid) -> dict[str, typing.Any]:
    """Return the scheduler hints that a step can have."""
    found: dict[str, typing.Any] = {}
    given = (spec.scheduler_hints if 'scheduler_hints' in spec else None) or {}
    for key, values in given.items():
        # A step names its group elsewhere.
        if key == 'group' or key.startswith('_nova'):
            continue
        if len(key) > _LONGEST or any(len(one) > _LONGEST for one in values):
            missing.add(
                'scheduler hint', f'of more than {_LONGEST} characters'
            )
            continue
        found[key] = values[0] if len(values) == 1 else list(values)
    return found


def zone(spec: typing.Any) -> str | None:
    """Return the zone that a request asks for, with a host that it forces."""
    asked = spec.availability_zone if 'availability_zone' in spec else None
    forced = [
        (getattr(spec, name) or [''])[0] if name in spec else ''
        for name in ('force_hosts', 'force_nodes')
    ]
    if not any(forced):
        return asked
    return ':'.join((asked or '', *forced)).rstrip(':')
