# SPDX-License-Identifier: Apache-2.0

"""A plan of moves, with the result of each."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import datetime
import enum

from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.cli import base

#: The greatest age of a saved cloud whose plan is still carried out.
SAVED_AT_MOST = datetime.timedelta(hours=1)

_CLOCKS_DIFFER = datetime.timedelta(minutes=5)


class Result(enum.StrEnum):
    """The result of a move; reports list them in this order."""

    FAILED = 'failed'
    UNDER_WAY = 'under way'
    PLANNED = 'planned'
    NOT_TRIED = 'not tried'
    LEFT_OUT = 'left out'
    DELETING = 'being deleted'
    MOVED = 'moved'
    ELSEWHERE = 'elsewhere'
    THERE = 'already there'
    GONE = 'gone'


#: Results of moves that are done, though they may still hold room.
OVER = frozenset({Result.MOVED, Result.ELSEWHERE, Result.THERE, Result.GONE})


class Remedy(enum.IntEnum):
    """The remedy for a move that failed; a run reports the highest one."""

    RUN_AGAIN = 0
    FIX = 1
    NEW_PLAN = 2


class Stopped(Exception):
    """A move failed, or its server is left out; the text says why."""

    def __init__(
        self,
        text: str,
        remedy: Remedy = Remedy.FIX,
        result: Result = Result.FAILED,
    ) -> None:
        super().__init__(text)
        self.remedy, self.result = remedy, result


@dataclasses.dataclass
class Move(plan_format.Move):
    """The move of a server, with its result.

    :ivar actual: the method that nova is asked for: the planned one, unless
        the server was started or stopped since
    :ivar reason: the reason for its result; empty if there is nothing to say
    :ivar remedy: what to do about a failed move
    :ivar held: a text that names the allocations that still hold room on the
        old host, and the commands that free it; empty if there are none
    :ivar is_in_error: whether the move left its server in ERROR, or found it
        so
    """

    actual: str = ''
    result: Result = Result.NOT_TRIED
    reason: str = ''
    remedy: Remedy = Remedy.RUN_AGAIN
    held: str = ''
    is_in_error: bool = False

    def __post_init__(self) -> None:
        self.actual = self.actual or self.method

    @property
    def shown(self) -> str:
        """The server's name to show; without one its UUID."""
        return messages.clean(self.name) or self.server

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do, so that others can rely on it."""
        return self.result in OVER and not self.held


@dataclasses.dataclass(frozen=True)
class Plan(plan_format.Plan):
    """A plan whose moves are made."""

    moves: Sequence[Move]

    def check_cloud(self, uuids: Mapping[str, str]) -> None:
        """Refuse a cloud that is not the plan's.

        Its hosts of the same names must have the same UUIDs of nova-compute,
        and there must be one; a nova-compute may have been deleted since.

        :param uuids: the UUID of each nova-compute of a cloud, by host
        :raises base.UsageError: it is another cloud
        """
        there = self.services.keys() & uuids.keys()
        other = [h for h in there if self.services[h] != uuids[h]]
        if other or ((self.services or self.moves) and not there):
            host = messages.clean(min(other or self.services, default=''))
            if other:
                why = f'nova-compute of {host} has another UUID here'
            elif host:
                why = f'there is no host {host} here'
            else:
                why = 'it names no host'
            raise base.UsageError(f'This plan is for another cloud: {why}.')

    def check_saved(
        self,
        uuids: Mapping[str, str],
        exists: Callable[[str], bool],
        now: datetime.datetime,
    ) -> None:
        """Refuse a plan made from a saved cloud that may not be this one.

        =======================================  =======
        a plan                                   result
        =======================================  =======
        of the cloud itself                      taken
        of a file, saved in the last hour, with  taken
        the nova-computes and servers of this
        cloud
        any other                                refused
        =======================================  =======

        :param uuids: the UUID of each nova-compute of the cloud, by host
        :param exists: tells whether the cloud has a server, by its UUID
        :param now: with its zone
        :raises base.UsageError: it is refused
        """
        if not self.saved:
            return
        age = now - datetime.datetime.fromisoformat(self.saved)
        wrong = [h for h, one in self.services.items() if uuids.get(h) != one]
        gone = [one.server for one in self.moves if not exists(one.server)]
        if not -_CLOCKS_DIFFER <= age <= SAVED_AT_MOST:
            why = f'that was at {self.saved}, and an hour is the most'
        elif wrong:
            why = f'nova-compute of {messages.clean(wrong[0])} is another here'
        elif gone:
            why = f'there is no server {gone[0]} here'
        else:
            return
        raise base.UsageError(
            f'This plan was made from a saved cloud: {why}. Make it again '
            f'from the cloud itself.'
        )


def read(text: str, where: str) -> Plan:
    """Return the plan of a document.

    :param where: the name of its file, for errors
    :raises exception.InvalidValue: it is no plan, or has several or none
    """
    found = plan_format.read(text, where)
    return Plan(
        **{
            **vars(found),
            'moves': [Move(**vars(one)) for one in found.moves],
        }
    )
