# SPDX-License-Identifier: Apache-2.0

"""Plans few moves after which a number of new servers fit.

Those that fit now come first, each where the scheduler prefers then, so that
no move spends their room. Then, for each of the others:

1. the new servers that were promised a host are there, in a fork, and hosts
   are tried (:mod:`.openings`): the one that takes another after the fewest
   moves is chosen;
2. its moves are made without any new server, as nova will make them, and then
   all new servers come, in more than one order (:mod:`.newcomers`). Only if
   nova takes all of them, the host is promised, and the moves are kept. Else
   the move that breaks a promise is not made, and 1 begins anew.

No server moves twice, and none moves so that another one can. Servers of an
affinity group without members all go to one host: each is tried.
"""

import collections
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Set
import dataclasses
import functools
import typing

from nova import exception as nova_exception

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.dryrun import progress
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.decision import document
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import ending
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import newcomers
from nova_ext_sched.dryrun.plan import openings
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import stuck
from nova_ext_sched.dryrun.plan import too_large

# The most reasons that are listed why servers are not moved.
_MOST_REASONS = 3
# The most hosts that are compared for a group that stays together.
_MOST_TOGETHER = 25
# How often a host is looked for whose promise holds.
_MOST_ATTEMPTS = 20
# A plan that is too short is begun anew with other hosts: so many hosts are
# asked about then, and so many new servers may be without a host.
_MOST_ASKED = 600
_DEEPEST = 20


def make(
    cloud: snapshot.Snapshot,
    wanted: request.Question,
    count: int,
    where: Set[str] | None = None,
    is_cold: bool = False,
    not_to: Set[str] = frozenset(),
    advance: progress.Advance = progress.silent,
) -> plans.Room:
    """Plan few moves after which a number of new servers fit.

    :param wanted: a new server
    :param where: names of the hosts that they may come to; None for all
    :param is_cold: whether servers that run may be moved cold, too
    :param not_to: names of hosts that get no server of a move
    :param advance: called after each new server
    :raises exception.InvalidValue: what is named does not exist, or nova-api
        would refuse such a server
    :raises placement.PlacementFailed: placement does not answer
    """
    spec_obj = _make_request(cloud, wanted)
    places = destinations.Destinations(cloud)
    coming = newcomers.Newcomers(places, spec_obj)
    closed_to_new = frozenset(
        uuid
        for uuid, node in cloud.nodes.items()
        if where is not None and node.host not in where
    )
    find = functools.partial(
        openings.Openings,
        coming=coming,
        closed_to_moves=places.nodes_of(not_to),
        is_cold=is_cold,
        advance=advance,
    )
    advance(total=count)
    room = plans.Room(
        moves=[],
        flavor=messages.clean(spec_obj.flavor.name),
        count=count,
        fit_now=0,
        room_on=[],
        never=too_large.say(cloud, coming.shared.resources, closed_to_new),
    )
    if room.never:
        return room
    choice = _choose(find, closed_to_new, spec_obj.instance_group, count)
    return _plan(choice, room) if choice else room


class _Choice(typing.NamedTuple):
    """The hosts that are chosen for new servers.

    :ivar finder: has the promises to them
    :ivar opened: the hosts that servers leave first, in this order
    :ivar fit_now: number of new servers that fit without a move
    """

    finder: openings.Openings
    opened: list[openings.Opening]
    fit_now: int

    @property
    def rank(self) -> tuple[int, int]:
        """Greater where more new servers fit, or as many by fewer moves."""
        moves = sum(len(opening.leaving) for opening in self.opened)
        return len(self.finder.promises), -moves


def _choose(
    find: Callable[..., openings.Openings],
    closed_to_new: frozenset[str],
    group: typing.Any,
    count: int,
) -> _Choice | None:
    """Choose hosts for new servers; for an affinity group the best.

    :param find: makes an object that finds hosts
    :param closed_to_new: UUIDs of hosts that new servers may not come to
    :param group: nova's InstanceGroup of the new servers; None if there is
        none
    :param count: number of new servers that must fit
    """
    finder = find(closed_to_new=closed_to_new)
    if not group or group.policy != 'affinity' or group.hosts:
        return _search(finder, count)
    anchors = finder.list_roomiest(count)[:_MOST_TOGETHER]
    finder.advance(total=count * len(anchors))
    everywhere = frozenset(finder.places.cloud.nodes)
    tried = (
        _search(find(closed_to_new=everywhere - {uuid}), count)
        for uuid in anchors
    )
    return max(tried, key=lambda choice: choice.rank, default=None)


