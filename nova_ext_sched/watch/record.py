# SPDX-License-Identifier: Apache-2.0

"""Makes the record of a refusal; ``record.json`` has its form."""

import datetime
import typing

from oslo_utils import timeutils

from nova_ext_sched.watch import bound
from nova_ext_sched.watch import explainer
from nova_ext_sched.watch import refusals

#: Changes when a reader of records must change.
FORMAT = 1


def make(
    refusal: refusals.Refusal, explained: explainer.Explained
) -> dict[str, typing.Any]:
    """Return the record of a refusal.

    :returns: values that JSON can hold, without secrets, at most
        :data:`.records.RECORD_BYTES` long; without the explanation if the
        record of an equal request has it
    """
    request = explained.request or {}
    is_shared = (
        explained.document is not None and explained.source != refusal.name
    )
    record = {
        'format': FORMAT,
        'id': refusal.name,
        'refused': show(refusal.time),
        'recorded': show(timeutils.utcnow()),
        'request_id': refusal.request_id,
        'server': refusal.server,
        'server_name': refusal.server_name,
        'project': refusal.project_id,
        'user': refusal.user_id,
        'operation': refusal.operation,
        'flavor': _identify(request.get('flavor')),
        'image': _identify(request.get('image')),
        'fault': refusal.message,
        'constraint': explained.find_constraint(refusal),
        'unexplained': explained.reason or None,
        'detail': explained.detail or None,
        'asked_after': explained.find_delay(refusal),
        'explained_by': explained.source if is_shared else None,
    }
    # The explanation has been cut and cleaned already.
    document = None if is_shared else explained.document
    return {**bound.clean(record), 'explanation': document}


def _identify(
    described: dict[str, typing.Any] | None,
) -> dict[str, str | None] | None:
    return described and {key: described[key] for key in ('id', 'name')}


def show(time: datetime.datetime) -> str:
    """Return a time, in UTC, in the form of a record."""
    return time.isoformat(timespec='seconds') + 'Z'
