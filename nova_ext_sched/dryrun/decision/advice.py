# SPDX-License-Identifier: Apache-2.0

"""Finds acts that help a request which no host takes, by trying them.

Refusals bring their acts. Those of the causes that refuse a host are put
together, for all hosts of which the same is to be done, and tried
(:mod:`.trial`). One after which no host takes the request is not said.

===========================================  ================================
a host                                       what is tried
===========================================  ================================
that one cause refuses                       each of its acts
that two causes refuse                       one act of each, together, where
                                             no single act helps
that lacks several resource classes          room of all of them, as one
that is too small                            another flavor
that nothing lifts, that more refuse, or of  nothing
which a cause has no act
===========================================  ================================

Repairs come before what would change a policy, then what is done to most
hosts. What there was no time to try comes last, and says so.
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

from nova_ext_sched import messages
from nova_ext_sched.dryrun.decision import command
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import orphaned
from nova_ext_sched.dryrun.decision import refusals
from nova_ext_sched.dryrun.decision import trial
from nova_ext_sched.policy import act

LOG = logging.getLogger(__name__)

#: The cause under which hosts are full, whatever they lack.
_FULL = 'room'
_MOST_HOSTS = 3
# The most that are put into one act: each host is a command.
_MOST_DONE = 20
_KINDS = (act.REPAIR, act.POLICY)
_OF_METADATA = act.SETS, act.UNSETS
# What hosts have that lack room, or are too small.
_OF_ROOM = act.ROOM, act.FLAVOR
# What comes after others, in this order: whose room it is nobody has said yet,
# a host has to be bought, and what was asked for was meant.
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
    :ivar seconds: of CPU; none is begun that would take longer, if it takes as
        long as the longest before it
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
        """Whether it is not said untried, as it stands beside another."""
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

    :param judged: all constraints are in, each was asked about each host
    :param without: causes that nobody is asked to give up
    """
    if judged.remaining or judged.end:
        return []
    until = time.process_time() + bounds.seconds
    ways = list(_list_ways(judged, trials, without, bounds.tries > 0))
    left, longest = bounds.tries, 0.0
    advice: list[conclusion.Advice] = []
    # Pairs are only for where nothing single helps.
    for number in (1, 2):
        rows = [one for one in ways if len(one.steps) == number]
        for way in sorted(rows, key=lambda one: one.rank):
            hosts = None
            begun = time.process_time()
            if left > 0 and begun + longest < until:
                hosts, was_tried = _try(way, trials)
                left -= was_tried
                longest = max(longest, time.process_time() - begun)
                if hosts == 0:
                    continue
            if hosts is None and way.is_minor:
                continue
            advice.append(_make(way, hosts, judged, trials))
        if any(one.hosts for one in advice):
            break
    return sorted(
        advice, key=lambda one: (one.hosts is None, _KINDS.index(one.kind))
    )


def _try(way: _Way, trials: trial.Trials) -> tuple[int | None, bool]:
    """Count the hosts that take the request after acts, if that can be asked.

    :returns: None for the number where nobody knows
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
    is_tried: bool,
) -> Iterator[_Way]:
    """Yield acts after which hosts may take a request.

    :param is_tried: whether to ask placement for more of them
    """
    lacking = orphaned.find_full(judged)
    seen = set[act.Act]()
    for chosen, uuids in _list_chosen(judged, trials, without, lacking):
        steps = tuple(
            trial.Step(
                made.named(trials.smaller)
                if made.supposes == act.FLAVOR and trials.smaller
                else made,
                tuple(uuids),
                _amounts(made, uuids, lacking),
            )
            for _, made in chosen
        )
        lifted = tuple(cause for cause, _ in chosen)
        yield _Way(steps, lifted)
        if is_tried and len(steps) == 1 and steps[0].act.supposes in _OF_ROOM:
            first = uuids[0]
            missing = _find_missing(judged, first)
            amounts = {*trials.list_amounts(first, missing)} - seen
            seen |= amounts
            for made in sorted(amounts):
                yield _Way((trial.Step(made, (first,)),), lifted)


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

    Room is freed where least is lacking.
    """
    rows = [
        (causes, _part(causes, uuids, lacking))
        for causes, uuids in _list_refused(judged)
        if len(causes) < 3 and causes.keys().isdisjoint(without)
    ]
    least = _find_least(rows)
    hosts: dict[_Chosen, list[str]] = {}
    for causes, parts in rows:
        is_single = len(causes) == 1
        for lack, uuids in parts.items():
            freed = None if is_single and lack and lack != least else lack
            choices = [
                [
                    (cause, one)
                    for one in _combine(cause, refused, freed)
                    # Of pairs there are enough with an act on hosts.
                    if is_single or one.supposes not in _OF_METADATA
                ]
                for cause, refused in causes.items()
            ]
            for chosen in itertools.product(*choices):
                allowed = uuids
                for _, made in chosen:
                    allowed = _list_allowed(made, allowed, trials)
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
    """Group the hosts that an act could free by what refuses them.

    Those that the same refuses come together: in a cloud that is full they
    are many, and a plan asks for each of its servers.
    """
    cells: dict[str, list[tuple[refusals.Refusal, ...]]] = {}
    fixed = set()
    for column in judged.columns:
        for uuid, refused in column.refused.items():
            cells.setdefault(uuid, []).append(refused)
            if not (refused[0].lifts or refused[0].acts):
                fixed.add(uuid)
    alike: dict[tuple[int, ...], list[str]] = {}
    for uuid in sorted(cells.keys() - fixed, key=judged.names.__getitem__):
        alike.setdefault(tuple(map(id, cells[uuid])), []).append(uuid)
    for uuids in alike.values():
        causes: _Causes = {}
        for one in itertools.chain(*cells[uuids[0]]):
            is_room = one.is_full or refusals.SMALLER in one.acts
            cause = _FULL if is_room else one.cause
            causes.setdefault(cause, []).append(one)
        yield causes, uuids


