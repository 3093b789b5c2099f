# SPDX-License-Identifier: Apache-2.0

"""Reads answers that may not be placement's.

A proxy answers in HTML and a load balancer in plain text.
"""

import re
import typing

from oslo_utils import strutils

from nova_ext_sched import messages

# Bytes of an answer that are read for an error. A page that placement did not
# write may have any length.
_READ = 16 * 1024
_SHOWN = 200

# Neither looks past the next "<", so that both are linear.
_TITLE = re.compile(r'<title[^<>]*>([^<]*)', re.IGNORECASE)
_TAG = re.compile(r'<[^<>]*>')

_SECRETS = ('X-Auth-Token', 'X-Service-Token', 'Authorization')


def decode(response: typing.Any) -> typing.Any:
    """Return the JSON object of an answer, None if it is none."""
    content_type = response.headers.get('content-type', '')
    if not content_type.startswith('application/json'):
        return None
    try:
        value = response.json()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def say_foreign(response: typing.Any) -> str:
    """Describe an answer that is not placement's."""
    content_type = response.headers.get('content-type', 'no content type')
    return f'{messages.clean(content_type)}: {get_detail(response)}'


def get_detail(response: typing.Any) -> str:
    """Return the server's reason for a refusal, on one line.

    Without secrets: some servers answer with the request that they got.
    """
    content = response.content
    if (json := decode(response)) is not None:
        found = json.get('errors')
        error = found[0] if isinstance(found, list) and found else None
        if not isinstance(error, dict):
            # What webob's own errors look like, as middleware before
            # placement answers them.
            error = {'detail': json.get('message')}
        detail = error.get('detail') or error.get('title') or ''
        content = str(detail).encode(errors='replace')
    for name in _SECRETS:
        secret = response.request.headers.get(name)
        if isinstance(secret, str):
            secret = secret.encode()
        if secret:
            content = content.replace(secret, b'***')
    text = clean(content[:_READ].decode(errors='replace'))
    return text or response.reason or 'nothing'


def clean(text: str) -> str:
    """Shorten a server's text to one line without tags.

    Secrets that have a name beside them are left out.
    """
    text = text[:_READ]
    if title := _TITLE.search(text):
        text = title[1]
    text = ' '.join(_TAG.sub(' ', text).split())
    # Its patterns are costly: they get no more than can be shown.
    text = strutils.mask_password(text[: 2 * _SHOWN])
    return messages.clean(text, _SHOWN)
