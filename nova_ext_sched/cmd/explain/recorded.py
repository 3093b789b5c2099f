# SPDX-License-Identifier: Apache-2.0

"""What watch recorded of a refusal, as explain shows it; needs no nova."""

import json
import pathlib
import typing

import jsonschema
from oslo_utils import timeutils

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.cli import base
from nova_ext_sched.cmd import records


class NotExplained(exception.NovaExtSchedError):
    """A refusal was recorded without an explanation."""

    message = '{refusal}. It was not explained: {detail}'


def read(path: pathlib.Path, wanted: str) -> dict[str, typing.Any]:
    """Return the document of the latest refusal of a request or server.

    Its sentence and its remarks say when nova refused and how long ago it was
    explained.

    :param path: the file of the records
    :param wanted: a request ID (``req-...``) or the UUID of a server
    :raises base.UsageError: there is no such record, or no such file
    :raises exception.InvalidValue: the record is of another form
    :raises NotExplained: it has no explanation; the text has nova's words
    """
    try:
        record = records.find(path, wanted)
    except OSError as exc:
        raise base.UsageError(
            f'The records in {path} cannot be read: {exc.strerror}. '
            f'nova-ext-sched watch writes them; --records names another file.'
        ) from exc
    if record is None:
        raise base.UsageError(
            f'{path} has no record of {messages.quoted(wanted)}. Give the ID '
            f'of a request (req-...) that nova refused, or the UUID of its '
            f'server.'
        )
    _check(path, record)
    request = record['request_id'] or 'unknown'
    refusal = (
        f'nova refused it at {record["refused"]} (request '
        f'{messages.clean(request)}): '
        f'{messages.clean(record["fault"].rstrip(". "))}'
    )
    document = record['explanation']
    if document is None:
        raise NotExplained(
            refusal=refusal, detail=messages.clean(record['detail'], 1000)
        )
    remark = (
        f'{refusal}. It was explained {_describe_age(document["time"])} ago'
    )
    document['remarks'].append(remark[0].upper() + remark[1:])
    document['answer']['sentence'] += f' {document["remarks"][-1]}.'
    return document


def _check(path: pathlib.Path, record: dict[str, typing.Any]) -> None:
    folder = pathlib.Path(__file__).parents[1]
    parts = [('watch/record.json', record)]
    if record.get('explanation') is not None:
        parts.append(('explain/schema.json', record['explanation']))
    for name, part in parts:
        try:
            jsonschema.validate(part, json.loads((folder / name).read_text()))
        except jsonschema.ValidationError as exc:
            raise exception.InvalidValue(
                where=str(path),
                expected='records of nova-ext-sched watch',
                got=f'{exc.json_path}: {exc.message}',
            ) from exc


def _describe_age(time: str) -> str:
    """Return how long ago a time of a document was, in its largest unit."""
    then = timeutils.normalize_time(timeutils.parse_isotime(time))
    seconds = int(timeutils.delta_seconds(then, timeutils.utcnow()))
    for unit, length in (('day', 86400), ('hour', 3600), ('minute', 60)):
        if seconds >= length:
            return messages.count(unit, seconds // length)
    # The clock of the machine that recorded it may be ahead.
    return messages.count('second', max(0, seconds))
