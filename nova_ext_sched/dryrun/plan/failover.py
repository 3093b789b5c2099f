# SPDX-License-Identifier: Apache-2.0

"""Checks that safe hosts stay safe while others are empty."""

from collections.abc import Set

from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.cloud import fork
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import planner
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import survive


class Failover:
    """The hosts that can fail as the cloud is, one at a time.

    Each server on such a host finds another then, or is one that nova
    does not evacuate as it is.

    :param advance: called after each server
    :raises placement.PlacementFailed: placement does not answer
    """

    def __init__(
        self,
        cloud: snapshot.Snapshot,
        advance: progress.Advance = progress.silent,
    ) -> None:
        self._places = destinations.Destinations(cloud)
        survival = survive.Survival(self._places)
        failures, _ = survival.find()
        advance(steps=0, label='Evacuating servers')
        safe: set[str] = set()
        self._movables: dict[str, movable.Movable] = {}
        self._homes: dict[str, str] = {}
        for failure, _, evacuated in survival.fail(failures, advance):
            if not failure.without_room:
                safe.add(failure.failure)
            for uuid, prepared in evacuated.movables.items():
                if not isinstance(prepared, Exception):
                    self._movables[uuid] = prepared
                    self._homes[uuid] = failure.failure
        self._hosts = [host for host in failures if host in safe]

    def find_lost(self, future: fork.Fork, empty: Set[str]) -> str | None:
        """Return a host that can no longer fail; None if there is none.

        :param future: the fork that is open, with the moves
        :param empty: names of the hosts that are empty
        :raises placement.PlacementFailed: placement does not answer
        """
        on: dict[str, list[plans.Leaving]] = {}
        for uuid, home in self._homes.items():
            host = future.moved.get(uuid, home)
            one = plans.Leaving(uuid, '', '', host, [])
            on.setdefault(host, []).append(one)
        for host in self._hosts:
            if host not in empty and not self._may_fail(
                host, on.get(host, []), empty
            ):
                return host
        return None

    def _may_fail(
        self, host: str, leaving: list[plans.Leaving], empty: Set[str]
    ) -> bool:
        places, movables = self._places, self._movables
        barred = places.nodes_of({host, *empty})
        for one in leaving:
            movable.stand_on(movables[one.server], host)
        return not planner.find_remaining(
            places, leaving, movables, barred, places.estimate
        )