def _part(
    causes: _Causes, uuids: list[str], lacking: orphaned.Lacking
) -> dict[_Lack, list[str]]:
    """Part hosts by what they lack; those that are not full lack nothing."""
    refused = causes.get(_FULL, ())
    if not refused or not all(one.is_full for one in refused):
        return {(): uuids}
    classes = set[str]().union(*(one.lacking for one in refused))
    unmeasured = dict.fromkeys(sorted(classes), 0)
    parts: dict[_Lack, list[str]] = {}
    for uuid in uuids:
        lack = tuple(lacking.get(uuid, unmeasured).items())
        parts.setdefault(lack, []).append(uuid)
    return parts


def _find_least(
    rows: Iterable[tuple[_Causes, dict[_Lack, list[str]]]],
) -> _Lack | None:
    """Find the least that hosts lack that only room refuses.

    It is of the fewest classes, then of most hosts, then the least amount.
    """
    counts: collections.Counter[_Lack] = collections.Counter()
    for causes, parts in rows:
        for lack, uuids in parts.items():
            if lack and len(causes) == 1:
                counts[lack] += len(uuids)
    return min(
        counts, key=lambda one: (len(one), -counts[one], one), default=None
    )


def _list_allowed(
    made: act.Act, uuids: list[str], trials: trial.Trials
) -> list[str]:
    """Keep the hosts on which an act is allowed."""
    if made.supposes in trial.ALLOWED_BY_HOST:
        return [uuid for uuid in uuids if trials.allows(made, uuid)]
    return uuids if uuids and trials.allows(made, uuids[0]) else []


def _combine(
    cause: str, refused: Sequence[refusals.Refusal], lack: _Lack | None
) -> list[act.Act]:
    """Return the acts against one cause of hosts.

    :param lack: what they lack; None where room is rather freed elsewhere
    """
    if cause != _FULL:
        return act.combine(itertools.chain(*(one.acts for one in refused)))
    if not lack and lack is not None:
        return [refusals.SMALLER]
    names = [
        trial.say_amount(name, number) if number else name
        for name, number in lack or ()
    ]
    return [
        one
        for one in (refusals.UNHELD, *refusals.free(*names))
        if names or one.supposes != act.ROOM
    ]


def _amounts(
    made: act.Act, uuids: Sequence[str], lacking: orphaned.Lacking
) -> tuple[tuple[str, int], ...]:
    if made.supposes != act.ROOM:
        return ()
    return tuple(lacking.get(uuids[0], {}).items())


def _make(
    way: _Way,
    hosts: int | None,
    judged: matrix.Matrix,
    trials: trial.Trials,
) -> conclusion.Advice:
    commands: list[str] | None = []
    for step in way.steps:
        made = command.make(step, trials, _MOST_DONE)
        commands = (
            None if commands is None or made is None else commands + made
        )
    return conclusion.Advice(
        kind=way.kind,
        act=', and '.join(_say(one, judged, trials) for one in way.steps),
        hosts=hosts,
        admits='; '.join(
            dict.fromkeys(
                one.act.admits for one in way.steps if one.act.admits
            )
        ),
        commands=commands or [],
        causes=[*way.causes],
    )


def _say(step: trial.Step, judged: matrix.Matrix, trials: trial.Trials) -> str:
    made, uuids = step.act, step.hosts
    if made.supposes == act.AWAY and step in trials.moved:
        uuids = (trials.moved[step][1],)
    if made.supposes in (act.ANOTHER, act.DOMAIN):
        uuids = uuids[:1]
    shown = messages.first_few(
        uuids, _MOST_HOSTS, lambda one: messages.clean(judged.names[one])
    )
    if made.supposes == act.ROOM and len(uuids) > 1:
        shown = f'one of {shown}'
    words = made.words
    for number, name in enumerate(made.names):
        words = words.replace(f'{{{number}}}', messages.clean(name))
    return words.replace(
        '{names}',
        messages.first_few(made.names, _MOST_HOSTS, messages.clean),
    ).replace('{hosts}', shown)