def _make_request(
    cloud: snapshot.Snapshot, wanted: request.Question
) -> typing.Any:
    """Return the nova RequestSpec of a new server.

    :raises exception.InvalidValue: see :func:`make`
    """
    ctxt = process.context(wanted.project)
    flavor = request.get_flavor(ctxt, wanted.flavor)
    image = request.get_image(ctxt, wanted)
    spec_obj = request.build(ctxt, cloud, wanted, flavor, image)
    if spec_obj.force_hosts or spec_obj.force_nodes:
        raise exception.InvalidValue(
            where='--availability-zone',
            expected='a zone alone: --host names where there is to be room',
            got=wanted.availability_zone,
        )
    try:
        request.set_up_group(ctxt, spec_obj)
    except nova_exception.UnsupportedPolicyException as exc:
        raise exception.InvalidValue(
            where='--server-group',
            expected='a policy that nova-conductor takes',
            got=exc.format_message(),
        ) from exc
    return spec_obj


def _search(finder: openings.Openings, count: int) -> _Choice:
    """Choose hosts for new servers, as far as there are any.

    :param count: number of new servers that must fit
    """
    promises = finder.promises
    _fill(finder, count)
    fit_now = len(promises)
    opened: list[openings.Opening] = []
    if fit_now < count:
        finder.prepare()
        at_first = promises.copy()
        with finder.begin():
            while opening := _open_next(finder, count, set()):
                opened.append(opening)
        if len(promises) < count:
            opened = _Deeper(finder, count, at_first, opened).search()
    return _Choice(finder, opened, fit_now)


def _plan(choice: _Choice, room: plans.Room) -> plans.Room:
    """Return the moves after which new servers come to the chosen hosts.

    :param room: what is asked for
    """
    finder, promises = choice.finder, choice.finder.promises
    moves: list[plans.Move] = []
    in_the_way: list[str] = []
    would_help = ''
    with finder.begin() as future:
        before = future.copy_states()
        for opening in choice.opened:
            moves += _make_moves(finder, opening)
        if len(promises) < room.count:
            with promises.with_promised({}):
                judged = finder.coming.explain(finder.closed_to_new)
                in_the_way = [*_explain(finder, judged)]
                would_help = _find_helps(finder, judged)
        room = dataclasses.replace(
            room,
            moves=moves,
            fit_now=choice.fit_now,
            room_on=promises.room_on,
            in_the_way=in_the_way,
            would_help=would_help,
        )
        return ending.finish(
            finder.places.cloud, room, before, finder.movables
        )


def _fill(finder: openings.Openings, count: int, opened: str = '') -> None:
    """Promise hosts to those that fit without another move.

    :param opened: UUID of a host that is known to take the first of them
    """
    promises = finder.promises
    with promises.with_promised({}) as future:
        if opened:
            promises.promise(future, opened)
        number = len(promises)
        promises.fill(future, finder.closed_to_new, count)
    while len(promises) > number and not promises.hold(()):
        # There is an order of creation in which nova refuses it.
        promises.cut(len(promises) - 1)
    finder.report()


def _open_next(
    finder: openings.Openings,
    count: int,
    tried: set[frozenset[str]],
) -> openings.Opening | None:
    """Make moves after which a host takes another new server, and promise it.

    :param count: number of new servers that must fit
    :param tried: gets the UUIDs of the servers that leave
    :returns: None where no moves are found, or none are needed
    """
    promises = finder.promises
    for _ in range(_MOST_ATTEMPTS if len(promises) < count else 0):
        with promises.with_promised(finder.movables) as future:
            opening = finder.find(future, count - len(promises), tried)
        if opening is None:
            return None
        with finder.places.cloud.fork() as trial:
            made = _make_moves(finder, opening)
            nodes = {node for _, node in opening.leaving}
            if len(made) == len(opening.leaving) and promises.hold(
                nodes, opening.node
            ):
                trial.keep()
                tried.add(opening.servers)
                break
        _blame(finder, opening)
    else:
        return None
    _fill(finder, count, opening.node)
    return opening


