# SPDX-License-Identifier: Apache-2.0

"""Reads answers that may not be placement's.

A proxy answers in HTML, a load balancer in plain text, a server that hangs up
not at all.
"""

import http.client
import re
import typing

from oslo_utils import strutils

_SHOWN = 200
_TITLE = re.compile(r'<title[^>]*>(.*?)</title>', re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r'<[^>]*>')


def decode(response: typing.Any) -> typing.Any:
    """Return the JSON object of an answer, None where it is none."""
    content_type = response.headers.get('content-type', '')
    if not content_type.startswith('application/json'):
        return None
    try:
        value = response.json()
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def describe(response: typing.Any) -> str:
    """Return what an answer is that is not placement's, in words."""
    content_type = response.headers.get('content-type', 'no content type')
    return f'{content_type}: {detail(response) or "nothing"}'


def detail(response: typing.Any) -> str:
    """Return why the server refuses, as it says it, on one line.

    Without secrets: some servers answer with the request that they got.
    """
    text = ''
    if decode(response) is not None:
        error = _first_error(response)
        text = str(error.get('detail') or error.get('title') or '')
    else:
        text = response.text
        if title := _TITLE.search(text):
            text = title[1]
    text = _TAG.sub(' ', text)
    text = ' '.join(text.split()) or response.reason or ''
    sent = response.request.headers
    for name in ('X-Auth-Token', 'X-Service-Token', 'Authorization'):
        secret = sent.get(name)
        if isinstance(secret, bytes):
            secret = secret.decode('latin-1')
        if secret:
            text = text.replace(secret, '***')
    text = strutils.mask_password(text)
    if len(text) > _SHOWN:
        text = text[:_SHOWN] + '...'
    return text


def _first_error(response: typing.Any) -> dict[str, typing.Any]:
    value = decode(response) or {}
    found = value.get('errors')
    if isinstance(found, list) and found and isinstance(found[0], dict):
        return found[0]
    # What webob's own errors look like, as middleware before placement
    # answers them.
    return {'detail': value.get('message')}


def root_cause(exc: BaseException) -> str:
    """Return what the operating system or the library said first."""
    return str(_chain(exc)[-1]) or type(exc).__name__


def hung_up(exc: BaseException) -> bool:
    """Return whether the server took the connection and then closed it."""
    return any(
        isinstance(
            link,
            (
                ConnectionResetError,
                ConnectionAbortedError,
                BrokenPipeError,
                http.client.BadStatusLine,
            ),
        )
        for link in _chain(exc)
    )


def _chain(exc: BaseException) -> list[BaseException]:
    chain = [exc]
    while following := chain[-1].__cause__ or chain[-1].__context__:
        if following in chain:
            break
        chain.append(following)
    return chain
