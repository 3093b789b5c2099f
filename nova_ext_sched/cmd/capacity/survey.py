# SPDX-License-Identifier: Apache-2.0

"""How many servers of a flavor fit, of all that is asked about it."""

import argparse
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing

from nova import exception as nova_exception
from nova import objects
import nova.conf

from nova_ext_sched import messages
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.capacity import host_manager
from nova_ext_sched.cmd.capacity import room
from nova_ext_sched.cmd.explain import explanation
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import hosts
from nova_ext_sched.cmd.explain import placement
from nova_ext_sched.cmd.explain import request

CONF = nova.conf.CONF


@dataclasses.dataclass
class Count:
    """How many servers of one flavor fit.

    :ivar flavor: nova's
    :ivar rooms: by the UUID of each host that explain's stages left
    :ivar found: explain's stages; None where the request is refused before
    :ivar end: why no host was judged; empty where hosts were
    :ivar fault: why there is no number; empty where there is one
    """

    flavor: typing.Any
    rooms: Mapping[str, room.Room] = dataclasses.field(default_factory=dict)
    found: funnel.Funnel | None = None
    end: str = ''
    fault: str = ''

    @property
    def servers(self) -> int | None:
        """How many fit; None for any number, where a host has no end."""
        total = 0
        for one in self.rooms.values():
            if one.servers is None:
                return None
            total += one.servers
        return total

    @property
    def hosts(self) -> int:
        """On how many hosts they fit."""
        return sum(one.servers != 0 for one in self.rooms.values())


class Survey:
    """Counts the servers that fit, for one flavor after the other.

    :param wanted: the arguments of :mod:`nova_ext_sched.cmd.request_options`
    :param scheduler: reads the hosts, aggregates and cells once, when the
        first flavor is counted; several surveys may share it
    :ivar remarks: sentences about what could not be seen
    :raises exception.InvalidValue: the image cannot be read
    """

    def __init__(
        self,
        wanted: argparse.Namespace,
        scheduler: host_manager.HostManager,
    ) -> None:
        self._ctxt = nova_scheduler.context(wanted.project)
        self._wanted = wanted
        self._image = request.get_image(self._ctxt, wanted)
        self._scheduler = scheduler
        self.remarks: list[str] = []

    def get_flavors(self, names: Sequence[str]) -> list[typing.Any]:
        """Return nova Flavors by their IDs or names, each once.

        :param names: empty for every flavor that is not disabled
        :raises exception.InvalidValue: there is none of a name
        """
        if not names:
            return list(
                objects.FlavorList.get_all(
                    self._ctxt, filters={'disabled': False}
                )
            )
        found = [request.get_flavor(self._ctxt, name) for name in names]
        return list({flavor.flavorid: flavor for flavor in found}.values())

    def count(self, flavor: typing.Any) -> Count:
        """Count how many servers of a flavor fit.

        :raises nova_scheduler.PlacementFailed: placement does not answer
        """
        try:
            spec_obj = request.build(
                self._ctxt, self._wanted, flavor, self._image
            )
            request.set_up_group(self._ctxt, spec_obj)
        except request.Refused as exc:
            return Count(flavor, end=f'nova-api refuses it: {exc.got}')
        except nova_exception.UnsupportedPolicyException as exc:
            return Count(flavor, end=exc.format_message())
        found = explanation.start(self._scheduler)
        self._remark(found.remarks)
        try:
            return self._count(flavor, spec_obj, found)
        except nova_scheduler.FilterFailed as exc:
            return Count(flavor, fault=str(exc))

    def _count(
        self, flavor: typing.Any, spec_obj: typing.Any, found: funnel.Funnel
    ) -> Count:
        candidates = placement.Placement(
            self._scheduler, found, self._scheduler.providers, is_limited=False
        ).ask(self._ctxt, spec_obj)
        if candidates is None:
            end = typing.cast(funnel.End, found.end)
            text = f'{end.name} ends the request: {end.reason}'
            if found.failure is not None:
                # nova creates none either, as long as it lasts.
                cause = messages.describe(found.failure)
                return Count(flavor, found=found, fault=f'{text}: {cause}')
            return Count(flavor, found=found, end=text)
        limit = CONF.scheduler.max_placement_results
        if len(candidates.requests) > limit:
            self._remark(
                [
                    'A request gets at most '
                    f'{messages.count("allocation candidate", limit)} of '
                    'placement (max_placement_results), and there are more: '
                    'nova may refuse a request while hosts have room'
                ]
            )
        manager = hosts.Judge(self._scheduler, found, candidates)
        manager.judge(self._ctxt, spec_obj)
        rooms = room.Rooms(
            self._scheduler,
            spec_obj,
            manager.order,
            candidates.requests,
            candidates.summaries,
        )
        return Count(flavor, rooms.measure(), found)

    def _remark(self, remarks: Sequence[str]) -> None:
        self.remarks += [one for one in remarks if one not in self.remarks]
