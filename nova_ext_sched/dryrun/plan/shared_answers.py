# SPDX-License-Identifier: Apache-2.0

"""Makes the answers that equivalent requests share.

They are made on the cloud as it is, before a fork is opened.
"""

from collections.abc import Callable
from collections.abc import Set
import contextlib
import typing

import cachetools
from nova import exception as nova_exception

from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import gone
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import hosts
from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.plan import movable

# The most hosts in all kept shared answers together: it bounds memory.
_MOST_KEPT = 300_000


def judge_existing(
    cloud: snapshot.Snapshot, spec_obj: typing.Any, with_reasons: bool = False
) -> tuple[matrix.Matrix, list[typing.Any]]:
    """Judge a server's request for all equivalent ones.

    A request filter may fail because the server was deleted. Such a failure
    must not become the shared answer of servers that still exist.

    :raises nova.exception.InstanceNotFound: the server was deleted
    """
    judged, states = hosts.judge(cloud, spec_obj, with_reasons)
    server = spec_obj.instance_uuid
    if judged.end and gone.find(cloud, [server]):
        raise nova_exception.InstanceNotFound(instance_id=server)
    return judged, states


def list_in_cell(cloud: snapshot.Snapshot, spec_obj: typing.Any) -> Set[str]:
    """Return the UUIDs of the hosts that nova looks at for a request.

    Placement knows no cells: in its answers are hosts of all of them.
    """
    cell = snapshot.get_cell(spec_obj)
    if cell is None:
        return cloud.states.keys()
    return cloud.nodes_by_cell.get(cell, frozenset())


class SharedAnswers:
    """The shared answers, each made once."""

    def __init__(self, cloud: snapshot.Snapshot) -> None:
        self._cloud = cloud
        self._kept: cachetools.LRUCache[str, movable.Shared] = (
            cachetools.LRUCache(
                _MOST_KEPT,
                getsizeof=lambda one: len(one.requests) + len(one.refused) + 1,
            )
        )

    def find(
        self, key: likeness.Key | None, make: Callable[[], typing.Any]
    ) -> movable.Like | None:
        """Return the shared answer for a request, made if there is none yet.

        :param key: the result of :func:`.likeness.of_request`
        :param make: returns a nova RequestSpec, which is changed
        :returns: None if the request has no key, or an enabled filter reads
            unknown fields
        :raises Exception: as :func:`.hosts.judge`
        """
        if key is None:
            return None
        shared = self._kept.get(key.text)
        if shared is None:
            spec_obj = make()
            if not likeness.are_known(self._cloud.enabled_filters, spec_obj):
                return None
            shared = self.make(spec_obj, judge_existing)
            if len(shared.requests) < _MOST_KEPT:
                self._kept[key.text] = shared
        return movable.Like(shared, key.is_whole)

    def make(
        self,
        spec_obj: typing.Any,
        ask: Callable[
            ..., tuple[matrix.Matrix, list[typing.Any]]
        ] = hosts.judge,
    ) -> movable.Shared:
        """Make the shared answer for all requests equivalent to one.

        :param spec_obj: a nova RequestSpec; it is changed
        :param ask: runs the request through the scheduler's steps; by default
            without a check whether the server was deleted
        :raises RuntimeError: a fork is open, and the answer would hold in that
            fork only
        :raises Exception: as :func:`.hosts.judge`
        """
        if self._cloud.open_fork:
            raise RuntimeError(
                'a shared answer: expected the cloud as it is, got a fork'
            )
        spec_obj.ignore_hosts = []
        spec_obj.instance_group = None
        spec_obj.scheduler_hints = {}
        filtered, ctxt = spec_obj.obj_clone(), process.context()
        _, states = ask(self._cloud, filtered)
        offered = {one.uuid: one.allocation_candidates for one in states}
        refused: dict[str, list[claims.Request]] = {}
        resources: list[typing.Any] = []
        with contextlib.suppress(
            nova_exception.NoValidHost, placement.QueryRefused
        ):
            resources = query.forms(ctxt, filtered, self._cloud)
            query.lift_limit(resources)
            # Ask even if no host passed: a host that refuses now may pass once
            # servers have left it.
            answer = self._cloud.providers.get_candidates(ctxt, resources)
            near = list_in_cell(self._cloud, filtered)
            refused = {
                uuid: requests
                for uuid, requests in query.by_provider(
                    answer.requests
                ).items()
                if uuid in near and uuid not in offered
            }
        return movable.Shared(spec_obj, filtered, offered, refused, resources)
