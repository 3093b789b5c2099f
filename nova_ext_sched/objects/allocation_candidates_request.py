# SPDX-License-Identifier: Apache-2.0

"""A whole query for allocation candidates."""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import typing
from urllib import parse

from nova_ext_sched import exception
from nova_ext_sched.objects import querystring
from nova_ext_sched.objects import request_group
from nova_ext_sched.policy import extra_specs
from nova_ext_sched.policy import syntax


@dataclasses.dataclass(frozen=True)
class AllocationCandidatesRequest:
    """The request groups of a query and what is asked of them together.

    Its parts may be given in any order and any collection; they are kept
    sorted, so that equal requests are equal and build the same query.

    :ivar groups: each with a suffix of its own
    :ivar group_policy: ``none`` or ``isolate``; placement demands one where
        two or more groups have a suffix
    :ivar limit: the largest number of candidates to return; None for all
    :ivar root_required: traits of the root provider
    :ivar root_forbidden: traits that the root provider must not have
    :ivar same_subtree: sets of suffixes; the providers of each set's groups
        stand in one subtree
    """

    groups: Sequence[request_group.RequestGroup]
    group_policy: str | None = None
    limit: int | None = None
    root_required: Iterable[str] = ()
    root_forbidden: Iterable[str] = ()
    same_subtree: Iterable[Iterable[str]] = ()

    def __post_init__(self) -> None:
        canonical: dict[str, typing.Any] = {
            'groups': tuple(
                sorted(self.groups, key=lambda group: group.suffix)
            ),
            'root_required': tuple(sorted(set(self.root_required))),
            'root_forbidden': tuple(sorted(set(self.root_forbidden))),
            'same_subtree': tuple(
                sorted({tuple(sorted(set(s))) for s in self.same_subtree})
            ),
        }
        for name, value in canonical.items():
            object.__setattr__(self, name, value)
        self.validate()

    @classmethod
    def from_wanted(
        cls, wanted: extra_specs.Wanted, limit: int | None = None
    ) -> 'AllocationCandidatesRequest':
        """Return the request for what a flavor and an image ask for.

        :raises exception.InvalidValue: a name that nova passes on and
            placement refuses
        """
        return cls(
            groups=[
                request_group.RequestGroup.from_wanted(suffix, group)
                for suffix, group in wanted.groups.items()
            ],
            group_policy=wanted.group_policy,
            limit=limit,
        )

    @classmethod
    def from_queryparams(
        cls, params: Iterable[tuple[str, str]]
    ) -> 'AllocationCandidatesRequest':
        """Return the request that the parameters of a query describe.

        :param params: pairs of key and decoded value
        :raises exception.InvalidValue: a parameter that is of no known form,
            or repeated where placement would drop one
        """
        by_suffix: dict[str, querystring.Pairs] = {}
        once: dict[str, str] = {}
        same_subtree = []
        for key, value in params:
            match = querystring.KEY.fullmatch(key)
            if match:
                by_suffix.setdefault(match[2] or '', []).append((key, value))
            elif key == 'same_subtree':
                same_subtree.append(value.split(','))
            elif key not in ('limit', 'group_policy', 'root_required'):
                raise exception.InvalidValue(
                    where='query',
                    expected='a parameter of GET /allocation_candidates',
                    got=key,
                )
            elif key in once:
                raise exception.InvalidValue(
                    where=key, expected='the parameter once', got=value
                )
            else:
                once[key] = value
        root: tuple[set[str], set[str]] = (set(), set())
        if 'root_required' in once:
            root = querystring.parse_traits(
                once['root_required'], 'root_required'
            )
        limit = None
        if 'limit' in once:
            limit = syntax.parse_amount(once['limit'], 'limit')
        return cls(
            groups=[
                request_group.RequestGroup.from_queryparams(pairs)
                for pairs in by_suffix.values()
            ],
            group_policy=once.get('group_policy'),
            limit=limit,
            root_required=root[0],
            root_forbidden=root[1],
            same_subtree=same_subtree,
        )

    def to_queryparams(self) -> querystring.Pairs:
        """Return the parameters of the query as sorted pairs, not encoded.

        :raises exception.InvalidValue: a group asks for nothing, or was set
            to what placement refuses
        """
        params = []
        for group in self.groups:
            pairs = group.to_queryparams()
            if not pairs:
                raise exception.InvalidValue(
                    where='groups',
                    expected='something asked in each',
                    got=str(group),
                )
            params.extend(pairs)
        if self.group_policy is not None:
            params.append(('group_policy', self.group_policy))
        if self.limit is not None:
            params.append(('limit', str(self.limit)))
        if self.root_required or self.root_forbidden:
            params.append(
                (
                    'root_required',
                    querystring.format_traits(
                        self.root_required, self.root_forbidden
                    ),
                )
            )
        for suffixes in self.same_subtree:
            params.append(('same_subtree', ','.join(suffixes)))
        return sorted(params)

    def to_querystring(self) -> str:
        """Return the query percent-encoded."""
        return parse.urlencode(self.to_queryparams())

    def validate(self) -> None:
        """Check what concerns the request as a whole.

        :raises exception.InvalidValue: what placement would refuse
        """
        suffixes = [group.suffix for group in self.groups]
        if not suffixes or len(set(suffixes)) < len(suffixes):
            raise exception.InvalidValue(
                where='groups',
                expected='one group or more, each with a suffix of its own',
                got=suffixes,
            )
        if self.group_policy not in (None, *extra_specs.GROUP_POLICIES):
            raise exception.InvalidValue(
                where='group_policy',
                expected='none or isolate',
                got=self.group_policy,
            )
        if self.limit is not None:
            syntax.check_amount(self.limit, 'limit')
        for trait in (*self.root_required, *self.root_forbidden):
            syntax.check_trait(trait, 'root_required')
        for subtree in self.same_subtree:
            if not subtree or not set(subtree) <= set(suffixes) - {''}:
                raise exception.InvalidValue(
                    where='same_subtree',
                    expected='suffixes of groups of the request '
                    f'({", ".join(filter(None, suffixes)) or "none"})',
                    got=list(subtree),
                )

    def __str__(self) -> str:
        parts = [str(group) for group in self.groups]
        root = [*self.root_required, *('!' + t for t in self.root_forbidden)]
        if root:
            parts.append('root: ' + ' and '.join(root))
        parts.extend(
            'same subtree: ' + ', '.join(subtree)
            for subtree in self.same_subtree
        )
        if self.group_policy is not None:
            parts.append(f'group_policy={self.group_policy}')
        if self.limit is not None:
            parts.append(f'limit={self.limit}')
        return '; '.join(parts)
