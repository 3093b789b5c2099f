# SPDX-License-Identifier: Apache-2.0

"""Sends requests through keystoneauth and raises this package's errors."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import functools
import http.client
import typing
from urllib import parse

from keystoneauth1 import exceptions as ks_exc

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.placement import answers
from nova_ext_sched.placement import errors
from nova_ext_sched.placement import microversion

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
# What is raised where the server took the connection and then closed it.
_HUNG_UP = (
    ConnectionResetError,
    ConnectionAbortedError,
    BrokenPipeError,
    http.client.BadStatusLine,
)
# Bytes of a query that are shown.
_SHOWN = 160

_PROBLEMS = {
    400: 'placement refuses the request',
    401: 'placement does not accept the credentials of {credentials}',
    403: 'placement does not allow this with the credentials of {credentials}',
    404: 'placement does not have it',
    409: 'placement refuses the change',
    503: 'placement is unavailable',
}


class Transport:
    """A keystoneauth adapter for placement that raises this package's errors.

    :param adapter: keystoneauth1.adapter.Adapter
    :param credentials: the source of the credentials, for errors, such as
        ``[placement] of nova.conf``
    """

    def __init__(self, adapter: typing.Any, credentials: str) -> None:
        self._adapter = adapter
        self._credentials = messages.clean(credentials)

    @functools.cached_property
    def microversions(self) -> microversion.Range:
        """The server's least and greatest; asked once."""
        return self.request('GET', '/', microversion.read_range, None)

    def request(
        self,
        method: str,
        path: str,
        read: Callable[[typing.Any], T],
        needs: microversion.Needs | None,
        params: Params = (),
        json: typing.Any = None,
    ) -> T:
        """Send a request and return what ``read`` makes of its answer.

        :param path: the path below the endpoint, with the first slash
        :param read: gets the decoded JSON, None if the answer has no body
        :param needs: None for a request without a microversion
        :param params: pairs of the query, not encoded
        :raises errors.PlacementError: whatever went wrong; nothing is sent
            where the server's microversion cannot express the request
        """
        query = parse.urlencode(params)
        context = {'method': method, 'url': _show(path, query)}
        try:
            with self._translate(query):
                url = self._prepare().rstrip('/') + path
                context['url'] = _show(url, query)
                response = self._adapter.request(
                    path + ('?' + query if query else ''),
                    method,
                    json=json,
                    microversion=needs
                    and microversion.choose(self.microversions, needs),
                    microversion_service_type='placement',
                    headers={'Accept': 'application/json'},
                    raise_exc=False,
                )
            request_id = response.headers.get('x-openstack-request-id')
            context['status'] = response.status_code
            context['request_id'] = request_id and messages.clean(request_id)
            if response.status_code >= 400:
                raise self._explain_refusal(response, query)
            return _read(response, read)
        except errors.PlacementError as exc:
            exc.add_context(**context)
            raise

    @contextlib.contextmanager
    def _translate(self, query: str) -> Iterator[None]:
        """Raise one of this package's errors if no answer came."""
        try:
            yield
        except ks_exc.ConnectTimeout as exc:
            timeout = self._adapter.session.timeout
            raise errors.TimedOut(
                credentials=self._credentials,
                timeout='not set' if timeout is None else f'{timeout:g} s',
            ) from exc
        # keystoneauth does not translate OSError, as for a cafile or certfile
        # that is not there.
        except (ks_exc.ConnectionError, OSError) as exc:
            raise _explain_failure(exc, query) from exc
        # A token that placement refused was asked for anew.
        except ks_exc.ClientException as exc:
            raise self._explain_no_token(exc) from exc

    def _prepare(self) -> str:
        """Return the endpoint, once keystone has given a token.

        Apart from the request, so that a fault of keystone's is not taken for
        one of placement's. keystoneauth keeps the token.
        """
        adapter = self._adapter
        auth = adapter.auth or adapter.session.auth
        self._check_url(getattr(auth, 'auth_url', None))
        endpoint = None
        try:
            with contextlib.suppress(ks_exc.CatalogException):
                endpoint = adapter.get_endpoint()
            self._check_url(endpoint)
            if endpoint:
                adapter.session.get_auth_headers(adapter.auth)
                return endpoint
        except ks_exc.ClientException as exc:
            raise self._explain_no_token(exc) from exc
        raise errors.EndpointNotFound(
            credentials=self._credentials,
            wanted=messages.clean(
                f'service type {adapter.service_type}, interface '
                f'{adapter.interface}, region {adapter.region_name}'
            ),
        )

    def _check_url(self, url: typing.Any) -> None:
        # keystoneauth would write a password in a URL to the log.
        expected = (
            'a URL without user and password (auth_type = http_basic has '
            'options of its own for them)'
        )
        try:
            if not url or '@' not in parse.urlsplit(url).netloc:
                return
        except ValueError as exc:
            expected = f'a URL ({messages.clean(exc)})'
        raise exception.InvalidValue(
            where=self._credentials,
            expected=expected,
            got=url.rpartition('@')[2],
        )

    def _explain_no_token(self, exc: Exception) -> errors.PlacementError:
        failed = errors.AuthenticationFailed(
            credentials=self._credentials, cause=messages.clean(exc, 1000)
        )
        if isinstance(exc, ks_exc.HttpError):
            # Keystone may have answered with another place.
            failed.add_context(
                method=exc.method,
                url=messages.clean((exc.url or '').rpartition('@')[2]),
                status=exc.http_status,
                request_id=exc.request_id,
            )
        return failed

    def _explain_refusal(
        self, response: typing.Any, query: str
    ) -> errors.PlacementError:
        status, detail = response.status_code, answers.get_detail(response)
        is_placements = answers.decode(response) is not None
        is_long = len(query) >= _LONG
        if is_long and any(words in detail for words in _LOST):
            return _too_long(query, 'it was lost on the way')
        if status in (414, 431) or (
            is_long and not is_placements and status in (400, 413, 500, 502)
        ):
            return _too_long(query, detail)
        problem = _PROBLEMS.get(
            status, 'placement failed' if status >= 500 else ''
        )
        if not problem or (status == 404 and not is_placements):
            return errors.UnexpectedAnswer(
                expected='an answer of placement to this request',
                got=answers.say_foreign(response),
            )
        problem = problem.format(credentials=self._credentials)
        return errors.Refused(problem=problem, detail=detail)


