# SPDX-License-Identifier: Apache-2.0

"""Follows one move by looks at nova's records."""

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
from nova_ext_sched.osc.moves_step import Stall
from nova_ext_sched.osc.moves_step import Step

#: Seconds of :attr:`.Stall.FORGOTTEN` after which a move begins anew.
FORGOTTEN = 60
#: Seconds of any other stall after which it is reported: nova-compute may wait
#: for an answer for a minute.
STALE = 120


@dataclasses.dataclass
class Seen:
    """A move, with the findings since its first look.

    :param is_dry: whether nothing is changed in nova
    :ivar server: nova's view of it; None if it is gone
    :ivar migrations: the server's migrations, the oldest first, without
        ``forgotten``
    :ivar own: the move's own migration; None if it has none
    :ivar has_begun: whether this run has asked for the move, or seen it under
        way, since the move last began anew
    :ivar before: IDs of the server's migrations before the last request; None
        if this run has not asked
    :ivar forgotten: migrations that nova has stopped working on, by ID
    :ivar stall: how nova seems to have lost the move; None if it has not
    :ivar stalled_at: when that was first seen
    :ivar unanswered: when the last request was sent that nova did not answer
    :ivar step: the last step
    :ivar since: when that step was first decided
    :ivar first: the time at the beginning
    :ivar now: the time of the last look
    :ivar last: when nova was last seen at work on the move, or asked for it
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
    stall: Stall | None = None
    stalled_at: float | None = None
    unanswered: float | None = None
    step: Step | None = None
    since: float = 0
    first: float = dataclasses.field(init=False)
    last: float = dataclasses.field(init=False)
    now: float = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.first = self.last = self.now = self._read_clock()

    def look(self) -> tuple[Step, str]:
        """Return the next step and its reason, as :func:`.moves_step.decide`.

        :raises Stopped: for :data:`STALE` seconds, the migration has ended but
            not its task, or its confirmation has not ended
        """
        # Migrations first: the server is then at least as new as they are.
        self.migrations = [
            record
            for record in self.cloud.read_migrations(self.move.server)
            if record.id not in self.forgotten
        ]
        self.server = self.cloud.read_server(self.move.server)
        own = self._list_own(self.before)
        self.own = own[-1] if own else None
        if self.unanswered is not None and self.own:
            # The request arrived.
            self.has_begun = True
        self.now = self._read_clock()
        if self._has_stalled():
            if self.stall is not Stall.FORGOTTEN:
                raise Stopped(
                    moves_words.say_stale(self.move, self.own, self.server)
                )
            # The move begins anew.
            self.forgotten[self.own.id] = self.own
            self.stalled_at = self.unanswered = None
            self.has_begun = False
            return self.look()
        step, reason = moves_step.decide(
            self.move, self.server, self.migrations, self.own, self.has_begun
        )
        if step != self.step:
            self.step, self.since = step, self.now
        return step, reason

    def _list_own(self, before: set[int] | None) -> list[typing.Any]:
        """Return the migrations begun for the move, the oldest first."""
        return moves_step.list_own(
            self.move,
            self.migrations,
            self.cloud.user,
            self.plan.time,
            before,
        )

    def _has_stalled(self) -> bool:
        """Return whether nova has lost the move's migration for long.

        An unheard request never counts: nothing shows whether it is lost, or
        nova-conductor is only slow.
        """
        self.stall = moves_step.find_stall(
            self.own, self.server, self.migrations
        )
        if self.stall is None:
            self.stalled_at = None
            return False
        if self.stalled_at is None:
            self.stalled_at = self.now
        if self.stall is Stall.UNHEARD:
            return False
        longest = FORGOTTEN if self.stall is Stall.FORGOTTEN else STALE
        return self.now - self.stalled_at > longest

    @property
    def is_unheard(self) -> bool:
        """Whether nova-conductor has not begun the migration for long."""
        return (
            self.stall is Stall.UNHEARD
            and self.stalled_at is not None
            and self.now - self.stalled_at > STALE
        )

    def find_holding(self) -> list[typing.Any]:
        """Return the move's migrations that still hold room on the old host.

        Those of earlier tries may hold some, too.
        """
        tries = [*self.forgotten.values(), *self._list_own(None)]
        tries += [self.own] if self.own else []
        by_id = {record.id: record for record in tries}
        return [r for r in by_id.values() if self.cloud.holds(r)]

    def find_reason(self) -> str:
        """Return why nova did not make the move; empty if it does not say."""
        if not (self.has_begun or self.own):
            # The server's last action is not of this move.
            return ''
        reason = self.cloud.find_reason(self.move.server)
        if not reason and self.server.fault:
            reason = self.server.fault['message']
        return messages.without_traceback(reason)

    def _read_clock(self) -> float:
        """Return the monotonic time, without the time services were away."""
        return time.monotonic() - self.cloud.lost
