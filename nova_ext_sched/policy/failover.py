# SPDX-License-Identifier: Apache-2.0

"""Failover hosts: kept free for the servers of hosts that fail.

A host is held if the metadata of one of its aggregates marks it
(:func:`read_mark`):

========  ==================================================  ===============
host      request                                             decision
========  ==================================================  ===============
not held  any                                                 passes
held      evacuation                                          passes
held      live migration                                      passes if
                                                              ``failover_
                                                              takes`` has it
held      rebuild of a server that is there                   not judged
held      evacuation or live migration with ``force``         not judged:
          (before microversion 2.68)                          nova asks no
                                                              scheduler
held      boot, resize, cold migration, unshelve, one whose   refused
          kind cannot be read
========  ==================================================  ===============

What an evacuation is, nova's own record says now (:func:`name_move`).
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
import datetime
import operator
import typing

from oslo_utils import strutils

from nova_ext_sched import messages
from nova_ext_sched.policy import act
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import verdict

DECLARATION = declaration.Policy(
    name='failover',
    summary='Marked hosts take evacuations and nothing else that '
    'nova-scheduler places.',
    refuses='are kept for failures',
    closes=True,
    acts=(
        act.take_out(
            'every request, and the room is missing when a host fails'
        ),
    ),
    request_filter='failover_hosts',
    host_filter='FailoverHostsFilter',
    weigher='FailoverHostsWeigher',
    brings_weigher=True,
    prefers='hosts that are kept for failures',
    turned_on_by='[nova_ext_sched] enable_failover_hosts',
    turned_on=lambda conf: conf.nova_ext_sched.enable_failover_hosts,
    without_request_filter='nothing says which request is an evacuation, so '
    'the hosts take none either',
    without_host_filter='max_forbidden_aggregates has no effect on these '
    'hosts, and a server with the scheduler hint of a rebuild can land there',
)

#: Kinds of moves, as nova's migrations have them.
EVACUATION = 'evacuation'
LIVE_MIGRATION = 'live-migration'

# The task of a server while nova-scheduler is asked for a move.
_TASKS = {EVACUATION: 'rebuilding', LIVE_MIGRATION: 'migrating'}
# The status of the migration then.
_ACCEPTED = 'accepted'
# That of an evacuation whose source has started again.
_COMPLETED = 'completed'


class Move(typing.NamedTuple):
    """A server's task and its newest migration, as nova records them.

    :ivar has_source: whether its source has a nova-compute yet
    :ivar begun: when the migration began
    :ivar created: when the server was created
    """

    task: str | None
    kind: str | None
    status: str | None
    source: str | None
    to: str | None
    has_source: bool
    begun: datetime.datetime | None = None
    created: datetime.datetime | None = None


def read_mark(metadata: verdict.Metadata, key: str) -> bool:
    """Return whether an aggregate's hosts are held.

    ======================================  =====  =====================
    value, whatever its case                held
    ======================================  =====  =====================
    1, t, true, on, y, yes                  yes
    0, f, false, off, n, no                 no
    anything else                           yes    with a warning
    no such key                             no
    ======================================  =====  =====================
    """
    if key not in metadata:
        return False
    return strutils.bool_from_string(metadata[key], default=True)


def find_faults(metadata: verdict.Metadata, key: str) -> Iterator[str]:
    """Describe an aggregate's mark that is neither true nor false."""
    try:
        strutils.bool_from_string(metadata.get(key, 'false'), strict=True)
    except ValueError:
        yield (
            f'{messages.clean(key)}: expected true or false, got '
            f'{messages.quoted(metadata[key])}; its hosts are kept for '
            f'failures'
        )


def read(
    items: Iterable[verdict.Item], key: str
) -> tuple[list[str], list[str]]:
    """Read metadata items of any aggregates.

    :returns: the UUIDs of those whose hosts are held, and a message for each
        mark that should be corrected
    """
    held, faults = [], []
    for uuid, (name, metadata) in verdict.group_items(items).items():
        if read_mark(metadata, key):
            held.append(uuid)
        faults += [
            f'aggregate {messages.clean(name)}: {fault}'
            for fault in find_faults(metadata, key)
        ]
    return held, faults


def name_move(move: Move | None, ignored: Collection[str]) -> str:
    """Return the kind of move that a request is for, by nova's record.

    =========================  ===========================  ===============
    task and newest migration  its source                   kind
    =========================  ===========================  ===============
    ``rebuilding``, type       a host that the request      evacuation
    ``evacuation``, status     ignores
    ``accepted``
    ``migrating``, type        a host that the request      live migration
    ``live-migration``,        ignores
    status ``accepted``
    any other, or none         any                          none
    any                        none of these                none
    =========================  ===========================  ===============

    :param ignored: the hosts that the request ignores; nova alone writes them
    """
    if (
        move
        and move.status == _ACCEPTED
        and move.source in ignored
        and move.kind in _TASKS
        and move.task == _TASKS[move.kind]
    ):
        return move.kind
    return ''


def judge_standing(
    refused: verdict.Verdict,
    move: Move | None,
    host: str,
    marked: datetime.datetime | None,
) -> verdict.Verdict:
    """Decide about a server on the held host where it is.

    ==========================================  ==========================
    it came                                     decision
    ==========================================  ==========================
    by an evacuation; nova-compute of the       may stay
    failed host has not started again (it then
    ends the migration), and is not gone
    by an evacuation; the failed host is back   is to leave
    or gone
    before the host was marked                  is to leave
    in any other way, or nova does not say how  refused
    ==========================================  ==========================

    :param refused: the answer to any other request for the host
    :param marked: when the host was marked; None if that is only supposed
    """
    if move is None:
        return refused
    is_here = move.to == host
    came = move.begun if is_here else move.created
    if is_here and move.kind == EVACUATION:
        if move.status != _COMPLETED and move.has_source:
            return verdict.PASS
        back = 'back' if move.has_source else 'gone'
        why = f'its host {messages.clean(move.source)} is {back}'
    elif marked is None or (came and came <= marked):
        why = 'it was there before'
    else:
        return refused
    return refused._replace(
        reason=f'{refused.reason}: to leave, {why}', is_leaving=True
    )


def is_taken(move: str, takes: Collection[str]) -> bool:
    """Return whether held hosts take a request.

    :param move: the kind of move that it is for; empty for none
    :param takes: what ``failover_takes`` adds, ``live-migrations``
    """
    return move == EVACUATION or f'{move}s' in takes


def judge(
    aggregates: Iterable[verdict.Aggregate], key: str
) -> verdict.Verdict:
    """Decide about a host in these aggregates, for any other request.

    :param aggregates: name and metadata of each
    """
    for name, metadata in sorted(aggregates, key=operator.itemgetter(0)):
        if read_mark(metadata, key):
            return verdict.reject(
                f'aggregate {messages.clean(name)} keeps its hosts for '
                f'failures ({messages.clean(key)}='
                f'{messages.clean(metadata[key])})',
                aggregate=name,
            )
    return verdict.PASS