def _read(response: typing.Any, read: Callable[[typing.Any], T]) -> T:
    value = answers.decode(response)
    try:
        if value is None and response.content:
            raise ValueError('no JSON object')
        return read(value)
    except (LookupError, TypeError, ValueError, AttributeError) as exc:
        cause = f'{type(exc).__name__}: {messages.clean(exc)}'
        raise errors.UnexpectedAnswer(
            expected="placement's JSON of this request",
            got=f'{answers.say_foreign(response)} ({cause})',
        ) from exc


def _show(url: str, query: str) -> str:
    """Return a URL and its query, percent-encoded, for an error."""
    if len(query) > _SHOWN:
        query = f'{query[:_SHOWN]}... ({len(query)} bytes)'
    return f'{messages.clean(url, 500)}?{query}'.rstrip('?')


def _explain_failure(exc: BaseException, query: str) -> errors.PlacementError:
    chain = [exc]
    while cause := chain[-1].__cause__ or chain[-1].__context__:
        if cause in chain:
            break
        chain.append(cause)
    words = messages.clean(str(chain[-1]) or type(chain[-1]).__name__)
    # A server that reads too long a request line may just hang up. One that
    # refuses connections has read nothing.
    if len(query) >= _LONG and any(isinstance(e, _HUNG_UP) for e in chain):
        return _too_long(query, words)
    return errors.ConnectionFailed(cause=words)


def _too_long(query: str, detail: str) -> errors.QueryTooLong:
    aggregates = sum(
        value.count(',') + 1
        for key, value in parse.parse_qsl(query)
        if key.startswith('member_of')
    )
    return errors.QueryTooLong(
        detail=detail, aggregates=aggregates, size=len(query)
    )
