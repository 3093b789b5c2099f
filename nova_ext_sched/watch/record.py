# SPDX-License-Identifier: Apache-2.0

"""One refusal and its explanation as a document; record.json has its form."""

import datetime
import typing

from oslo_utils import timeutils

from nova_ext_sched.watch import bound
from nova_ext_sched.watch import explainer
from nova_ext_sched.watch import refusals

#: Changes when a reader of records must change.
FORMAT = 1


def make(
    refusal: refusals.Refusal, answer: explainer.Explained
) -> dict[str, typing.Any]:
    """Return the record of a refusal.

    :returns: values that JSON can hold, without secrets, at most
        :data:`.records.RECORD_BYTES` long; without the explanation where the
        record of an equal request has it
    """
    asked = answer.asked or {}
    is_shared = answer.document is not None and answer.source != refusal.name
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
        'flavor': _identify(asked.get('flavor')),
        'image': _identify(asked.get('image')),
        'fault': refusal.message,
        'constraint': answer.find_constraint(refusal),
        'unexplained': answer.reason or None,
        'detail': answer.detail or None,
        'asked_after': answer.count_seconds(refusal),
        'explained_by': answer.source if is_shared else None,
    }
    # The explanation has been cut and cleaned already.
    document = None if is_shared else answer.document
    return {**bound.clean(record), 'explanation': document}


def _identify(
    described: dict[str, typing.Any] | None,
) -> dict[str, str | None] | None:
    return described and {key: described[key] for key in ('id', 'name')}


def show(time: datetime.datetime) -> str:
    """Return a time, in UTC, as a record has it."""
    return time.isoformat(timespec='seconds') + 'Z'
