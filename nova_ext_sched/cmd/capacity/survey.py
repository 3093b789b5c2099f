# SPDX-License-Identifier: Apache-2.0

"""How many servers of a flavor fit, of all that is asked about it."""

import argparse
from collections.abc import Sequence
import dataclasses
import functools
import gc
import sys
import typing

from nova import exception as nova_exception
from nova import objects
import nova.conf

from nova_ext_sched import messages
from nova_ext_sched.cli import progress
from nova_ext_sched.cmd import kept_hosts
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.capacity import document
from nova_ext_sched.cmd.capacity import kind
from nova_ext_sched.cmd.capacity import room
from nova_ext_sched.cmd.explain import explanation
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import hosts
from nova_ext_sched.cmd.explain import placement
from nova_ext_sched.cmd.explain import request

CONF = nova.conf.CONF


def make_document(wanted: argparse.Namespace) -> dict[str, typing.Any]:
    """Return the document of what the arguments of the command ask for.

    :raises exception.InvalidValue: what they name does not exist
    :raises nova_scheduler.PlacementFailed: placement does not answer
    """
    scheduler = kept_hosts.HostManager()
    survey = Survey(wanted, scheduler, wanted.hosts)
    flavors = survey.get_flavors(wanted.flavor)
    hosts = len(scheduler.hosts)
    if flavors and scheduler.states:
        # They stay until the process ends. Python would else look for garbage
        # among them again and again, for a fifth of the time.
        gc.freeze()
    described = []
    with progress.bar(
        sys.stderr, 'Counting servers of flavors', len(flavors)
    ) as advance:
        for flavor in flavors:
            described.append(survey.count(flavor))
            advance()
    return document.build(wanted, described, hosts, survey.remarks)


@dataclasses.dataclass
class Survey:
    """Counts the servers that fit, for one flavor after the other.

    :param wanted: the arguments of :mod:`nova_ext_sched.cmd.request_options`
    :param scheduler: reads the hosts, aggregates and cells once, when the
        first flavor is counted; several surveys may share it
    :param by_host: whether to describe the room of each host
    :ivar remarks: sentences about what could not be seen, each once
    :raises exception.InvalidValue: the image cannot be read
    """

    wanted: argparse.Namespace
    scheduler: kept_hosts.HostManager
    by_host: bool = False

    def __post_init__(self) -> None:
        self._ctxt = nova_scheduler.context(self.wanted.project)
        self._image = request.get_image(self._ctxt, self.wanted)
        self.remarks: dict[str, None] = {}
        # The same for every flavor.
        self._describe_kind = functools.cache(
            lambda uuid: kind.describe(self.scheduler.states[uuid])
        )

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

    def count(self, flavor: typing.Any) -> dict[str, typing.Any]:
        """Count how many servers of a flavor fit.

        :returns: what :func:`.document.describe` does
        :raises nova_scheduler.PlacementFailed: placement does not answer
        """
        try:
            known = self._count(flavor)
        except nova_scheduler.FilterFailed as exc:
            known = {'fault': str(exc)}
        hosts = self.scheduler.hosts if self.by_host else None
        return document.describe(flavor, hosts, **known)

    def _count(self, flavor: typing.Any) -> dict[str, typing.Any]:
        """Return what :func:`.document.describe` wants to know."""
        try:
            spec_obj = request.build(
                self._ctxt, self.wanted, flavor, self._image
            )
            request.set_up_group(self._ctxt, spec_obj)
        except request.Refused as exc:
            return {'end': f'nova-api refuses it: {exc.got}'}
        except nova_exception.UnsupportedPolicyException as exc:
            return {'end': exc.format_message()}
        if spec_obj.instance_group is None:
            # The order of the hosts counts for a server group alone.
            self.scheduler.weighers = []
        found = explanation.start(self.scheduler)
        self.remarks |= dict.fromkeys(found.remarks)
        candidates = placement.Placement(
            self.scheduler, found, self.scheduler.providers, is_limited=False
        ).ask(self._ctxt, spec_obj)
        if candidates is None:
            end = typing.cast(funnel.End, found.end)
            text = f'{end.name} ends the request: {end.reason}'
            if found.failure is None:
                return {'end': text}
            # nova creates none either, as long as it lasts.
            cause = messages.describe(found.failure)
            return {'found': found, 'fault': f'{text}: {cause}'}
        limit = CONF.scheduler.max_placement_results
        if len(candidates.requests) > limit:
            self.remarks[
                'A request gets at most '
                f'{messages.count("allocation candidate", limit)} of '
                'placement (max_placement_results), and there are more: '
                'nova may refuse a request while hosts have room'
            ] = None
        judge = hosts.Judge(self.scheduler, found, candidates)
        rooms = room.Rooms(
            self.scheduler.enabled_filters,
            self._describe_kind,
            spec_obj,
            judge.judge(self._ctxt, spec_obj),
            candidates,
        )
        return {'found': found, 'rooms': rooms.measure()}
