# SPDX-License-Identifier: Apache-2.0

"""Finds requests of evacuations, by nova's own record."""

import datetime
import typing

from nova import context as nova_context
import nova.conf

from nova_ext_sched import fields
from nova_ext_sched import request_state
from nova_ext_sched.policy import failover
from nova_ext_sched.policy import verdict
from nova_ext_sched.queries import aggregates
from nova_ext_sched.queries import cells
from nova_ext_sched.queries import servers

CONF = nova.conf.CONF

# As long as nova waits for a cell, and no pause after a silence: when a host
# has failed, what is refused now may be lost.
_CELLS = cells.Cells(nova_context.CELL_TIMEOUT, pauses=False)


def find_move(ctxt: typing.Any, request_spec: typing.Any) -> str:
    """Return the kind of move that a request is for; empty for none.

    Of a boot or an unshelve nobody asks: nova lets them ignore no host.

    :raises nova.exception.CellTimeout: the server's cell is silent
    :raises Exception: what a database or its driver raises
    """
    if supposed := _suppose(request_spec):
        return supposed
    ignored = fields.get_field(request_spec, 'ignore_hosts')
    uuid = fields.get_field(request_spec, 'instance_uuid')
    if not ignored or not uuid:
        return ''
    return failover.name_move(_read(ctxt, uuid), ignored)


def known_move(request_spec: typing.Any) -> str:
    """Return the result of :func:`find_move` in stage 1; empty for none."""
    return _suppose(request_spec) or request_state.of(request_spec).move


def judge_standing(
    ctxt: typing.Any,
    request_spec: typing.Any,
    host: str,
    refused: verdict.Verdict,
) -> verdict.Verdict:
    """Decide about a server on a held host, as the policy does.

    :param request_spec: of a server that is there
    :param refused: the answer to any other request for the host
    :raises Exception: as :func:`find_move`
    """
    uuid = fields.get_field(request_spec, 'instance_uuid')
    key = CONF.nova_ext_sched.failover_key
    marks: list[datetime.datetime] = [
        since
        for value, since in aggregates.get_times(ctxt, key, host)
        if failover.read_mark({key: value}, key)
    ]
    return failover.judge_standing(
        refused,
        _read(ctxt, uuid) if uuid else None,
        host,
        min(marks, default=None),
    )


def _suppose(request_spec: typing.Any) -> str:
    # A dry run asks what would be. Its requests have a class of their own,
    # which no message and no database brings.
    return getattr(type(request_spec), 'supposed_move', '')


def _read(ctxt: typing.Any, uuid: str) -> failover.Move | None:
    asked = {
        mapped.cell: [uuid]
        for mapped in servers.select_cells(ctxt, [uuid])
        if mapped.cell
    }
    answers = _CELLS.ask(ctxt, servers.select_moves, asked)
    for fault in answers.faults.values():
        raise fault
    return answers.found.get(uuid)
