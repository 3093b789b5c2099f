# SPDX-License-Identifier: Apache-2.0

"""The request that the command line describes."""

import argparse
import typing

from oslo_utils import timeutils

from nova_ext_sched import messages
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.explain import document
from nova_ext_sched.cmd.explain import explanation
from nova_ext_sched.cmd.explain import funnel
from nova_ext_sched.cmd.explain import request
from nova_ext_sched.cmd.explain import server
from nova_ext_sched.queries import fields
from nova_ext_sched.request_filters import reservation


class Asked:
    """A request as nova-conductor would send it to the scheduler.

    :param ctxt: a nova RequestContext; gets the project of the server
    :param wanted: the command's arguments
    :param found: ends where conductor refuses the request without asking the
        scheduler
    :ivar spec_obj: nova's RequestSpec
    :ivar description: what is asked, for the document
    :raises exception.InvalidValue: something that is named does not exist, or
        contradicts itself
    """

    def __init__(
        self,
        ctxt: typing.Any,
        scheduler: nova_scheduler.ReadOnlyHostManager,
        wanted: argparse.Namespace,
        found: funnel.Funnel,
    ) -> None:
        self._scheduler = scheduler
        self._wanted = wanted
        self._server: server.Server | None = None
        if wanted.server is not None:
            self._server = server.Server(ctxt, wanted.server)
            self.spec_obj = self._server.spec_obj
        else:
            flavor = request.get_flavor(ctxt, wanted.flavor)
            self.spec_obj = request.build(
                ctxt, wanted, flavor, request.get_image(ctxt, wanted)
            )
            self.spec_obj.num_instances = wanted.num_instances or 1
            if wanted.destination:
                self.spec_obj.requested_destination = request.destination(
                    wanted.destination
                )
        with explanation.conducting(found):
            if self._server is not None:
                self._operate(ctxt, self._server)
            else:
                request.set_up_group(ctxt, self.spec_obj)
        self.description = document.describe_request(
            self.spec_obj,
            wanted.operation,
            wanted.server,
            self._server.name if self._server is not None else None,
        )

    def remarks(self, found: funnel.Funnel) -> list[str]:
        """Return why the scheduler may have decided otherwise."""
        remarks = []
        mine = self._server
        if (
            mine is not None
            and mine.never_landed
            and found.finds_host
            and self._wanted.operation == 'boot'
        ):
            remarks.append(
                'The server is in ERROR, so nova found no host when it was '
                'created, and it finds one now. Either the cloud has changed '
                'since (hosts, their use, aggregates, the flavor), or the '
                'server was created with "host" or "hypervisor_hostname", '
                'which nova does not store'
            )
        if mine is not None and mine.building_since is not None:
            minutes = (
                timeutils.delta_seconds(
                    mine.building_since, timeutils.utcnow(with_timezone=True)
                )
                // 60
            )
            remarks.append(
                f'The server is in BUILD for '
                f'{messages.count("minute", int(minutes))}: nova has noted '
                f'neither a host nor a fault. If that lasts, nova-conductor '
                f'did not get the request, ended, or could not store the '
                f'fault: its log says which. nova does not try again: delete '
                f'the server and create it anew'
            )
        if self.spec_obj.project_id is None:
            closed = self._find_closed_aggregates()
            if closed:
                remarks.append(
                    f'No project was given (--project), and the reservation '
                    f'depends on it: {messages.first_few(closed)}'
                )
        return remarks

    def _find_closed_aggregates(self) -> list[str]:
        """Return which aggregates that the request names are whose."""
        wanted = reservation.compile_request(self.spec_obj)
        found = []
        for aggregate in self._scheduler.aggs_by_id.values():
            metadata = fields.aggregate_metadata(aggregate)
            items = wanted.closing_items(metadata)
            if items and any(key in metadata for key in wanted.required):
                name = messages.clean(fields.aggregate_name(aggregate))
                found.append(f'aggregate {name} has {items}')
        return sorted(found)

    def _operate(self, ctxt: typing.Any, mine: server.Server) -> None:
        wanted = self._wanted
        arguments: dict[str, typing.Any] = {}
        if wanted.destination:
            arguments['destination'] = request.destination(wanted.destination)
        if wanted.operation == 'resize':
            arguments['flavor'] = request.get_flavor(ctxt, wanted.flavor)
        elif wanted.operation == 'rebuild':
            arguments['image'] = request.get_image(ctxt, wanted)
            arguments['client'] = self._scheduler.placement
        getattr(mine, wanted.operation.replace('-', '_'))(**arguments)
