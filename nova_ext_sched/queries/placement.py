# SPDX-License-Identifier: Apache-2.0

"""Questions to placement besides nova's own."""

from collections.abc import Collection
import threading
import typing
from urllib import parse

from keystoneauth1 import exceptions as ks_exc
from nova import exception as nova_exception
from nova.scheduler.client import report

from nova_ext_sched import messages
from nova_ext_sched.queries import gets

# The first that has traits; aggregates, allocations and names of providers
# are older.
_MICROVERSION = '1.6'

# No connection, or one that was closed; keystone may be what is away.
_AWAY = (ks_exc.ConnectionError, ks_exc.DiscoveryFailure)

# Of a load balancer whose placement restarts, and of one that is too busy.
_AWAY_STATUSES = (502, 503, 504)


class _Client:
    # nova's client, another than nova's own: that one keeps ten connections,
    # and closes with a warning of urllib3 what is used beyond.

    def __init__(self) -> None:
        self._client: report.SchedulerReportClient | None = None
        self._lock = threading.Lock()

    def send(self, ctxt: typing.Any, url: str) -> typing.Any:
        # Raises gets.Away where it may be answered later.
        try:
            response = self._open().get(
                url, version=_MICROVERSION, global_request_id=ctxt.global_id
            )
        except _AWAY as exc:
            raise _away(messages.say_error(exc)) from exc
        except ks_exc.HttpError as exc:
            # keystone's.
            if exc.http_status in _AWAY_STATUSES:
                raise _away(messages.say_error(exc)) from exc
            raise
        except ks_exc.EndpointNotFound:
            # As nova does: a new client reads the catalog anew.
            self._client = None
            raise
        if response.status_code == 200:
            return response.json()
        said = (
            f'status {response.status_code}: {messages.clean(response.text)}'
        )
        if response.status_code in _AWAY_STATUSES:
            raise _away(said)
        raise nova_exception.NovaException(said)

    def _open(self) -> report.SchedulerReportClient:
        with self._lock:
            if self._client is None:
                self._client = report.SchedulerReportClient()
            return self._client


def _away(why: str) -> gets.Away:
    return gets.Away(f'Placement does not answer: {why}')


_client = _Client()

#: The GETs without whose answers a request is refused.
current = gets.Gets(_client.send)

# Without their answers a request goes another way, at once.
_helpful = gets.Gets(_client.send, seconds=0)


def get(ctxt: typing.Any, urls: Collection[str]) -> dict[str, typing.Any]:
    """Return placement's answers by URL.

    :raises gets.Away: placement was away for too long
    :raises Exception: keystoneauth, JSON, configuration, or another status;
        so do the other functions here
    """
    return current.ask(ctxt, urls) if urls else {}


def get_traits(ctxt: typing.Any) -> frozenset[str]:
    """Return the names of all traits that placement knows."""
    # One request for all of them: some hundred names, and a few of the
    # operator's.
    url = '/traits'
    return frozenset(_helpful.ask(ctxt, [url])[url]['traits'])


def get_aggregates_of_node(ctxt: typing.Any, node: str) -> frozenset[str]:
    """Return the UUIDs of the aggregates of a compute node's provider.

    Placement answers a query by these alone. nova's own tables of aggregates
    have hosts, and whose node it is only a cell's database knows.

    :param node: its hypervisor hostname; of one without a provider there are
        none
    """
    url = '/resource_providers'
    [named] = get(ctxt, [f'{url}?{parse.urlencode({"name": node})}']).values()
    urls = [
        f'{url}/{provider["uuid"]}/aggregates'
        for provider in named['resource_providers']
    ]
    return frozenset(
        aggregate
        for answer in get(ctxt, urls).values()
        for aggregate in answer['aggregates']
    )


def get_providers(
    ctxt: typing.Any, servers: Collection[str]
) -> dict[str, frozenset[str]]:
    """Return the resource providers that each server has allocations on.

    :param servers: UUIDs
    :returns: UUIDs of providers, by server; empty where it has no allocation
    :raises Exception: as :func:`get`
    """
    urls = {uuid: f'/allocations/{uuid}' for uuid in servers}
    answers = get(ctxt, urls.values())
    return {
        uuid: frozenset(answers[url]['allocations'])
        for uuid, url in urls.items()
    }
