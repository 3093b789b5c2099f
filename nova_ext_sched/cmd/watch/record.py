# SPDX-License-Identifier: Apache-2.0

"""One refusal and its explanation as a document; record.json has its form."""

import datetime
import typing

from oslo_utils import timeutils

from nova_ext_sched.cmd.watch import explainer
from nova_ext_sched.cmd.watch import refusals

#: Changes when a reader of records must change.
FORMAT = 1


def make(
    refusal: refusals.Refusal, answer: explainer.Answer
) -> dict[str, typing.Any]:
    """Return the record of a refusal.

    :returns: what JSON can hold
    """
    asked = answer.request or {}
    return {
        'format': FORMAT,
        'id': refusal.id,
        'refused': _show(refusal.time),
        'recorded': _show(timeutils.utcnow()),
        'request_id': refusal.request_id,
        'server': refusal.server,
        'project': refusal.project_id,
        'user': refusal.user_id,
        'operation': refusal.operation,
        'flavor': _identify(asked.get('flavor')),
        'image': _identify(asked.get('image')),
        'fault': refusal.message,
        'constraint': answer.constraint,
        'unexplained': answer.reason or None,
        'detail': answer.detail or None,
        'explanation': answer.document,
    }


def _identify(
    described: dict[str, typing.Any] | None,
) -> dict[str, str | None] | None:
    return described and {key: described[key] for key in ('id', 'name')}


def _show(time: datetime.datetime) -> str:
    return time.isoformat(timespec='seconds') + 'Z'
