# SPDX-License-Identifier: Apache-2.0

"""What holds the allocations of servers, as placement has them.

Placement has no request for the allocations of several servers. Each takes
one, and all requests for hosts that come at once share them
(:mod:`.joined`).
"""

from collections.abc import Collection
from collections.abc import Mapping
from concurrent import futures
import typing

from nova import exception as nova_exception
from nova.scheduler.client import report

from nova_ext_sched.queries import joined

# Servers in one question: some hundred milliseconds on a busy controller.
_MOST_WANTED = 100

# Requests to placement at the same time.
_AT_ONCE = 8


class _Placement(joined.Source):
    def call(
        self,
        ctxt: typing.Any,
        select: joined.Select[joined.Found],
        wanted: Collection[str],
    ) -> Mapping[str, joined.Found]:
        return select(ctxt, wanted)

    def fault(self, what: str) -> nova_exception.PlacementAPIConnectFailure:
        return nova_exception.PlacementAPIConnectFailure(
            f'placement {what} about the allocations of servers'
        )


_placement = _Placement(_MOST_WANTED)


def get_providers(
    ctxt: typing.Any, servers: Collection[str]
) -> dict[str, frozenset[str]]:
    """Return the resource providers that hold something for each server.

    :param servers: UUIDs
    :returns: UUIDs of providers, by server; empty where it has no allocation
    :raises Exception: what nova's report client raises where placement does
        not answer
    """
    if not servers:
        return {}
    question = _placement.join(ctxt, _select_providers, servers)
    _placement.wait(question)
    if question.fault:
        raise question.fault
    providers = {}
    for uuid in servers:
        found = question.found[uuid]
        # Of what others asked for, no fault is this request's.
        if isinstance(found, Exception):
            raise found
        providers[uuid] = found
    return providers


def _select_providers(
    ctxt: typing.Any, servers: Collection[str]
) -> dict[str, frozenset[str] | Exception]:
    get = report.report_client_singleton().get_allocs_for_consumer

    def read(uuid: str) -> frozenset[str] | Exception:
        try:
            return frozenset(get(ctxt, uuid)['allocations'])
        except Exception as exc:
            return exc

    with futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(servers, pool.map(read, servers), strict=True))
