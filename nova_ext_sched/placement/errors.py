# SPDX-License-Identifier: Apache-2.0

"""Errors of requests to placement.

Every error names its request. URLs are shown without user and password, and
long queries are cut. Tokens are never part of an error.
"""

import typing

from nova_ext_sched import exception


class PlacementError(exception.NovaExtSchedError):
    """Base of the errors of :class:`nova_ext_sched.placement.PlacementClient`.

    :ivar method: the HTTP method
    :ivar url: the URL without secrets
    :ivar status: the HTTP status, None if there was no answer
    :ivar request_id: placement's ``req-...`` of the request, for its log;
        None if it gave none
    """

    method: str
    url: str
    status: int | None = None
    request_id: str | None = None

    def add_context(self, **context: typing.Any) -> None:
        """Set attributes that the error does not have yet."""
        self.__dict__ = context | self.__dict__

    def __str__(self) -> str:
        context = [f'{self.method} {self.url}']
        if self.status is not None:
            context.append(f'status {self.status}')
        if self.request_id is not None:
            context.append(f'request id {self.request_id}')
        return f'{super().__str__()} ({", ".join(context)})'


class ConnectionFailed(PlacementError):
    """Nothing answers at the URL, or it closed the connection."""

    message = 'no connection to placement: {cause}'


class TimedOut(PlacementError):
    """No answer came in the time that ``timeout`` allows."""

    message = (
        'placement did not answer in time: the timeout of {credentials} is '
        '{timeout}'
    )


class AuthenticationFailed(PlacementError):
    """Keystone gave no token, so placement was not asked.

    ``status`` and ``request_id`` are keystone's.
    """

    message = 'no token for the credentials of {credentials}: {cause}'


class EndpointNotFound(PlacementError):
    """Neither the configuration nor the catalogue names an endpoint."""

    message = (
        'no endpoint of placement: expected an endpoint in {credentials} or '
        'in the service catalogue, for {wanted}'
    )


class Refused(PlacementError):
    """Placement answers with an error; ``status`` says which.

    :ivar detail: the reason, in placement's words
    """

    message = '{problem}: {detail}'


class GenerationConflict(PlacementError):
    """Others changed the provider at every attempt to change it.

    :ivar provider: its UUID
    :ivar sent: the generation that was sent last
    :ivar current: the generation that the provider has now
    :ivar attempts: number of attempts
    """

    message = (
        'others changed provider {provider} at each of {attempts} attempts: '
        'expected generation {sent}, got {current}'
    )


class QueryTooLong(PlacementError):
    """The query did not get through the server in front of placement.

    :ivar aggregates: number of aggregates in the query
    :ivar size: bytes of the query
    """

    message = (
        'the query is too long for the server in front of placement '
        '({detail}): it names {aggregates} aggregates in {size} bytes. Raise '
        'the limit of that server (gunicorn --limit-request-line, uwsgi '
        'buffer-size, nginx large_client_header_buffers, Apache '
        'LimitRequestLine) or name fewer aggregates'
    )


class UnexpectedAnswer(PlacementError):
    """The answer is not placement's: a proxy's page, or another service."""

    message = 'expected {expected}, got {got}'


class MicroversionUnsupported(PlacementError):
    """The server cannot express the request, so nothing was sent.

    :ivar needed: the least microversion, for example ``1.32``
    :ivar features: the features that need it
    :ivar minimum: the server's least microversion
    :ivar maximum: the server's greatest microversion
    """

    message = (
        'the request needs microversion {needed} ({features}), but the '
        'server has {minimum} to {maximum}; nothing was sent'
    )
