# SPDX-License-Identifier: Apache-2.0

"""Follows one move in nova, look by look."""

from collections.abc import Sequence
import dataclasses
import time
import typing

from nova_ext_sched import messages
from nova_ext_sched.osc import moves_cloud
from nova_ext_sched.osc import moves_plan
from nova_ext_sched.osc import moves_step
from nova_ext_sched.osc import moves_words
from nova_ext_sched.osc.moves_plan import Stopped
from nova_ext_sched.osc.moves_step import Ceased
from nova_ext_sched.osc.moves_step import Step

#: How long nova seems to have ceased to work on a migration until it counts as
#: forgotten, or until that is said: for a minute, nova-compute may wait for an
#: answer.
FORGOTTEN = 60
STALE = 120


@dataclasses.dataclass
class Seen:
    """A move, with the findings since its first look.

    :param is_dry: whether nothing is changed in nova
    :ivar server: nova's view of it; None if it is gone
    :ivar migrations: the server's migrations
    :ivar own: the one of the move; None where there is none
    :ivar has_begun: whether this run saw it go on
    :ivar before: the IDs of migrations that there were when nova was asked
    :ivar forgotten: the migrations that nova works on no more, by ID
    :ivar ceased: how nova seems to have ceased to work on the own one
    :ivar idle: since when it seems to have
    :ivar unanswered: when nova was asked, and did not answer
    :ivar step: the last step; ``since``, since when it has been that one
    :ivar first: when it was looked at first; ``now``, when it was last
    :ivar last: when something happened
    """

    move: moves_plan.Move
    plan: moves_plan.Plan
    cloud: moves_cloud.Cloud
    is_dry: bool = False
    server: typing.Any = None
    migrations: Sequence[typing.Any] = ()
    own: typing.Any = None
    has_begun: bool = False
    before: set[int] | None = None
    forgotten: dict[int, typing.Any] = dataclasses.field(default_factory=dict)
    ceased: Ceased | None = None
    idle: float | None = None
    unanswered: float | None = None
    step: Step | None = None
    since: float = 0
    first: float = dataclasses.field(init=False)
    last: float = dataclasses.field(init=False)
    now: float = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.first = self.last = self.now = self._read_clock()

    def look(self) -> tuple[Step, str]:
        """Return the next step, with the reason.

        :raises Stopped: nova has ended the migration, and not the task, or
            has ceased to confirm it
        """
        # In this order: where a migration has ended, the server shows it.
        self.migrations = [
            one
            for one in self.cloud.read_migrations(self.move.server)
            if one.id not in self.forgotten
        ]
        self.server = self.cloud.read_server(self.move.server)
        own = self._list_own(self.before)
        self.own = own[-1] if own else None
        if self.unanswered is not None and self.own:
            # The request arrived.
            self.has_begun = True
        self.now = self._read_clock()
        if self._has_idled():
            if self.ceased is not Ceased.FORGOTTEN:
                raise Stopped(
                    moves_words.say_stale(self.move, self.own, self.server)
                )
            # The move begins anew.
            self.forgotten[self.own.id] = self.own
            self.idle = self.unanswered = None
            self.has_begun = False
            return self.look()
        step, reason = moves_step.decide(
            self.move, self.server, self.migrations, self.own, self.has_begun
        )
        if step != self.step:
            self.step, self.since = step, self.now
        return step, reason

    def _list_own(self, before: set[int] | None) -> list[typing.Any]:
        """Return the migrations of the move, the last one last."""
        return moves_step.list_own(
            self.move,
            self.migrations,
            self.cloud.user,
            self.plan.time,
            before,
        )

    def _has_idled(self) -> bool:
        """Return whether nova has not worked on the own migration for long.

        Where it has none yet, nothing shows whether the request is lost.
        """
        self.ceased = moves_step.find_ceased(
            self.own, self.server, self.migrations
        )
        if self.ceased is None:
            self.idle = None
            return False
        if self.idle is None:
            self.idle = self.now
        if self.ceased is Ceased.UNHEARD:
            return False
        longest = FORGOTTEN if self.ceased is Ceased.FORGOTTEN else STALE
        return self.now - self.idle > longest

    @property
    def is_unheard(self) -> bool:
        """Whether nova has not begun the migration of its task for long."""
        return (
            self.ceased is Ceased.UNHEARD
            and self.idle is not None
            and self.now - self.idle > STALE
        )

    def find_holding(self) -> list[typing.Any]:
        """Return the migrations of the move that hold room it has left.

        Earlier tries may have left some, too.
        """
        tries = [*self.forgotten.values(), *self._list_own(None)]
        tries += [self.own] if self.own else []
        by_id = {one.id: one for one in tries}
        return [one for one in by_id.values() if self.cloud.holds(one)]

    def find_reason(self) -> str:
        """Return why nova did not make the move; empty if it does not say."""
        if not (self.has_begun or self.own):
            # The last action of the server is of something else.
            return ''
        reason = self.cloud.find_reason(self.move.server)
        if not reason and self.server.fault:
            reason = self.server.fault['message']
        return messages.without_traceback(reason)

    def _read_clock(self) -> float:
        """Return the seconds in which services were not away."""
        return time.monotonic() - self.cloud.lost
