# SPDX-License-Identifier: Apache-2.0

"""What nova-scheduler really decided."""

import typing

import fixtures
from nova.scheduler import manager as scheduler_manager


class Decision(typing.NamedTuple):
    """What nova-scheduler answered; nothing where NoValidHost.

    :ivar hosts: the host of each server
    :ivar alternates: the other hosts of the first server, the next best first
    """

    hosts: tuple[str, ...]
    alternates: tuple[str, ...] = ()


def record(test):
    """Return a list that gets each decision of the scheduler."""
    decisions = []
    select = scheduler_manager.SchedulerManager.select_destinations

    def record_decision(manager, *args, **kwargs):
        try:
            found = select(manager, *args, **kwargs)
        except BaseException:
            decisions.append(Decision(()))
            raise
        decisions.append(
            Decision(
                tuple(_name(one[0]) for one in found),
                tuple(map(_name, found[0][1:])),
            )
        )
        return found

    # What oslo.messaging looks at.
    for name in ('__name__', '__doc__'):
        setattr(record_decision, name, getattr(select, name))
    test.useFixture(
        fixtures.MonkeyPatch(
            'nova.scheduler.manager.SchedulerManager.select_destinations',
            record_decision,
        )
    )
    return decisions


def _name(selection):
    """Return a host's name as explain has it: a node's too, of several."""
    host, node = selection.service_host, selection.nodename
    return host if host == node else f'{host}:{node}'