@dataclasses.dataclass
class _Deeper:
    """Takes back openings of a plan that is too short, and tries others.

    :param finder: goes on from ``at_first``
    :param count: number of new servers that must fit
    :param at_first: the promises to those that fit now
    :param best: the plan so far; its promises are the finder's
    """

    finder: openings.Openings
    count: int
    at_first: newcomers.Promised
    best: list[openings.Opening]

    def search(self) -> list[openings.Opening]:
        """Return the best plan; its promises are the finder's."""
        finder = self.finder
        self._promises = finder.promises
        self._budget = _MOST_ASKED // max(1, len(finder.takers))
        if self.count - len(self.at_first) > _DEEPEST:
            return self.best
        finder.promises = self.at_first
        with finder.begin():
            self._extend([])
        finder.promises = self._promises
        return self.best

    def _extend(self, opened: list[openings.Opening]) -> bool:
        """Go on from a plan in the open fork; True once it is whole."""
        finder, number = self.finder, len(self.finder.promises)
        if number > len(self._promises):
            self.best, self._promises = opened, finder.promises.copy()
        tried: set[frozenset[str]] = set()
        while number < self.count and self._budget > 0:
            self._budget -= 1
            with finder.places.cloud.fork():
                opening = _open_next(finder, self.count, tried)
                if opening is None:
                    return False
                if self._extend([*opened, opening]):
                    return True
            finder.promises.cut(number)
        return number >= self.count


def _make_moves(
    finder: openings.Openings, opening: openings.Opening
) -> list[plans.Move]:
    """Make moves in the fork that is open, up to the first that is refused."""
    places, moves = finder.places, list[plans.Move]()
    for size, node in opening.leaving:
        prepared, target = _ask(finder, size.uuid, node)
        if target is None or not prepared.go(places.cloud.future, target):
            break
        leaving = plans.make_leaving(size, size.host)
        moves.append(places.make_move(leaving, prepared, target))
    return moves


def _blame(finder: openings.Openings, opening: openings.Opening) -> None:
    """Bar the move that breaks a promise, or give its host up."""
    with finder.places.cloud.fork() as trial:
        for size, node in opening.leaving:
            prepared, target = _ask(finder, size.uuid, node)
            if (
                target is None
                or not prepared.go(trial, target)
                or not finder.promises.hold({node})
            ):
                finder.refused.setdefault(size.uuid, set()).add(node)
                return
    finder.given_up.add(opening.node)


def _ask(
    finder: openings.Openings, uuid: str, node: str
) -> tuple[movable.Movable, typing.Any]:
    """Return a server, and the HostState of a host that takes it, or None."""
    prepared = typing.cast(movable.Movable, finder.movables[uuid])
    find = functools.partial(finder.places.find_on, prepared, node)
    target = movable.attempt(find)
    if (
        target is None
        or isinstance(target, Exception)
        or not prepared.may_move_to(target)
    ):
        return prepared, None
    return prepared, target


def _find_helps(finder: openings.Openings, judged: matrix.Matrix) -> str:
    """Word acts after which one more new server fits."""
    asked = finder.coming.asked.obj_clone()
    # With those that were promised.
    asked.instance_group = finder.coming.spec_obj.instance_group
    adviser = stuck.Adviser(finder.places, finder.closed_to_new, is_new=True)
    return stuck.say_helps(adviser.find(judged, asked, asked.instance_uuid))


def _explain(
    finder: openings.Openings, judged: matrix.Matrix
) -> Iterator[str]:
    """Yield sentences on why no more fit, where all that were promised are.

    :param judged: what refuses all hosts then
    """
    cloud = finder.places.cloud
    yield document.make_answer(judged).sentence
    why = collections.Counter(
        f'{refused}'
        if isinstance(refused, admission.NotMovable)
        else messages.say_error(refused)
        for refused in finder.movables.values()
        if isinstance(refused, Exception)
    )
    for reason, number in why.most_common(_MOST_REASONS):
        yield (
            f'{messages.count("server", number)} of the hosts that were '
            f'looked at cannot be moved: {reason}.'
        )
    if cloud.providers.served.keys() - cloud.states.keys():
        yield 'Servers whose host only nova can choose were not moved.'
    if finder.unknown:
        hosts = messages.count('host', len(finder.unknown))
        verb = messages.agree(len(finder.unknown), 'was', 'were')
        yield (
            f'{hosts} {verb} not tried: what placement gives there of the '
            "flavor's numbered groups or devices once servers have left is "
            'not known.'
        )
    yield (
        'Chains were not tried: moving a third server so that a second can go.'
    )
    if finder.able - {*finder.takers}:
        yield (
            f'Only the {len(finder.takers)} hosts that need the fewest moves '
            'were tried.'
        )
