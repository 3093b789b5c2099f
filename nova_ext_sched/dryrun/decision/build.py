# SPDX-License-Identifier: Apache-2.0

"""Reads from nova's records how the build of a server ended.

A server is in ERROR because the scheduler found no host, or because nova
chose one and could not build it there: an image, a volume, a port. nova notes
which, in its table of faults; nova-compute notes an event wherever it began.

=====================================  ======================================
the last fault before a deletion       the build
=====================================  ======================================
"No valid host was found"              found no host
any other, after nova-compute began    failed on the hosts where it began
any other, and it did not              was ended by nova-conductor
none                                   ended unseen: nova-compute started
                                       anew, or somebody reset the state
=====================================  ======================================

MaxRetriesExceeded is a NoValidHost in nova's code and none in its words: each
host was tried.
"""

from collections.abc import Sequence
import datetime
import typing

from nova.compute import instance_actions
from nova.db.main import api as main_db
from nova.db.main import models
import sqlalchemy as sa

from nova_ext_sched import messages

#: Beginnings of faults that say that the scheduler, or conductor before it,
#: found no host (nova.exception.NoValidHost).
NO_VALID_HOST = 'No valid host was found'
#: ... that hosts were found, and each refused the server (MaxRetriesExceeded).
NO_HOST_LEFT = 'Exceeded maximum number of retries'
# nova.exception.HostMappingNotFound: nova-conductor moves it to cell0.
_IN_NO_CELL = ' is not mapped to any cell'

_BEGINS = 'compute__do_build_and_run_instance'


class Build(typing.NamedTuple):
    """The end of a build.

    :ivar hosts: where nova-compute began it, one after the other
    :ivar time: when nova noted the fault (UTC); None where it noted none
    :ivar message: nova's words
    """

    hosts: Sequence[str] = ()
    time: datetime.datetime | None = None
    message: str = ''

    @property
    def found_no_host(self) -> bool:
        """Whether the scheduler, or conductor before it, found no host."""
        return self.message.startswith(NO_VALID_HOST)

    def say_fault(self) -> str:
        """Return the fault that nova recorded; empty where there is none."""
        if self.time is None:
            return ''
        said = messages.without_traceback(self.message)
        return (
            f'At {self.time:%Y-%m-%d %H:%M:%S} UTC nova recorded '
            f'{messages.quoted(messages.without_secrets(said))}'
        )

    def say(self) -> str:
        """Describe the end, as a sentence without its period."""
        hosts = messages.first_few(self.hosts)
        if self.time is None:
            where = f' that nova-compute began on {hosts}' if hosts else ''
            return (
                f'nova recorded no fault for the build{where}. A service '
                'was restarted meanwhile, or somebody set the state'
            )
        noted = self.say_fault()
        if self.found_no_host:
            return f'nova found no host when the server was created. {noted}'
        if hosts:
            return (
                f'nova chose a host, and the build failed there ({hosts}): '
                f'see the nova-compute log. {noted}'
            )
        if self.message.endswith(_IN_NO_CELL):
            noted += '. "nova-manage cell_v2 discover_hosts" maps it'
        return f'nova-conductor gave up the build before it began. {noted}'


@main_db.pick_context_manager_reader
def read(context: typing.Any, server: str) -> Build:
    """Read how the build of a server ended.

    :param context: a context of the server's cell, perhaps cell0
    :param server: the UUID of one that never ran
    """
    action, event = models.InstanceAction, models.InstanceActionEvent
    fault = models.InstanceFault
    begun = sa.select(event.host).join(action, action.id == event.action_id)
    hosts = context.session.scalars(
        begun.where(
            action.instance_uuid == server, event.event == _BEGINS
        ).order_by(event.id)
    )
    deleted = sa.exists().where(
        action.instance_uuid == fault.instance_uuid,
        action.action == instance_actions.DELETE,
        action.start_time <= fault.created_at,
    )
    last = context.session.execute(
        sa.select(fault.created_at, fault.message)
        .where(fault.instance_uuid == server, ~deleted)
        .order_by(fault.id.desc())
        .limit(1)
    ).first()
    time, message = last or (None, '')
    return Build([*dict.fromkeys(filter(None, hosts))], time, message or '')
