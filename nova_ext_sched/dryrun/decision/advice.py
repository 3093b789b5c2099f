# SPDX-License-Identifier: Apache-2.0

"""Finds acts that help a request which no host takes, by trying them.

Each refusal names acts against it. The acts for hosts with the same causes are
combined and tried together (:mod:`.trial`). Acts after which still no host
takes the request are not reported.

===========================================  ================================
a host                                       what is tried
===========================================  ================================
that one cause refuses                       each of its acts
that two causes refuse                       one act of each, together, if no
                                             single act helps
that lacks several resource classes          room of all of them, as one
that is too small                            a smaller flavor
with a refusal that nothing lifts, with      nothing
more than two causes, or with a cause
without an act
===========================================  ================================

Repairs come first, then acts that change a policy; among equals, those for
more hosts. Untried acts come last and are marked.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import itertools
import logging
import time

from nova_ext_sched import grouping
from nova_ext_sched import messages
from nova_ext_sched.dryrun.decision import command
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import orphaned
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.decision import trial
from nova_ext_sched.policy import act

LOG = logging.getLogger(__name__)

#: The cause of all refusals for lack of room, whatever the host lacks.
_FULL = 'room'
# The most hosts that the sentence of an act names.
_MOST_HOSTS = 3
# The most hosts for which an act prints commands.
_MOST_COMMANDED = 20
_KINDS = (act.REPAIR, act.POLICY)
_OF_METADATA = act.SETS, act.UNSETS
# Acts for hosts that are full or too small.
_OF_ROOM = act.ROOM, act.FLAVOR
# Acts listed last, in this order: for room somebody has to give it up, a new
# host must be bought, and another flavor or rule is not what was asked for.
_LATE = [act.ROOM, act.ANOTHER, act.DOMAIN, act.FLAVOR, act.RULE]

#: Acts that open hosts together, each with the cause that it lifts.
_Chosen = tuple[tuple[str, act.Act], ...]
#: What refuses a host, by cause.
_Causes = dict[str, list[refusals.Refusal]]
#: What a full host lacks of each resource class; 0 where nobody knows.
_Lack = tuple[tuple[str, int], ...]


@dataclasses.dataclass(frozen=True)
class Bounds:
    """The bounds of a search for acts that help.

    :ivar tries: the most acts that are tried
    :ivar seconds: CPU time for all trials; none is begun if the longest one
        so far would not fit into what is left
    """

    tries: int = 12
    seconds: float = 0.8


#: The bounds of a command that asks one question.
DEFAULT = Bounds()


@dataclasses.dataclass
class _Way:
    """Acts done together, and the causes that they lift."""

    steps: tuple[trial.Step, ...]
    causes: tuple[str, ...]

    @property
    def kind(self) -> str:
        kinds = {one.act.kind for one in self.steps}
        return act.POLICY if act.POLICY in kinds else act.REPAIR

    @property
    def is_minor(self) -> bool:
        """Whether it comes after the main acts, and only if it was tried."""
        return self.steps[0].act.supposes in (*_OF_METADATA, act.AMOUNT)

    @property
    def rank(self) -> tuple[int, int, int, int, int, str]:
        hosts = {uuid for one in self.steps for uuid in one.hosts}
        untried = any(one.act.supposes == act.NOTHING for one in self.steps)
        return (
            untried,
            _KINDS.index(self.kind),
            self.is_minor,
            max(map(_rank, self.steps)),
            -len(hosts),
            self.steps[0].act.words,
        )


def _rank(step: trial.Step) -> int:
    if step.act == act.WITHOUT_GROUP:
        return len(_LATE) + 1
    supposed = step.act.supposes
    return _LATE.index(supposed) + 1 if supposed in _LATE else 0


def find(
    judged: matrix.Matrix,
    trials: trial.Trials,
    bounds: Bounds = DEFAULT,
    without: Collection[str] = (),
) -> list[conclusion.Advice]:
    """Find acts that help a request which no host takes.

    :param judged: the complete matrix, made with ``with_reasons``
    :param without: causes for which no acts are proposed
    """
    if judged.remaining or judged.end:
        return []
    until = time.process_time() + bounds.seconds
    ways = list(_list_ways(judged, trials, without, bounds.tries > 0))
    tries, longest = bounds.tries, 0.0
    advice: list[conclusion.Advice] = []
    # Pairs are tried only if no single act helps.
    for length in (1, 2):
        ranked = [one for one in ways if len(one.steps) == length]
        for way in sorted(ranked, key=lambda one: one.rank):
            number = None
            begun = time.process_time()
            if tries > 0 and begun + longest < until:
                number, was_tried = _try(way, trials)
                tries -= was_tried
                longest = max(longest, time.process_time() - begun)
                if number == 0:
                    continue
            if number is None and way.is_minor:
                continue
            advice.append(_make(way, number, judged, trials))
        if any(one.hosts for one in advice):
            break
    return sorted(
        advice, key=lambda one: (one.hosts is None, _KINDS.index(one.kind))
    )


def _try(way: _Way, trials: trial.Trials) -> tuple[int | None, bool]:
    """Count the hosts that take the request after acts, if that can be asked.

    :returns: the number, None if unknown; and whether a trial was made
    """
    try:
        return trials.count(way.steps), True
    except trial.Untried:
        # A server of the group that cannot move is no advice.
        away = any(one.act.supposes == act.AWAY for one in way.steps)
        return (0 if away else None), False
    except Exception as exc:
        # The answer is valid without it.
        LOG.debug('An act was not tried: %s', messages.say_error(exc))
        return None, True


def _list_ways(
    judged: matrix.Matrix,
    trials: trial.Trials,
    without: Collection[str],
    with_amounts: bool,
) -> Iterator[_Way]:
    """Yield acts after which hosts may take a request.

    :param with_amounts: whether to propose options of nova-compute that give
        more room, for which placement is asked
    """
    lacking = orphaned.find_full(judged)
    seen = set[act.Act]()
    for chosen, uuids in _list_chosen(judged, trials, without, lacking):
        steps = tuple(
            trial.Step(
                the_act.named(trials.smaller)
                if the_act.supposes == act.FLAVOR and trials.smaller
                else the_act,
                tuple(uuids),
                tuple(lacking.get(uuids[0], {}).items())
                if the_act.supposes == act.ROOM
                else (),
            )
            for _, the_act in chosen
        )
        lifted = tuple(cause for cause, _ in chosen)
        yield _Way(steps, lifted)
        if (
            with_amounts
            and len(steps) == 1
            and steps[0].act.supposes in _OF_ROOM
        ):
            first = uuids[0]
            missing = _find_missing(judged, first)
            amounts = {*trials.list_amounts(first, missing)} - seen
            seen |= amounts
            for the_act in sorted(amounts):
                yield _Way((trial.Step(the_act, (first,)),), lifted)


def _find_missing(judged: matrix.Matrix, uuid: str) -> dict[str, int]:
    """Return the amounts that a host lacks, even if it is too small."""
    return {
        one.capacity.resource: one.capacity.requested - column.free[uuid]
        for one, column in zip(judged.constraints, judged.columns, strict=True)
        if one.capacity and uuid in column.refused and uuid in column.free
    }


def _list_chosen(
    judged: matrix.Matrix,
    trials: trial.Trials,
    without: Collection[str],
    lacking: orphaned.Lacking,
) -> Iterator[tuple[_Chosen, list[str]]]:
    """Yield acts with the hosts that each may open, host2 before host10.

    If lack of room is the only cause, freeing it is proposed only for the
    hosts that lack least (:func:`_find_least`).
    """
    parted = [
        (causes, _part(causes, uuids, lacking))
        for causes, uuids in _list_refused(judged)
        if len(causes) < 3 and causes.keys().isdisjoint(without)
    ]
    least = _find_least(parted)
    hosts: dict[_Chosen, list[str]] = {}
    for causes, parts in parted:
        is_single = len(causes) == 1
        for lack, uuids in parts.items():
            frees_room = not is_single or lack == least
            choices = [
                [
                    (cause, one)
                    for one in _combine(cause, refused, lack, frees_room)
                    # No pairs with acts on metadata: those with acts on hosts
                    # are enough.
                    if is_single or one.supposes not in _OF_METADATA
                ]
                for cause, refused in causes.items()
            ]
            for chosen in itertools.product(*choices):
                allowed = uuids
                for _, the_act in chosen:
                    allowed = _list_allowed(the_act, allowed, trials)
                if allowed:
                    hosts.setdefault(chosen, []).extend(allowed)
    for chosen, uuids in hosts.items():
        yield (
            chosen,
            sorted(
                uuids, key=lambda one: messages.in_order(judged.names[one])
            ),
        )


def _list_refused(
    judged: matrix.Matrix,
) -> Iterator[tuple[_Causes, list[str]]]:
    """Yield groups of hosts that acts could open, each with its causes.

    The hosts of a group have identical refusals: a full cloud has many of
    them, and a plan asks again for each of its servers.
    """
    refused_by_host = grouping.by_key(
        pair for column in judged.columns for pair in column.refused.items()
    )
    fixed = {
        uuid
        for uuid, refused in refused_by_host.items()
        if not all(first.lifts or first.acts for first, *_ in refused)
    }
    # By identity, which is cheap: the matrix gives equal refusals of hosts as
    # one tuple, as a rule (its cache is bounded).
    alike = grouping.by_key(
        (tuple(map(id, refused_by_host[uuid])), uuid)
        for uuid in sorted(
            refused_by_host.keys() - fixed, key=judged.names.__getitem__
        )
    )
    for uuids in alike.values():
        causes = grouping.by_key(
            (
                _FULL
                if refusal.is_full or refusals.SMALLER in refusal.acts
                else refusal.cause,
                refusal,
            )
            for refusal in itertools.chain(*refused_by_host[uuids[0]])
        )
        yield causes, uuids


def _part(
    causes: _Causes, uuids: list[str], lacking: orphaned.Lacking
) -> dict[_Lack, list[str]]:
    """Group hosts by the amounts that they lack.

    Hosts that are not full, but too small or refused otherwise, lack nothing.
    """
    refused = causes.get(_FULL, ())
    if not refused or not all(one.is_full for one in refused):
        return {(): uuids}
    classes = set[str]().union(*(one.lacking for one in refused))
    unmeasured = dict.fromkeys(sorted(classes), 0)
    return grouping.by_key(
        (tuple(lacking.get(uuid, unmeasured).items()), uuid) for uuid in uuids
    )


def _find_least(
    parted: Iterable[tuple[_Causes, dict[_Lack, list[str]]]],
) -> _Lack | None:
    """Return the smallest shortage among hosts that are refused only for room.

    It has the fewest resource classes, of these that of the most hosts, and
    of these the smallest amounts. None if there is no such host.
    """
    counts: collections.Counter[_Lack] = collections.Counter()
    for causes, parts in parted:
        for lack, uuids in parts.items():
            if lack and len(causes) == 1:
                counts[lack] += len(uuids)
    return min(
        counts, key=lambda one: (len(one), -counts[one], one), default=None
    )


def _list_allowed(
    the_act: act.Act, uuids: list[str], trials: trial.Trials
) -> list[str]:
    """Keep the hosts on which an act is allowed."""
    if the_act.supposes in trial.ALLOWED_BY_HOST:
        return [uuid for uuid in uuids if trials.allows(the_act, uuid)]
    return uuids if uuids and trials.allows(the_act, uuids[0]) else []


def _combine(
    cause: str,
    refused: Sequence[refusals.Refusal],
    lack: _Lack,
    frees_room: bool,
) -> list[act.Act]:
    """Return the acts against one cause of hosts.

    :param lack: the amounts that the hosts lack; empty if they are too small
    :param frees_room: whether to propose that somebody frees room there
    """
    if cause != _FULL:
        return act.combine(itertools.chain(*(one.acts for one in refused)))
    if not lack:
        return [refusals.SMALLER]
    names = [
        f'{number} {messages.clean(name)}' if number else name
        for name, number in (lack if frees_room else ())
    ]
    return [
        one
        for one in (refusals.UNHELD, *refusals.free(*names))
        if names or one.supposes != act.ROOM
    ]


def _make(
    way: _Way,
    number: int | None,
    judged: matrix.Matrix,
    trials: trial.Trials,
) -> conclusion.Advice:
    return conclusion.Advice(
        kind=way.kind,
        act=', and '.join(_say(one, judged, trials) for one in way.steps),
        hosts=number,
        admits='; '.join(
            dict.fromkeys(
                one.act.admits for one in way.steps if one.act.admits
            )
        ),
        commands=command.make(way.steps, trials, _MOST_COMMANDED),
        causes=[*way.causes],
    )


def _say(step: trial.Step, judged: matrix.Matrix, trials: trial.Trials) -> str:
    the_act, uuids = step.act, step.hosts
    if the_act.supposes == act.AWAY and step in trials.moved:
        uuids = (trials.moved[step][1],)
    if the_act.supposes in (act.ANOTHER, act.DOMAIN):
        uuids = uuids[:1]
    shown = messages.first_few(
        uuids, _MOST_HOSTS, lambda one: messages.clean(judged.names[one])
    )
    if the_act.supposes == act.ROOM and len(uuids) > 1:
        shown = f'one of {shown}'
    words = the_act.words
    for number, name in enumerate(the_act.names):
        words = words.replace(f'{{{number}}}', messages.clean(name))
    return words.replace(
        '{names}',
        messages.first_few(the_act.names, _MOST_HOSTS, messages.clean),
    ).replace('{hosts}', shown)
