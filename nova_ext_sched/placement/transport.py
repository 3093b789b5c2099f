# SPDX-License-Identifier: Apache-2.0

"""Sends requests through keystoneauth and reports what went wrong."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import typing
from urllib import parse

from keystoneauth1 import exceptions as ks_exc

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.placement import answers
from nova_ext_sched.placement import errors

T = typing.TypeVar('T')
Params = Sequence[tuple[str, str]]

# Past this a query is suspected where a request ends without an answer of
# placement's. Below every limit that is in use; see the documentation.
_LONG = 1000
# What placement says, by its microversions, where no parameter reached it:
# uwsgi drops some long queries and passes the request on.
_LOST = (
    'There must be at least one resources',
    'At least one request group',
    "'resources' is a required property",
)
# Bytes of a query that are shown.
_SHOWN = 160
# What placement answers, with 500, where two updates of traits overlap in its
# database: the handler does not catch it.
_OVERLAP = 'Another thread concurrently updated'

_PROBLEMS = {
    400: 'placement refuses the request',
    401: 'placement does not accept the credentials of {credentials}',
    403: 'placement does not allow this with the credentials of {credentials}',
    404: 'placement does not have it',
    409: 'placement refuses the change',
    503: 'placement is unavailable',
}


class Transport:
    """An adapter of keystoneauth for placement, with errors of ours.

    :param adapter: keystoneauth1.adapter.Adapter
    :param credentials: where the credentials come from, for errors, such as
        ``[placement] of nova.conf``
    """

    def __init__(self, adapter: typing.Any, credentials: str) -> None:
        self._adapter = adapter
        self._credentials = messages.quote(credentials)
        self._endpoint: str | None = None

    def request(
        self,
        method: str,
        path: str,
        read: Callable[[typing.Any], T],
        params: Params = (),
        json: typing.Any = None,
        microversion: str | None = None,
    ) -> T:
        """Send a request and return its answer as ``read`` reads it.

        :param path: the path below the endpoint, with the first slash
        :param read: gets the decoded JSON, None if the answer has no body
        :param params: pairs of the query, not encoded
        :raises errors.PlacementError: whatever went wrong
        """
        if self._endpoint is None:
            with self._errors(_Call(method, path)):
                self._endpoint = self._find_endpoint()
            if not self._endpoint:
                raise self._no_endpoint(_Call(method, path))
        call = _Call(method, self._endpoint.rstrip('/') + path, params)
        # Apart from the request, so that a fault of keystone's is not taken
        # for one of placement's. keystoneauth keeps the token.
        with self._errors(call):
            self._adapter.session.get_auth_headers(self._adapter.auth)
        with self._errors(call):
            response = self._send(call, path, json, microversion)
        if response.status_code >= 400:
            raise self._refusal(call, response)
        context = call.context(response)
        value = answers.decode(response)
        if value is None and response.content:
            raise errors.UnexpectedAnswer(
                expected="placement's JSON",
                got=answers.describe(response),
                **context,
            )
        try:
            return read(value)
        except (LookupError, TypeError, ValueError, AttributeError) as exc:
            cause = messages.quote(exc)
            raise errors.UnexpectedAnswer(
                expected="placement's JSON of this request",
                got=f'JSON of another form ({type(exc).__name__}: {cause})',
                **context,
            ) from exc

    def _find_endpoint(self) -> str | None:
        # keystoneauth would write a password in a URL to the log.
        auth = self._adapter.auth or self._adapter.session.auth
        self._refuse_userinfo(getattr(auth, 'auth_url', None))
        try:
            endpoint = self._adapter.get_endpoint()
        except ks_exc.CatalogException:
            return None
        self._refuse_userinfo(endpoint)
        return endpoint

    def _refuse_userinfo(self, url: str | None) -> None:
        try:
            if not url or '@' not in parse.urlsplit(url).netloc:
                return
            expected = (
                'a URL without user and password (auth_type = http_basic has '
                'options of its own for them)'
            )
            got = _without_userinfo(url)
        except ValueError as exc:
            expected = f'a URL ({messages.quote(exc)})'
            got = (url or '').rpartition('@')[2]
        raise exception.InvalidValue(
            where=self._credentials, expected=expected, got=got
        )

    def _no_endpoint(self, call: '_Call') -> errors.EndpointNotFound:
        adapter = self._adapter
        return errors.EndpointNotFound(
            credentials=self._credentials,
            wanted=messages.quote(
                f'service type {adapter.service_type}, interface '
                f'{adapter.interface}, region {adapter.region_name}'
            ),
            **call.context(),
        )

    @contextlib.contextmanager
    def _errors(self, call: '_Call') -> Iterator[None]:
        """Turn keystoneauth's errors about tokens into ours."""
        context = call.context()
        try:
            yield
        except ks_exc.ClientException as exc:
            # Also in the request: a token that placement refused is asked for
            # anew meanwhile.
            if isinstance(exc, ks_exc.HttpError):
                context = {
                    'method': exc.method,
                    'url': _without_userinfo(exc.url or ''),
                    'status': exc.http_status,
                    'request_id': exc.request_id,
                }
            raise errors.AuthenticationFailed(
                credentials=self._credentials,
                cause=messages.quote(exc, 1000),
                **context,
            ) from exc
        except OSError as exc:
            # What keystoneauth does not translate: a cafile or certfile that
            # is not there.
            raise errors.ConnectionFailed(
                cause=messages.quote(exc), **context
            ) from exc

    def _send(
        self,
        call: '_Call',
        path: str,
        json: typing.Any,
        microversion: str | None,
    ) -> typing.Any:
        try:
            return self._adapter.request(
                path + ('?' + call.query if call.query else ''),
                call.method,
                json=json,
                microversion=microversion,
                microversion_service_type='placement',
                headers={'Accept': 'application/json'},
                raise_exc=False,
            )
        except ks_exc.ConnectTimeout as exc:
            timeout = self._adapter.session.timeout
            raise errors.TimedOut(
                credentials=self._credentials,
                timeout='not set' if timeout is None else f'{timeout:g} s',
                **call.context(),
            ) from exc
        except ks_exc.ConnectionError as exc:
            cause = answers.get_cause(exc)
            # A server that reads too long a request line may just hang up.
            # One that refuses connections has read nothing.
            if call.is_long and answers.is_hang_up(exc):
                raise call.too_long(cause) from exc
            raise errors.ConnectionFailed(
                cause=cause, **call.context()
            ) from exc

    def _refusal(
        self, call: '_Call', response: typing.Any
    ) -> errors.PlacementError:
        status = response.status_code
        context = call.context(response)
        detail = answers.get_detail(response)
        is_placements = answers.decode(response) is not None
        if status in (414, 431):
            return call.too_long(detail, response)
        if call.is_long:
            if not is_placements and status in (400, 413, 500, 502):
                return call.too_long(detail, response)
            if any(words in detail for words in _LOST):
                return call.too_long('it was lost on the way', response)
        if status == 500 and _OVERLAP in detail:
            return errors.Conflict(
                problem=_PROBLEMS[409], detail=detail, **context
            )
        problem = _PROBLEMS.get(status)
        if status >= 500:
            problem = problem or 'placement failed'
        if problem is None or (status == 404 and not is_placements):
            return errors.UnexpectedAnswer(
                expected='an answer of placement to this request',
                got=answers.describe(response),
                **context,
            )
        refused = errors.Conflict if status == 409 else errors.Refused
        return refused(
            problem=problem.format(credentials=self._credentials),
            detail=detail,
            **context,
        )


