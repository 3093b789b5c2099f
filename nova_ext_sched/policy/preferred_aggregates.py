# SPDX-License-Identifier: Apache-2.0

"""Preferred and avoided aggregates: a number in their metadata.

With ``preference_key`` as it is by default, of one aggregate:

===========  ======================  ======================  ================
preference   preference_flavors      preference_projects     counts for
===========  ======================  ======================  ================
a number     absent                  absent                  all requests
a number     names or IDs            absent                  these flavors
a number     absent                  IDs                     these projects
a number     names or IDs            IDs                     these flavors of
                                                             these projects
a number     empty                   any                     nobody, with a
                                                             warning
a number     any                     empty                   nobody, with a
                                                             warning
no number    any                     any                     nobody, with a
                                                             warning
absent       absent                  absent                  nobody
absent       anything                any                     nobody, with a
                                                             warning
absent       any                     anything                nobody, with a
                                                             warning
===========  ======================  ======================  ================

The numbers of all aggregates of a host add up. What is positive comes first,
what is negative last.
"""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import math
import typing

from nova_ext_sched import messages
from nova_ext_sched.policy import declaration

DECLARATION = declaration.Policy(
    name='preferred-aggregates',
    summary='Hosts come first or last by a number in the metadata of their '
    'aggregates, for all requests or for some flavors or projects.',
    weigher='PreferredAggregatesWeigher',
    prefers='the highest number of an aggregate for the request',
)

#: What follows the key, for the names of flavors and the IDs of projects.
FLAVORS = '_flavors'
PROJECTS = '_projects'

#: The largest number: with more, no other weigher would count.
LARGEST = 1_000_000


class Preference(typing.NamedTuple):
    """The preference that an aggregate's metadata states.

    :ivar flavors: names and IDs of the flavors that it counts for; None for
        all
    :ivar projects: IDs of the projects that it counts for; None for all
    """

    number: float = 0.0
    flavors: Collection[str] | None = None
    projects: Collection[str] | None = None

    def counts_for(
        self, flavor: Collection[str | None], project: str | None
    ) -> float:
        """Return the number that counts for a request; 0 if none does.

        :param flavor: name and ID of the request's flavor
        :param project: its ID
        """
        if self.flavors is not None and not {*flavor} & {*self.flavors}:
            return 0.0
        if self.projects is not None and project not in self.projects:
            return 0.0
        return self.number


def read(metadata: Mapping[str, str], key: str) -> Preference:
    """Read the preference of an aggregate; 0 for all if it is malformed."""
    if any(find_faults(metadata, key)) or key not in metadata:
        return Preference()
    return Preference(
        float(metadata[key]),
        _split(metadata, key + FLAVORS),
        _split(metadata, key + PROJECTS),
    )


def find_faults(metadata: Mapping[str, str], key: str) -> Iterator[str]:
    """Yield a sentence for each malformed item of an aggregate's metadata."""
    lists = [one for one in (key + FLAVORS, key + PROJECTS) if one in metadata]
    if key in metadata and not _is_number(metadata[key]):
        yield (
            f'{messages.clean(key)}: expected a number from -{LARGEST} to '
            f'{LARGEST}, got {messages.quoted(metadata[key])}'
        )
    elif lists and key not in metadata:
        yield (
            f'{messages.clean(lists[0])}: expected {messages.clean(key)} with '
            f'a number beside it, got none'
        )
    for name in lists:
        if not _split(metadata, name):
            yield (
                f'{messages.clean(name)}: expected names with commas between '
                f'them, got {messages.quoted(metadata[name])}'
            )


def _is_number(value: str) -> bool:
    try:
        return math.fabs(float(value)) <= LARGEST
    except (TypeError, ValueError):
        return False


def _split(metadata: Mapping[str, str], key: str) -> Collection[str] | None:
    if key not in metadata:
        return None
    names = {one.strip() for one in (metadata[key] or '').split(',')}
    return names - {''}
