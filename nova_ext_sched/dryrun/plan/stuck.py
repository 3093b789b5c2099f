# SPDX-License-Identifier: Apache-2.0

"""Explains why servers have no destination after all moves, and what helps."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
from collections.abc import Set
import dataclasses
import functools
import typing

from nova_ext_sched import fields
from nova_ext_sched import messages
from nova_ext_sched import plan_format
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.decision import advice
from nova_ext_sched.dryrun.decision import command
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import document
from nova_ext_sched.dryrun.decision import explanation
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import nearest_flavor
from nova_ext_sched.dryrun.decision import trial
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import shared_answers
from nova_ext_sched.policy import act

# The most acts that are listed for a server.
_MOST_HELPS = 3
# The most acts that are tried for all servers of a plan together.
_MOST_TRIES = 6
# The most CPU seconds for the acts of one request.
_MOST_SECONDS = 1.0
# The share of a command's other CPU time that all acts may take, over all its
# plans: survive and maintain make one for each host.
_SHARE = 0.07

# The cause if nova-conductor refuses all hosts that pass the scheduler.
_HYPERVISOR = 'hypervisor'


class _Why(typing.NamedTuple):
    """The reason why a server has no destination.

    The fields are those of :class:`.plans.Stuck`.
    """

    reason: str
    cause: str
    name_of_cause: str = ''
    would_help: str = ''


@dataclasses.dataclass
class Adviser:
    """Finds acts that help servers without a destination, in little time.

    :param barred: see :class:`StuckExplainer`; ``never_given_up`` too
    :param is_new: whether the requests are for new servers
    """

    places: destinations.Destinations
    barred: Set[str] = frozenset()
    never_given_up: Collection[str] = ()
    is_new: bool = False

    def __post_init__(self) -> None:
        self._tries = _MOST_TRIES

    def find(
        self,
        judged: matrix.Matrix,
        stored: typing.Any,
        uuid: str,
        here: str | None = None,
    ) -> list[conclusion.Advice]:
        """Find acts after which a request has a host.

        :param judged: the matrix in which all hosts are refused
        :param stored: the nova RequestSpec, perhaps of an equivalent server
        :param uuid: UUID of the server
        :param here: the name of the server's host, which is no destination
        """

        def ask(acts: Sequence[act.Act]) -> int:
            spec_obj = stored.obj_clone()
            spec_obj.instance_uuid = uuid
            trial.change_request(spec_obj, acts)
            again, states = self.places.judge(spec_obj)
            remaining = [one for one in states if one.uuid not in self.barred]
            if again.unknown and not remaining:
                raise trial.Untried
            self._tries -= 1
            return sum(one.host != here for one in remaining)

        begun = process.count_seconds()
        spent = self.places.seconds_tried
        seconds = min(_MOST_SECONDS, (begun - spent) * _SHARE - spent)
        smaller = ''
        if self.is_new:
            smaller = nearest_flavor.find(judged, process.context(), stored)
        acts = advice.find(
            judged,
            trial.Trials(
                self.places.cloud,
                ask,
                fields.get_field(stored, 'instance_group'),
                smaller=smaller,
                is_new=self.is_new,
            ),
            advice.Bounds(self._tries, seconds),
            self.never_given_up,
        )
        self.places.seconds_tried += process.count_seconds() - begun
        return acts


@dataclasses.dataclass
class StuckExplainer:
    """Explains why servers have no destination, and finds acts that help.

    ===============================  =====================================
    a server                         its reason
    ===============================  =====================================
    that nova moves                  what refuses all hosts
    that nova does not move as it    nova's refusal; and if it is known how
    is                               nova would move it otherwise, what
                                     refuses all hosts then, after all moves
                                     and after the servers explained before
    that the operator leaves out     that the operator leaves it out
    that conductor refuses           conductor's refusal, as explain words it
    that could not be judged         the fault
    ===============================  =====================================

    :param never_given_up: names of policies for which no acts are proposed
    :param barred: UUIDs of hosts that are no destinations
    """

    places: destinations.Destinations
    movables: movable.Movables
    never_given_up: Collection[str]
    barred: Set[str]

    def __post_init__(self) -> None:
        # The matrix of equivalent servers, by their shared answer.
        self._explained: dict[shared_answers.Shared, matrix.Matrix] = {}
        # Acts that help servers with equivalent requests.
        self._advised: dict[int, list[conclusion.Advice]] = {}
        self._adviser = Adviser(self.places, self.barred, self.never_given_up)

    def explain(self, leaving: Iterable[plans.Leaving]) -> list[plans.Stuck]:
        """Return servers with their reasons.

        :raises placement.PlacementFailed: placement does not answer
        """
        return list(map(self._explain, leaving))

    def _explain(self, server: plans.Leaving) -> plans.Stuck:
        prepared = self.movables[server.server]
        if isinstance(prepared, admission.NotMovable):
            return self._explain_refused(server, prepared)
        why = self._ask(server.server, prepared)
        return plans.Stuck(**vars(server), **why._asdict())

    def _explain_refused(
        self, server: plans.Leaving, refused: admission.NotMovable
    ) -> plans.Stuck:
        """Explain why nova does not move a server as it is."""
        reason, helps, cause_then = f'nova cannot move it: {refused}', [], ''
        if refused.cause == plan_format.LEFT_OUT:
            reason = str(refused)
        elif refused.cause != plans.STATE:
            reason = f'nova refuses it in every state: {refused}'
        then = refused.then
        if isinstance(then, Exception) or (
            then and self.places.send(then, self.barred) is None
        ):
            why = self._ask(server.server, then)
            reason += f'. Even then: {why.reason}'
            helps, cause_then = [why.would_help], why.cause
        return plans.Stuck(
            **vars(server),
            reason=reason,
            cause=refused.cause,
            would_help='; then '.join(filter(None, [refused.first, *helps])),
            cause_then=cause_then,
        )

    def _ask(self, uuid: str, prepared: movable.Movable | Exception) -> _Why:
        """Return why all hosts refuse a server, or the fault."""
        judgement = movable.attempt(functools.partial(self._judge, prepared))
        if isinstance(judgement, Exception):
            return _Why(messages.say_error(judgement), plans.FAULT)
        judged, remaining, refused = judgement
        why = self._read(judged, prepared)
        if not remaining:
            if not judged.unknown:
                return why
            [*_, remark] = judged.remarks
            remark = f'{remark[0].lower()}{remark[1:].rstrip(".")}'
            return _Why(remark, plans.NOT_KNOWN)
        # Hosts pass nova-scheduler, and nova-conductor refuses them.
        if refused:
            return _Why(refused, _HYPERVISOR, would_help=why.would_help)
        if violated := self.places.cloud.future.ledger.find_violated(uuid):
            cause, reason = explanation.say_violated(violated)
            helps = f'{explanation.UNITS} of {cause}'
            return _Why(reason, cause, would_help=helps)
        return _Why(
            'nova-scheduler has hosts left, but can claim none of them',
            plans.FAULT,
            would_help=why.would_help,
        )

    def _judge(
        self, prepared: movable.Movable | Exception
    ) -> tuple[matrix.Matrix, list[str], str]:
        """Return the matrix of a server, and which hosts remain.

        :returns: the matrix; the UUIDs of the remaining hosts; and why
            nova-conductor refuses all of these, empty if it does not
        :raises Exception: whatever nova or placement raise if the request
            cannot be judged, or could not be made
        """
        if not isinstance(prepared, Exception):
            judged = self._explain_moved(prepared)
            remaining = [*judged.remaining]
            refused = prepared.tell_refused(remaining) if remaining else ''
            return judged, remaining, refused
        judged = matrix.Matrix({})
        with explanation.conducting(judged):
            raise prepared
        return judged, [], ''

    def _explain_moved(self, prepared: movable.Movable) -> matrix.Matrix:
        """Return the matrix of a server, with its own host as ignored.

        :raises Exception: as :meth:`.destinations.Destinations.judge`
        """
        cloud, like = self.places.cloud, prepared.like
        key = like.shared if like and like.is_whole else None
        judged = self._explained.get(key) if key else None
        if judged is None:
            judged = self.places.explain(prepared)
            if key:
                self._explained[key] = judged
        here = cloud.nodes[prepared.node].host if prepared.node else ''
        # Barred hosts count as ignored, whatever else refuses them. Only a
        # disabled one counts as disabled, as for any other server.
        barred = self.barred | {*cloud.nodes_of(here)}
        return destinations.with_barred_ignored(judged, barred)

    def _read(
        self, judged: matrix.Matrix, prepared: movable.Movable | Exception
    ) -> _Why:
        """Word the refusal by all hosts, as explain does."""
        answer = document.make_answer(judged)
        helps = self._advise(judged, prepared)
        cause = answer.cause or _HYPERVISOR
        names = (
            name.name
            for reason in answer.reasons
            for name in reason.names
            if reason.cause == cause
        )
        return _Why(
            answer.sentence.rstrip('.'),
            cause,
            next(names, ''),
            say_helps(helps),
        )

    def _advise(
        self, judged: matrix.Matrix, prepared: movable.Movable | Exception
    ) -> list[conclusion.Advice]:
        """Find acts that help a server; equivalent ones share them."""
        if isinstance(prepared, Exception):
            return []
        like = prepared.like
        shared = like.shared if like and like.is_whole else None
        key = id(shared or prepared)
        if key not in self._advised:
            cloud = self.places.cloud
            stored = shared.spec_obj if shared else prepared.spec_obj
            self._advised[key] = self._adviser.find(
                judged,
                stored,
                prepared.uuid,
                cloud.nodes[prepared.node].host if prepared.node else None,
            )
        return self._advised[key]


def say_helps(acts: Iterable[conclusion.Advice]) -> str:
    """Word acts that help, for one line; empty if there are none.

    Acts that change a policy are listed only if no repair helps, and without
    their commands.
    """
    acts = list(acts)
    repairs = [one for one in acts if one.kind == act.REPAIR]
    said = []
    for one in (repairs or acts)[:_MOST_HELPS]:
        text = one.act if one.hosts is not None else f'{one.act} (not tried)'
        if one.commands and repairs:
            text += f': {command.join(one.commands)}'
        said.append(text)
    return ', or '.join(said)
