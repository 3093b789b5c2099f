# SPDX-License-Identifier: Apache-2.0

"""Comparison of a cloud's stored requests."""

import json
import typing

from nova.db.api import api as api_db
from nova.db.api import models
import sqlalchemy as sa

from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.saved import listed


def find_distinct() -> list[str]:
    """Return the UUID of one server for each distinct stored request.

    Two are alike if they ask for the same of a new server, whose user, UUID
    and earlier hosts do not count.
    """
    stored, mapped = models.RequestSpec.__table__, models.InstanceMapping
    query = (
        sa.select(stored.c.instance_uuid, stored.c.spec)
        .join(mapped, mapped.instance_uuid == stored.c.instance_uuid)
        .order_by(stored.c.id)
    )
    found: dict[str, str] = {}
    with api_db.context_manager.reader.using(process.context()) as session:
        for uuid, text in session.execute(query):
            found.setdefault(_make_key(uuid, text), uuid)
    return [*found.values()]


def _make_key(uuid: str, text: typing.Any) -> str:
    """Return a key that equal requests share; the text if it is not JSON."""
    try:
        # Parts of a request have the server's UUID in them.
        fields = json.loads(text.replace(uuid, ''))[listed.DATA]
    except (ValueError, LookupError, TypeError):
        return str(text)
    kept = {
        name: value
        for name, value in fields.items()
        if name not in likeness.OWN_OF_REQUEST
    }
    return json.dumps(kept, sort_keys=True)
