# SPDX-License-Identifier: Apache-2.0

"""Shows a refusal that watch recorded; needs no nova."""

import pathlib
import typing

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.cli import base
from nova_ext_sched.watch import records

# The sentence about a cause outside of the hosts, by the record's constraint.
_SAID = {
    'cannot decide': 'When nova refused it, a request filter could not decide',
    'no candidates': 'When nova refused it, placement did not answer or '
    'offered no host',
}


class NotExplained(exception.NovaExtSchedError):
    """A refusal was recorded without an explanation."""

    message = '{refusal}. It was not explained: {detail}'


def read(path: pathlib.Path, wanted: str) -> dict[str, typing.Any]:
    """Return the document of the latest refusal of a request or server.

    Its sentence and its remarks say when nova refused, and when it was
    explained.

    :param path: the file of the records
    :param wanted: a request ID (``req-...``) or the UUID of a server
    :raises base.UsageError: there is no such record, or no such file
    :raises NotExplained: it has no explanation; the text has nova's words
    """
    try:
        record = records.find(path, wanted)
    except OSError as exc:
        raise base.UsageError(
            f'The records in {exc.filename or path} cannot be read: '
            f'{exc.strerror}. nova-ext-sched watch writes them; --records '
            f'names another file.'
        ) from exc
    if record is None:
        raise base.UsageError(
            f'{path} has no record of {messages.quoted(wanted)}, nor has a '
            'rotated file beside it. Compressed files are not read: unpack '
            'one and name it with --records. Give the ID of a request '
            f'(req-...) that nova refused, or the UUID of its server.'
        )
    refusal = (
        f'nova refused it at {record["refused"]} (request '
        f'{messages.clean(record["request_id"] or "unknown")}): '
        f'{messages.clean(record["fault"].rstrip(". "))}'
    )
    document = _find_document(path, record)
    if document is None:
        detail = record['detail'] or (
            f'The record {record["explained_by"]} has the explanation, and is '
            f'in none of the files'
        )
        raise NotExplained(
            refusal=refusal, detail=messages.clean(detail, 1000)
        )
    answer = document['answer']
    if before := _say_before(record, document['time']):
        answer['late'] = before
        answer['sentence'] = f'{before}. {answer["sentence"]}'
    remark = f'{refusal}. It was explained at {document["time"]}'
    document['remarks'].append(remark[0].upper() + remark[1:])
    answer['sentence'] += f' {document["remarks"][-1]}.'
    return document


def _find_document(
    path: pathlib.Path, record: dict[str, typing.Any]
) -> dict[str, typing.Any] | None:
    """Return the explanation of a record.

    That of an equal request gets the server of this one.
    """
    source = record['explained_by']
    if source is None:
        return typing.cast(dict[str, typing.Any] | None, record['explanation'])
    found = records.find(path, source) or record
    if document := found['explanation']:
        document['request'] |= {
            key: record[key] for key in ('server', 'server_name', 'image')
        }
    return typing.cast(dict[str, typing.Any] | None, document)


def _say_before(record: dict[str, typing.Any], time: str) -> str:
    """Return the sentences before the answer: the cause, the delay."""
    parts = []
    if said := _SAID.get(record['constraint']):
        parts.append(said)
    if record['asked_after'] > records.LATE:
        minutes = messages.count('minute', record['asked_after'] // 60)
        parts.append(
            f'This is the cloud of {time}, {minutes} after the refusal'
        )
    return '. '.join(parts)
