# SPDX-License-Identifier: Apache-2.0

"""One group of a query for allocation candidates or resource providers.

Follows specs alloc-candidates-member-of and negative-aggregate-membership,
and placement.lib and placement.util, which parse the same on the server:

=========================  ================================================
``resources=A:1,B:2``      amounts by resource class
``required=X,!Y``          X is required, Y forbidden
``member_of=<uuid>``       the provider is in the aggregate
``member_of=in:<u>,<v>``   in one or more of them; repeated, each must hold
``member_of=!<uuid>``      not in the aggregate
``member_of=!in:<u>,<v>``  in none of them
``in_tree=<uuid>``         the provider is in the tree of that provider
=========================  ================================================
"""

from collections.abc import Iterable
from collections.abc import Mapping
import re
import typing
from urllib import parse

from oslo_versionedobjects import fields

from nova_ext_sched import exception
from nova_ext_sched.objects import base
from nova_ext_sched.objects import syntax

# A parameter of a request group: its kind, and its suffix.
_KEY = re.compile(r'(resources|required|member_of|in_tree)(.*)', re.DOTALL)


def _check_resources(
    value: Mapping[str, int | str], where: str
) -> dict[str, int]:
    return {
        syntax.check_resource_class(name, where): syntax.check_amount(
            amount, f'{where} {name}'
        )
        for name, amount in value.items()
    }


_TRAIT = base.Checked(syntax.check_trait)
_UUID = base.Checked(syntax.check_uuid)


@base.register
class RequestGroup(base.NovaExtSchedObject):
    """Resources, traits and aggregates asked of a provider, or of a tree.

    A group without a suffix may be satisfied by any providers of one tree
    and by sharing providers; a group with a suffix by one provider.
    Placement's rules (specs alloc-candidates-member-of and
    negative-aggregate-membership): each of the OR sets in
    ``required_aggregates`` must be satisfied. If the root of a tree is in a
    forbidden aggregate, a group without a suffix excludes the whole tree, and
    a group with a suffix only the root.

    If an aggregate is both required and forbidden, placement finds nothing. If
    a trait is, placement refuses the query.

    Values are checked, and UUIDs written in lower case, when they are set.
    Two groups are equal where their queries are the same: neither the order
    nor the repetition of aggregates matters. A group can be changed, so it
    has no hash.

    :raises exception.InvalidValue: placement would refuse a value
    """

    # Version 1.0: Initial version
    VERSION = '1.0'

    fields = {
        # '' for the group without a suffix.
        'suffix': fields.Field(base.Checked(syntax.check_suffix), default=''),
        # Amounts by resource class, in the units of the class.
        'resources': fields.Field(base.Checked(_check_resources), default={}),
        'required_traits': fields.Field(fields.Set(_TRAIT), default=set()),
        'forbidden_traits': fields.Field(fields.Set(_TRAIT), default=set()),
        # OR sets of UUIDs; each of the sets must hold.
        'required_aggregates': fields.Field(
            fields.List(fields.List(_UUID)), default=[]
        ),
        'forbidden_aggregates': fields.Field(fields.Set(_UUID), default=set()),
        # UUID of a provider, root or not, in whose tree to stay.
        'in_tree': fields.Field(_UUID, nullable=True, default=None),
    }

    @classmethod
    def from_queryparams(
        cls, params: Iterable[tuple[str, str]]
    ) -> 'RequestGroup':
        """Return the group that the parameters of a query describe.

        :param params: pairs of key and decoded value, all of one group
        :raises exception.InvalidValue: a parameter that is of no known form,
            of another group than the first, or repeated where placement
            would drop one
        """
        group = cls()
        seen: set[str] = set()
        for key, value in params:
            match = _KEY.fullmatch(key)
            if match is None or (seen and match[2] != group.suffix):
                raise exception.InvalidValue(
                    where='parameters of one request group',
                    expected='resources, required, member_of, in_tree, all '
                    'with the same suffix',
                    got=key,
                )
            kind, group.suffix = match.groups()
            if key in seen and kind != 'member_of':
                raise exception.InvalidValue(
                    where=key, expected='the parameter once', got=value
                )
            seen.add(key)
            match kind:
                case 'resources':
                    group.resources = _parse_resources(value, key)
                case 'required':
                    names = value.split(',')
                    forbidden = {one for one in names if one.startswith('!')}
                    group.required_traits = set(names) - forbidden
                    group.forbidden_traits = {one[1:] for one in forbidden}
                case 'in_tree':
                    group.in_tree = value
                case 'member_of' if value.startswith('!'):
                    uuids = _parse_aggregates(value[1:], key)
                    group.forbidden_aggregates.update(uuids)
                case 'member_of':
                    uuids = _parse_aggregates(value, key)
                    group.required_aggregates = [
                        *group.required_aggregates,
                        uuids,
                    ]
        return group

    def to_queryparams(self) -> list[tuple[str, str]]:
        """Return the parameters of the group as sorted pairs, not encoded.

        :raises exception.InvalidValue: an OR set is empty, or a group with a
            suffix asks for nothing, which no query can say
        """
        if not all(self.required_aggregates):
            raise exception.InvalidValue(
                where='required_aggregates',
                expected='one aggregate or more in each OR set',
                got=self.required_aggregates,
            )
        or_sets = {
            ','.join(sorted({*uuids})) for uuids in self.required_aggregates
        }
        params = [('member_of', f'in:{or_set}') for or_set in or_sets]
        if self.forbidden_aggregates:
            uuids = ','.join(sorted(self.forbidden_aggregates))
            params.append(('member_of', f'!in:{uuids}'))
        if self.resources:
            amounts = (f'{name}:{n}' for name, n in self.resources.items())
            params.append(('resources', ','.join(sorted(amounts))))
        traits = sorted(self.required_traits)
        traits += [f'!{name}' for name in sorted(self.forbidden_traits)]
        if traits:
            params.append(('required', ','.join(traits)))
        if self.in_tree is not None:
            params.append(('in_tree', self.in_tree))
        if self.suffix and not params:
            raise exception.InvalidValue(
                where=f'request group {self.suffix}',
                expected='resources, traits, aggregates or in_tree',
                got=params,
            )
        return sorted((key + self.suffix, value) for key, value in params)

    def to_querystring(self) -> str:
        """Return the parameters of the group percent-encoded."""
        return parse.urlencode(self.to_queryparams())

    def _get_values(self) -> dict[str, typing.Any]:
        or_sets = {frozenset(uuids) for uuids in self.required_aggregates}
        return {**super()._get_values(), 'required_aggregates': or_sets}

    def __str__(self) -> str:
        # Unlike placement's own text, what is forbidden is in it.
        params = ', '.join(f'{k}={v}' for k, v in self.to_queryparams())
        return f'RequestGroup({params})'


def _parse_resources(value: str, where: str) -> dict[str, str]:
    pairs = [item.partition(':')[::2] for item in value.split(',')]
    resources = dict(pairs)
    if len(resources) < len(pairs):
        raise exception.InvalidValue(
            where=where,
            expected='VCPU:2,MEMORY_MB:1024 with each class once',
            got=value,
        )
    return resources


def _parse_aggregates(value: str, where: str) -> list[str]:
    if not value.startswith('in:'):
        return [value]
    uuids = value.removeprefix('in:').split(',')
    if any(uuid.startswith('!') for uuid in uuids):
        raise exception.InvalidValue(
            where=where,
            expected='member_of=in:<uuid>,<uuid> for one of several and '
            'another member_of=!in:<uuid>,<uuid> for none of several; ! '
            'cannot stand inside in:',
            got=value,
        )
    return uuids
