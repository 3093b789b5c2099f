# SPDX-License-Identifier: Apache-2.0

"""Makes allocation candidates of a host that placement did not list.

``[placement] max_allocation_candidates`` bounds how many candidates placement
answers with. Of a host with devices pgpu0 to pgpu8 it may list pgpu0 and pgpu1
alone; when both are taken, placement would list pgpu2 and pgpu3. They follow
from the tree: what one provider of a candidate has too little of, another one
gives that is like it, with the same parent, the same of the traits that the
query names, and an inventory that gives such amounts.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import re
import typing
from urllib import parse

from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.dryrun.cloud import ledger
from nova_ext_sched.dryrun.cloud import placement

Summaries = Mapping[str, typing.Any]

# What a numbered group says of a provider besides its traits.
_OF_PLACE = re.compile(r'(member_of|in_tree)[^=]|same_subtree')
_WORD = re.compile('[A-Z0-9_]+')


class Swap:
    """Makes further candidates from those that placement listed.

    :param providers: placement's answers
    :param queries: the queries to it
    """

    def __init__(
        self, providers: placement.Providers, queries: Sequence[str]
    ) -> None:
        self._providers = providers
        text = '&'.join(map(parse.unquote, queries))
        self._is_possible = not _OF_PLACE.search(text)
        # All words of the query; the traits are among them.
        self._named = {*_WORD.findall(text)}

    def find(
        self,
        requests: Sequence[claims.Request],
        tree: Summaries,
        book: ledger.Ledger,
    ) -> Iterator[claims.Request]:
        """Yield candidates that fit into the free amounts.

        :param requests: allocation requests of one host that do not
        :param tree: placement's summaries of its providers, by UUID
        :param book: what is claimed
        """
        for request in requests if self._is_possible else ():
            given = self._find_givers(request['allocations'], tree, book)
            if given is not None:
                yield {
                    **request,
                    'allocations': {
                        given.get(uuid, uuid): one
                        for uuid, one in request['allocations'].items()
                    },
                    'mappings': {
                        suffix: [given.get(uuid, uuid) for uuid in uuids]
                        for suffix, uuids in request['mappings'].items()
                    },
                }

    def _find_givers(
        self,
        allocations: ledger.Allocations,
        tree: Summaries,
        book: ledger.Ledger,
    ) -> dict[str, str] | None:
        """Return the providers that can replace one without room, by its UUID.

        :returns: None where nobody does
        """
        given: dict[str, str] = {}
        for uuid, allocation in allocations.items():
            if _has_left(book, uuid, allocation['resources']):
                continue
            used = {*allocations, *given.values()}
            for other in tree:
                if (
                    other not in used
                    and self._are_alike(tree.get(uuid, {}), tree[other])
                    and _has_left(book, other, allocation['resources'])
                    and self._gives(other, allocation['resources'])
                ):
                    given[uuid] = other
                    break
            else:
                return None
        return given

    def _are_alike(self, provider: Summaries, other: Summaries) -> bool:
        # No other provider can stand for the host itself.
        parent = provider.get('parent_provider_uuid')
        return (
            parent is not None
            and parent == other['parent_provider_uuid']
            and self._named.isdisjoint(
                {*provider['traits']} ^ {*other['traits']}
            )
        )

    def _gives(self, uuid: str, amounts: Mapping[str, int]) -> bool:
        stored = self._providers.get_stored(uuid)
        return all(
            name in stored and ledger.fits_units(stored[name], amount)
            for name, amount in amounts.items()
        )


def _has_left(
    book: ledger.Ledger, uuid: str, amounts: Mapping[str, int]
) -> bool:
    return all(
        amount <= book.get_free(uuid, name) for name, amount in amounts.items()
    )
