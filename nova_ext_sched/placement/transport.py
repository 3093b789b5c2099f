# SPDX-License-Identifier: Apache-2.0

"""Sends requests through keystoneauth, and says what went wrong."""

from collections.abc import Callable
from collections.abc import Sequence
import typing
from urllib import parse

from keystoneauth1 import exceptions as ks_exc

from nova_ext_sched import exception
from nova_ext_sched.placement import answers
from nova_ext_sched.placement import errors

T = typing.TypeVar('T')

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
_SHOWN = 160


class Transport:
    """An adapter of keystoneauth for placement, with errors of ours.

    :param adapter: keystoneauth1.adapter.Adapter
    :param credentials: where the credentials come from, for errors, such as
        ``[placement] of nova.conf``
    """

    def __init__(self, adapter: typing.Any, credentials: str) -> None:
        self._adapter = adapter
        self._credentials = credentials
        self._endpoint: str | None = None

    def request(
        self,
        method: str,
        path: str,
        read: Callable[[typing.Any], T],
        params: Sequence[tuple[str, str]] = (),
        json: typing.Any = None,
        microversion: str | None = None,
    ) -> T:
        """Send a request and return its answer as ``read`` reads it.

        :param path: the path below the endpoint, with the first slash
        :param read: gets the decoded JSON, None where the answer has no body
        :param params: pairs of the query, not encoded
        :raises errors.PlacementError: whatever went wrong
        """
        endpoint = self._find_endpoint(method, path)
        query = parse.urlencode(params)
        call = _Call(
            method,
            endpoint.rstrip('/') + path,
            query,
            self._credentials,
            aggregates=_count_aggregates(params),
        )
        self._authenticate(call)
        response = self._send(
            call, path + ('?' + query if query else ''), json, microversion
        )
        if response.status_code >= 400:
            raise self._refusal(call, response)
        context = call.context(response)
        if not response.content:
            value = None
        else:
            value = answers.decode(response)
            if value is None:
                raise errors.UnexpectedAnswer(
                    expected="placement's JSON",
                    got=answers.describe(response),
                    **context,
                )
        try:
            return read(value)
        except (LookupError, TypeError, ValueError, AttributeError) as exc:
            raise errors.UnexpectedAnswer(
                expected="placement's JSON of this request",
                got=f'JSON without it ({type(exc).__name__}: {exc})',
                **context,
            ) from exc

    def _find_endpoint(self, method: str, path: str) -> str:
        if self._endpoint is not None:
            return self._endpoint
        call = _Call(method, path, '', self._credentials)
        # keystoneauth would write a password in a URL to the log.
        auth = self._adapter.auth or self._adapter.session.auth
        _refuse_userinfo(getattr(auth, 'auth_url', None), self._credentials)
        try:
            endpoint = self._adapter.get_endpoint()
        except ks_exc.CatalogException:
            endpoint = None
        except ks_exc.ClientException as exc:
            raise self._no_token(call, exc) from exc
        except OSError as exc:
            raise _no_connection(call, exc) from exc
        _refuse_userinfo(endpoint, self._credentials)
        if not endpoint:
            wanted = (
                f'service type {self._adapter.service_type}, interface '
                f'{self._adapter.interface}, region '
                f'{self._adapter.region_name}'
            )
            raise errors.EndpointNotFound(
                credentials=self._credentials, wanted=wanted, **call.context()
            )
        self._endpoint = endpoint
        return endpoint

    def _authenticate(self, call: '_Call') -> None:
        # Apart from the request, so that a fault of keystone's is not taken
        # for one of placement's. keystoneauth keeps the token.
        try:
            self._adapter.session.get_auth_headers(self._adapter.auth)
        except ks_exc.ClientException as exc:
            raise self._no_token(call, exc) from exc
        except OSError as exc:
            raise _no_connection(call, exc) from exc

    def _no_token(
        self, call: '_Call', exc: Exception
    ) -> errors.AuthenticationFailed:
        context = call.context()
        if isinstance(exc, ks_exc.HttpError):
            context |= {
                'method': exc.method,
                'url': _without_userinfo(exc.url),
                'status': exc.http_status,
                'request_id': exc.request_id,
            }
        return errors.AuthenticationFailed(
            credentials=self._credentials, cause=str(exc), **context
        )

    def _send(
        self,
        call: '_Call',
        path: str,
        json: typing.Any,
        microversion: str | None,
    ) -> typing.Any:
        try:
            return self._adapter.request(
                path,
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
            cause = answers.root_cause(exc)
            # A server that reads too long a request line may just hang up.
            # One that refuses connections has read nothing.
            if len(call.query) >= _LONG and answers.hung_up(exc):
                raise call.too_long(cause) from exc
            raise errors.ConnectionFailed(
                cause=cause, **call.context()
            ) from exc
        except ks_exc.ClientException as exc:
            # A token that placement refused is asked for anew meanwhile.
            raise self._no_token(call, exc) from exc
        except OSError as exc:
            raise _no_connection(call, exc) from exc

    def _refusal(
        self, call: '_Call', response: typing.Any
    ) -> errors.PlacementError:
        status = response.status_code
        context = call.context(response)
        detail = answers.detail(response)
        ours = answers.decode(response) is not None
        if status in (414, 431):
            return call.too_long(detail, response)
        if len(call.query) >= _LONG:
            if not ours and status in (400, 413, 500, 502):
                return call.too_long(detail, response)
            if 'resources' in call.query and any(
                words in detail for words in _LOST
            ):
                return call.too_long('it was lost on the way', response)
        if status in (401, 403):
            refused = (
                errors.Unauthorized if status == 401 else errors.Forbidden
            )
            return refused(
                credentials=self._credentials, detail=detail, **context
            )
        if status == 409 or (
            # What placement answers where two updates of traits overlap in
            # its database: the handler does not catch it.
            status == 500 and 'Another thread concurrently updated' in detail
        ):
            return errors.Conflict(detail=detail, **context)
        if status == 404 and not ours:
            return errors.UnexpectedAnswer(
                expected="placement's JSON",
                got=answers.describe(response),
                **context,
            )
        plain: dict[int, type[errors.PlacementError]] = {
            400: errors.BadRequest,
            404: errors.NotFound,
            503: errors.Unavailable,
        }
        if status in plain:
            return plain[status](detail=detail, **context)
        if status >= 500:
            return errors.ServerError(detail=detail, **context)
        return errors.UnexpectedAnswer(
            expected='an answer that placement gives to this request',
            got=answers.describe(response),
            **context,
        )


class _Call:
    """What an error says about a request."""

    def __init__(
        self,
        method: str,
        url: str,
        query: str,
        credentials: str,
        aggregates: int = 0,
    ) -> None:
        self.method = method
        self.query = query
        self._aggregates = aggregates
        self._url = url
        if len(query) > _SHOWN:
            self._url += f'?{query[:_SHOWN]}... ({len(query)} bytes)'
        elif query:
            self._url += '?' + query

    def context(self, response: typing.Any = None) -> dict[str, typing.Any]:
        found = {'method': self.method, 'url': self._url}
        if response is not None:
            found['status'] = response.status_code
            found['request_id'] = response.headers.get(
                'x-openstack-request-id'
            )
        return found

    def too_long(
        self, detail: str, response: typing.Any = None
    ) -> errors.QueryTooLong:
        return errors.QueryTooLong(
            detail=detail,
            aggregates=self._aggregates,
            size=len(self.query),
            **self.context(response),
        )


def _count_aggregates(params: Sequence[tuple[str, str]]) -> int:
    return sum(
        value.count(',') + 1
        for key, value in params
        if key.startswith('member_of')
    )


def _without_userinfo(url: str) -> str:
    parts = parse.urlsplit(url)
    host = parts.netloc.rpartition('@')[2]
    return parse.urlunsplit(parts._replace(netloc=host))


def _no_connection(call: '_Call', exc: OSError) -> errors.ConnectionFailed:
    # What keystoneauth does not translate: a cafile or certfile that is not
    # there.
    return errors.ConnectionFailed(cause=str(exc), **call.context())


def _refuse_userinfo(url: str | None, credentials: str) -> None:
    try:
        has_userinfo = url and '@' in parse.urlsplit(url).netloc
    except ValueError as exc:
        raise exception.InvalidValue(
            where=credentials,
            expected=f'a URL ({exc})',
            got=url and url.rpartition('@')[2],
        ) from exc
    if url and has_userinfo:
        raise exception.InvalidValue(
            where=credentials,
            expected='a URL without user and password (auth_type = '
            'http_basic has options of its own for them)',
            got=_without_userinfo(url),
        )
