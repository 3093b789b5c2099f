# SPDX-License-Identifier: Apache-2.0

"""What placement would answer after the moves that are planned.

Its answer lacks the candidates that the moves open. They are found on the
hosts that servers left:

=======================================  ==================================
a host that servers left                 it is a candidate
=======================================  ==================================
is in placement's answer                 it is one already
is not, and satisfies every constraint   if the amounts fit what is left, and
of the query but the amounts             the inventories' units
lacks a constraint, or the request is    no
for several providers of a tree
=======================================  ==================================
"""

from collections.abc import Iterator
import copy
import typing

from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.cloud import query


class Providers(placement.Providers):
    """What placement says, each question asked once, and moves.

    Candidates that the moves fill are still in its answers:
    :meth:`find_short` tells them.

    :param client: a ReportClient of :mod:`.snapshot`
    """

    def __init__(self, client: typing.Any) -> None:
        super().__init__(client)
        self._claims = claims.Claims({})
        self._before = self._claims.copy()
        # UUIDs of the hosts that servers left.
        self._left: set[str] = set()

    def move(
        self, taken: claims.Request, held: claims.Request, left: str | None
    ) -> None:
        """Count a move, which takes first, and leaves then.

        :param taken: the allocation request of a candidate
        :param held: what the server held before
        :param left: UUID of the host where it was; None if it is not known
        """
        self._claims.take(taken)
        self._claims.give_back(held)
        if left is not None:
            self._left.add(left)

    def forget_moves(self) -> None:
        """Count as before the first move."""
        self._claims, self._left = self._before.copy(), set()

    def copy(self) -> 'Providers':
        """Return the same before the first move."""
        found = copy.copy(self)
        found._before = self._before.copy()
        found.forget_moves()
        return found

    def add(self, taken: claims.Request) -> None:
        """Count what is taken before the first move."""
        self._before.take(taken)
        self._claims.take(taken)

    def find_short(self, candidate: claims.Request) -> list[str]:
        """Return the resource classes of which the moves leave too little.

        :param candidate: an allocation request of :meth:`get_candidates`
        """
        return self._claims.find_lacking(candidate)

    def get_candidates(
        self, ctxt: typing.Any, resources: list[typing.Any]
    ) -> placement.Candidates:
        """Return what placement answers, and what the moves opened.

        :param resources: what :func:`.query.forms` returned
        """
        answer = super().get_candidates(ctxt, resources)
        hidden = {
            uuid: {'resources': self.get_inventories(uuid)}
            for uuid in sorted(self._left - answer.summaries.keys())
        }
        self._claims.learn({**answer.summaries, **hidden})
        opened = {
            uuid: request
            for form in resources
            for uuid, request in self._find_opened(form, {*hidden})
        }
        found = copy.copy(answer)
        found.requests = [*answer.requests, *opened.values()]
        found.summaries = {
            **answer.summaries,
            **{uuid: hidden[uuid] for uuid in opened},
        }
        return found

    def _find_opened(
        self, form: typing.Any, hidden: set[str]
    ) -> Iterator[tuple[str, claims.Request]]:
        """Yield hosts that are candidates now, each with what it gives.

        :param form: a nova ResourceRequest
        :param hidden: UUIDs of hosts that placement's answer does not have
        """
        if form.get_num_of_suffixed_groups():
            return
        amounts = form.merged_resources()
        fitting = {uuid for uuid in hidden if self._fits_units(uuid, amounts)}
        for part in query.split(form.to_querystring()):
            if part.key != 'resources':
                fitting -= self.find_lacking(part, fitting)
        for uuid in sorted(fitting):
            request = {
                'allocations': {uuid: {'resources': amounts}},
                'mappings': {'': [uuid]},
            }
            if not self._claims.find_lacking(request):
                yield uuid, request

    def _fits_units(self, uuid: str, amounts: dict[str, int]) -> bool:
        """Return whether a host's inventories ever give such amounts."""
        inventories = self.get_inventories(uuid)
        return amounts.keys() <= inventories.keys() and all(
            inventories[name]['min_unit'] <= amount
            and amount <= inventories[name]['max_unit']
            and amount % inventories[name]['step_size'] == 0
            for name, amount in amounts.items()
        )
