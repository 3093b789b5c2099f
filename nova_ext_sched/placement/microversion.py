# SPDX-License-Identifier: Apache-2.0

"""Which microversion of placement each part of a request needs.

After placement.microversion.VERSIONS. A constraint that the server cannot
express is an error before anything is sent: without it the answer would hold
hosts that the request may not use.
"""

from collections.abc import Iterable
import dataclasses
import enum
import re

from nova_ext_sched.objects import allocation_candidates_request as acr
from nova_ext_sched.objects import request_group

#: The greatest microversion that this client knows. Later ones may change
#: the answers that it reads.
KNOWN = (1, 39)

_NUMBERED = re.compile(r'[1-9][0-9]*')


class Feature(enum.Enum):
    """A part of the API, in words, and the least microversion that has it."""

    BASE = ('resource providers', (1, 0))
    PROVIDER_MEMBER_OF = ('member_of for resource providers', (1, 3))
    PROVIDER_RESOURCES = ('resources for resource providers', (1, 4))
    TRAITS = ('traits', (1, 6))
    # 1.10 has them in a form that this client does not read.
    CANDIDATES = ('allocation candidates', (1, 12))
    PROVIDER_IN_TREE = ('in_tree for resource providers', (1, 14))
    LIMIT = ('limit', (1, 16))
    CANDIDATES_REQUIRED = ('required traits', (1, 17))
    PROVIDER_REQUIRED = ('required traits for resource providers', (1, 18))
    # 1.1 has them without the generation, so that an update could be lost.
    AGGREGATES = ('aggregates of a provider with its generation', (1, 19))
    CANDIDATES_MEMBER_OF = ('member_of for allocation candidates', (1, 21))
    FORBIDDEN_TRAITS = ('forbidden traits', (1, 22))
    REPEATED_MEMBER_OF = ('more than one member_of', (1, 24))
    GROUPS = ('request groups with a number', (1, 25))
    GROUP_POLICY = ('group_policy', (1, 25))
    CANDIDATES_IN_TREE = ('in_tree for allocation candidates', (1, 31))
    FORBIDDEN_AGGREGATES = ('forbidden aggregates', (1, 32))
    SUFFIXES = ('request groups with a name', (1, 33))
    ROOT_REQUIRED = ('root_required', (1, 35))
    SAME_SUBTREE = ('same_subtree', (1, 36))
    NO_RESOURCES = ('a request group without resources', (1, 36))

    @property
    def words(self) -> str:
        """What the feature is, for an error."""
        return self.value[0]

    @property
    def least(self) -> tuple[int, int]:
        """The least microversion that has it."""
        return self.value[1]


@dataclasses.dataclass(frozen=True)
class Range:
    """The microversions that a server has, both included."""

    minimum: tuple[int, int]
    maximum: tuple[int, int]

    @property
    def usable(self) -> tuple[int, int]:
        """The greatest that both the server and this client know."""
        return min(self.maximum, KNOWN)

    def unsupported(self, features: Iterable[Feature]) -> list[Feature]:
        """Return those of ``features`` that the server does not have."""
        return sorted(
            {feature for feature in features if feature.least > self.usable},
            key=lambda feature: (feature.least, feature.words),
        )


def parse(text: str) -> tuple[int, int]:
    """Return the microversion that ``text`` writes, such as ``1.39``.

    :raises ValueError: it is of another form
    """
    major, minor = text.split('.')
    return int(major), int(minor)


def show(microversion: tuple[int, int]) -> str:
    """Return the microversion as the API writes it."""
    return f'{microversion[0]}.{microversion[1]}'


def of_candidates(
    request: acr.AllocationCandidatesRequest,
) -> set[Feature]:
    """Return what GET /allocation_candidates needs for ``request``."""
    features = {Feature.CANDIDATES}
    if request.limit is not None:
        features.add(Feature.LIMIT)
    if request.group_policy is not None:
        features.add(Feature.GROUP_POLICY)
    if request.root_required or request.root_forbidden:
        features.add(Feature.ROOT_REQUIRED)
    if request.same_subtree:
        features.add(Feature.SAME_SUBTREE)
    for group in request.groups:
        features |= _of_group(group)
        if group.suffix:
            numbered = _NUMBERED.fullmatch(group.suffix)
            features.add(Feature.GROUPS if numbered else Feature.SUFFIXES)
        if not group.resources:
            features.add(Feature.NO_RESOURCES)
        if group.required_traits or group.forbidden_traits:
            features.add(Feature.CANDIDATES_REQUIRED)
        if group.required_aggregates or group.forbidden_aggregates:
            features.add(Feature.CANDIDATES_MEMBER_OF)
        if group.in_tree is not None:
            features.add(Feature.CANDIDATES_IN_TREE)
    return features


def of_providers(group: request_group.RequestGroup) -> set[Feature]:
    """Return what GET /resource_providers needs for the filters of a group."""
    features = {Feature.BASE} | _of_group(group)
    if group.resources:
        features.add(Feature.PROVIDER_RESOURCES)
    if group.required_traits or group.forbidden_traits:
        features.add(Feature.PROVIDER_REQUIRED)
    if group.required_aggregates or group.forbidden_aggregates:
        features.add(Feature.PROVIDER_MEMBER_OF)
    if group.in_tree is not None:
        features.add(Feature.PROVIDER_IN_TREE)
    return features


def _of_group(group: request_group.RequestGroup) -> set[Feature]:
    features = set()
    if group.forbidden_traits:
        features.add(Feature.FORBIDDEN_TRAITS)
    if group.forbidden_aggregates:
        features.add(Feature.FORBIDDEN_AGGREGATES)
    parameters = [key for key, _ in group.to_queryparams()]
    if parameters.count('member_of' + group.suffix) > 1:
        features.add(Feature.REPEATED_MEMBER_OF)
    return features
