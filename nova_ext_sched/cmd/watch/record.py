# SPDX-License-Identifier: Apache-2.0

"""One refusal and its explanation as a document; record.json has its form."""

import datetime
import typing

from oslo_utils import timeutils

from nova_ext_sched import messages
from nova_ext_sched.cmd.watch import bound
from nova_ext_sched.cmd.watch import explainer
from nova_ext_sched.cmd.watch import refusals

#: Changes when a reader of records must change.
FORMAT = 1

#: Seconds after which the cloud may be another one than that of the refusal.
_LATE = 60


def make(
    refusal: refusals.Refusal, answer: explainer.Answer
) -> dict[str, typing.Any]:
    """Return the record of a refusal.

    :returns: what JSON can hold, without secrets, at most
        :data:`.records.RECORD_BYTES` long
    """
    asked = (answer.document or {}).get('request', answer.asked) or {}
    found = {
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
        'constraint': answer.constraint,
        'unexplained': answer.reason or None,
        'detail': answer.detail or None,
    }
    # The explanation is short and clean already.
    return {
        **bound.clean(found),
        'explanation': answer.document
        and _say_when(answer.document, refusal.time),
    }


def _say_when(
    document: dict[str, typing.Any], refused: datetime.datetime
) -> dict[str, typing.Any]:
    """Return a document that says so first where it comes late."""
    explained = timeutils.normalize_time(
        timeutils.parse_isotime(document['time'])
    )
    seconds = int((explained - refused).total_seconds())
    if seconds <= _LATE:
        return document
    late = (
        f'This is the cloud of {document["time"]}, '
        f'{messages.count("minute", seconds // 60)} after the refusal'
    )
    sentence = f'{late}. {document["answer"]["sentence"]}'
    answer = document['answer'] | {'late': late, 'sentence': sentence}
    return document | {'answer': answer}


def _identify(
    described: dict[str, typing.Any] | None,
) -> dict[str, str | None] | None:
    return described and {key: described[key] for key in ('id', 'name')}


def show(time: datetime.datetime) -> str:
    """Return a time, in UTC, as a record has it."""
    return time.isoformat(timespec='seconds') + 'Z'
