# SPDX-License-Identifier: Apache-2.0

"""How many more servers of a flavor may come, so that hosts can fail as now.

They come one after the other, each to the host that nova's weighers prefer
then, as :class:`.shared.Shared` finds it, until no host takes one, as capacity
counts, or there are 2,000. So many of them may come that no failure leaves
more servers without a host than it leaves now, the new ones counted.

The number is found by halving: with one more, the failure that is named is
worse than now. With fewer each is taken to be as now. Where room is just
enough, the order in which servers of several sizes are placed may make an
exception.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Set
import copy
import dataclasses
import itertools
import typing
import weakref

from oslo_utils import uuidutils

from nova_ext_sched import messages
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.decision import question
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.dryrun.plan import order
from nova_ext_sched.dryrun.plan import plans
from nova_ext_sched.dryrun.plan import shared

# Servers that are counted at most, as each is placed, and evacuated too.
_MOST = 2000


class Grown(shared.Shared):
    """The hosts that servers may go to when more have come.

    :param before: the same without them
    :param hosts: UUIDs of those where more may come
    """

    def __init__(self, before: shared.Shared, hosts: Iterable[str]) -> None:
        before.begin(frozenset())
        scheduler = copy.copy(before.scheduler)
        states = scheduler.states
        mine = {uuid: claims.copy_state(states[uuid]) for uuid in hosts}
        scheduler.states = {**states, **mine}
        super().__init__(scheduler)
        self.providers = before.providers.copy()
        self._again: typing.Any = weakref.WeakKeyDictionary()

    def _are_other(self) -> bool:
        return True

    def add(self, like: shared.Kind, host: str, takes: claims.Request) -> None:
        """Let a server come, in no plan.

        :param host: its UUID
        :param takes: one of its allocation requests
        """
        state = self.scheduler.states[host]
        claims.consume(state, like.judged, takes, host)
        self.providers.add(takes)

    def fill(self, like: shared.Kind) -> Iterator[tuple[str, claims.Request]]:
        """Let servers come, ``_MOST`` at most; yield host and request of each.

        :param like: what they have in common
        """
        mine = shared.Evacuee('', like.spec_obj, like)
        fresh = dict(like.requests)
        # Those that got one, and have room for another.
        again: dict[str, list[claims.Request]] = {}
        for _ in range(_MOST):
            left = [*again, *itertools.islice(fresh, shared.WEIGHED)]
            if not left:
                return
            states = [self.scheduler.states[uuid] for uuid in left]
            best = self._choose(states, like).uuid
            takes = (again.pop(best, None) or fresh.pop(best))[0]
            self.add(like, best, takes)
            yield best, takes
            passing, _ = self._judge_again(mine, [best])
            again |= {one.uuid: one.allocation_candidates for one in passing}

    def judge_again(self, mine: typing.Any) -> typing.Any:
        """Return a server that knows what hosts are left for it now.

        Before the first move of a plan.

        :param mine: an Evacuee of before more came, or an exception
        """
        if not (like := getattr(mine, 'like', None)):
            return mine
        if like not in self._again:
            states, _ = self._judge_again(mine, [*like.requests])
            weighed = self.scheduler.get_weighed_hosts(states, like.judged)
            requests = {
                one.obj.uuid: one.obj.allocation_candidates for one in weighed
            }
            self._again[like] = dataclasses.replace(like, requests=requests)
        return dataclasses.replace(mine, like=self._again[like])


class Spare:
    """The servers of a flavor that may come.

    :param now: where servers may go before they come
    :param flavor: nova's
    :raises exception.InvalidValue: nova-api would refuse such a server
    :raises placement.PlacementFailed: placement does not answer
    """

    def __init__(self, now: shared.Shared, flavor: typing.Any) -> None:
        self._flavor, self._states = flavor, now.scheduler.states
        ctxt, wanted = process.context(), question.Question()
        image = request.get_image(ctxt, wanted)
        self._like = now.make_kind(
            request.build(ctxt, now.scheduler, wanted, flavor, image)
        )
        # nova evacuates no server to a host of another cell.
        self._by_cell: dict[str, shared.Kind] = {}
        for uuid, requests in self._like.requests.items():
            self._by_cell.setdefault(
                self._states[uuid].cell_uuid,
                dataclasses.replace(self._like, requests={}),
            ).requests[uuid] = requests
        self._none = Grown(now, self._like.requests)
        self._most = Grown(now, self._like.requests)
        # The UUID of the host of each, and what it takes.
        self._came = list(self._most.fill(self._like))
        self._number, self._failure = len(self._came), ''

    def check(
        self,
        failure: str,
        hosts: Set[str],
        movables: Mapping[str, typing.Any],
        stuck: int,
    ) -> None:
        """Lower the number to one with which a failure is as it is now.

        :param hosts: names of those that fail
        :param movables: an Evacuee of each server on them, or an exception
        :param stuck: how many of them find no host
        """

        def is_as_now(places: Grown, number: int) -> bool:
            mine = dict(movables)
            for uuid, _ in self._came[:number]:
                if self._states[uuid].host in hosts:
                    like = self._by_cell[self._states[uuid].cell_uuid]
                    new = uuidutils.generate_uuid()
                    mine[new] = shared.Evacuee(new, like.spec_obj, like)
            places.begin(hosts)
            plan = order.Order(
                places.scheduler,
                (),
                prepare=lambda server: places.judge_again(mine[server]),
                found=places,
                is_hardest_first=True,
                explains=False,
            ).make([plans.Leaving(one, '', '', '', []) for one in mine])
            return len(plan.without_place) <= stuck

        if not self._number or is_as_now(self._most, self._number):
            return
        low, high, places = 0, self._number, self._none
        while high - low > 1:
            number = (low + high) // 2
            grown = Grown(places, self._like.requests)
            for uuid, takes in self._came[low:number]:
                grown.add(self._like, uuid, takes)
            if is_as_now(grown, number):
                low, places = number, grown
            else:
                high = number
        self._number, self._most, self._failure = low, places, failure

    def describe(self) -> dict[str, typing.Any]:
        """Return what the document has of it."""
        return {
            'id': self._flavor.flavorid,
            'name': messages.clean(self._flavor.name),
            'fit': len(self._came),
            'or_more': len(self._came) >= _MOST,
            'spare': self._number,
            'failure': messages.clean(self._failure),
        }