class _Call:
    """What an error says about a request."""

    def __init__(self, method: str, url: str, params: Params = ()) -> None:
        self.query = parse.urlencode(params)
        self.is_long = len(self.query) >= _LONG
        self.method = method
        self._url = url
        self._params = params

    def context(self, response: typing.Any = None) -> dict[str, typing.Any]:
        url, query = messages.quote(self._url, 500), self.query
        if len(query) > _SHOWN:
            query = f'{query[:_SHOWN]}... ({len(query)} bytes)'
        found = {'method': self.method, 'url': f'{url}?{query}'.rstrip('?')}
        if response is not None:
            request_id = response.headers.get('x-openstack-request-id')
            found['status'] = response.status_code
            found['request_id'] = request_id and messages.quote(request_id)
        return found

    def too_long(
        self, detail: str, response: typing.Any = None
    ) -> errors.QueryTooLong:
        return errors.QueryTooLong(
            detail=detail,
            aggregates=sum(
                value.count(',') + 1
                for key, value in self._params
                if key.startswith('member_of')
            ),
            size=len(self.query),
            **self.context(response),
        )


def _without_userinfo(url: str) -> str:
    parts = parse.urlsplit(url)
    host = parts.netloc.rpartition('@')[2]
    return messages.quote(parse.urlunsplit(parts._replace(netloc=host)))
