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
import re
import typing
from urllib import parse

from oslo_versionedobjects import fields

from nova_ext_sched import exception
from nova_ext_sched import syntax
from nova_ext_sched.objects import base

Params = list[tuple[str, str]]

# A parameter of a request group: its kind, and its suffix or None.
_KEY = re.compile(
    r'(resources|required|member_of|in_tree)([a-zA-Z0-9_-]{1,64})?'
)


# oslo.versionedobjects has these two since 3.11; nova 31 came with 3.6.
class SetOfStringsField(fields.AutoTypedField):
    """A set of strings."""

    AUTO_TYPE = fields.Set(fields.String())


class ListOfListsOfStringsField(fields.AutoTypedField):
    """A list of lists of strings."""

    AUTO_TYPE = fields.List(fields.List(fields.String()))


@base.register
class RequestGroup(base.NovaExtSchedObject):
    """What is asked of one provider, or of one tree of providers.

    A group without a suffix may be satisfied by any providers of one tree
    and by sharing providers; a group with a suffix by one provider.
    Placement's rules (specs alloc-candidates-member-of and
    negative-aggregate-membership): each of the OR sets in
    ``required_aggregates`` must be satisfied. If the root of a tree is in a
    forbidden aggregate, a group without a suffix excludes the whole tree, and
    a group with a suffix only the root.

    If an aggregate is both required and forbidden, placement finds nothing. If
    a trait is, placement refuses the query.

    Values are checked, and UUIDs written in lower case, when the object is
    created and again when a query is built from it.

    :raises exception.InvalidValue: placement would refuse a value
    """

    # Version 1.0: Initial version
    VERSION = '1.0'

    fields = {
        # '' for the group without a suffix.
        'suffix': fields.StringField(default=''),
        # Amounts by resource class, in the units of the class.
        'resources': fields.DictOfIntegersField(default={}),
        'required_traits': SetOfStringsField(default=set()),
        'forbidden_traits': SetOfStringsField(default=set()),
        # OR sets of UUIDs; each of the sets must hold.
        'required_aggregates': ListOfListsOfStringsField(default=[]),
        'forbidden_aggregates': SetOfStringsField(default=set()),
        # UUID of a provider, root or not, in whose tree to stay.
        'in_tree': fields.StringField(nullable=True, default=None),
    }

    def __init__(self, *args: typing.Any, **kwargs: typing.Any) -> None:
        super().__init__(*args, **kwargs)
        self.obj_set_defaults()
        for name, value in self._values().items():
            setattr(self, name, value)

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
        group: dict[str, typing.Any] = {
            'required_aggregates': [],
            'forbidden_aggregates': set(),
        }
        seen = set()
        for key, value in params:
            match = _KEY.fullmatch(key)
            suffix = (match[2] or '') if match else None
            if match is None or suffix != group.setdefault('suffix', suffix):
                raise exception.InvalidValue(
                    where='parameters of one request group',
                    expected='resources, required, member_of, in_tree, all '
                    'with the same suffix',
                    got=key,
                )
            kind = match[1]
            if kind in seen and kind != 'member_of':
                raise exception.InvalidValue(
                    where=key, expected='the parameter once', got=value
                )
            seen.add(kind)
            if kind == 'resources':
                group['resources'] = _parse_resources(value, key)
            elif kind == 'required':
                required, forbidden = _parse_traits(value, key)
                group['required_traits'] = required
                group['forbidden_traits'] = forbidden
            elif kind == 'in_tree':
                group['in_tree'] = value
            elif value.startswith('!'):
                uuids = _parse_aggregates(value[1:], key, value)
                group['forbidden_aggregates'].update(uuids)
            else:
                uuids = _parse_aggregates(value, key, value)
                group['required_aggregates'].append(uuids)
        return cls(**group)

    def to_queryparams(self) -> Params:
        """Return the parameters of the group as sorted pairs, not encoded.

        :raises exception.InvalidValue: a field was set to what placement
            refuses, or a group with a suffix asks for nothing, which no query
            can say
        """
        values = self._values()
        traits = sorted(values['required_traits'])
        traits += ['!' + t for t in sorted(values['forbidden_traits'])]
        params = [
            ('member_of', 'in:' + ','.join(uuids))
            for uuids in values['required_aggregates']
        ]
        if values['resources']:
            amounts = (f'{c}:{n}' for c, n in values['resources'].items())
            params.append(('resources', ','.join(sorted(amounts))))
        if traits:
            params.append(('required', ','.join(traits)))
        if values['forbidden_aggregates']:
            uuids = sorted(values['forbidden_aggregates'])
            params.append(('member_of', '!in:' + ','.join(uuids)))
        if values['in_tree'] is not None:
            params.append(('in_tree', values['in_tree']))
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

    def __str__(self) -> str:
        # Unlike placement's own text, what is forbidden is in it.
        params = ', '.join(f'{k}={v}' for k, v in self.to_queryparams())
        return f'RequestGroup({params})'

    def _values(self) -> dict[str, typing.Any]:
        """Return the checked value of each field, OR sets sorted and once."""
        suffix = self.suffix
        if suffix:
            syntax.check_suffix(suffix, 'suffix')

        def uuids(values: Iterable[str]) -> set[str]:
            where = 'member_of' + suffix
            return {syntax.check_uuid(value, where) for value in values}

        def traits(values: Iterable[str]) -> set[str]:
            where = 'required' + suffix
            return {syntax.check_trait(value, where) for value in values}

        if not all(self.required_aggregates):
            raise exception.InvalidValue(
                where='member_of' + suffix,
                expected='one aggregate or more in each OR set',
                got=self.required_aggregates,
            )
        where = 'resources' + suffix
        return {
            'suffix': suffix,
            'resources': {
                syntax.check_resource_class(name, where): syntax.check_amount(
                    amount, f'{where} {name}'
                )
                for name, amount in self.resources.items()
            },
            'required_traits': traits(self.required_traits),
            'forbidden_traits': traits(self.forbidden_traits),
            'required_aggregates': [
                list(or_set)
                for or_set in sorted(
                    {tuple(sorted(uuids(s))) for s in self.required_aggregates}
                )
            ],
            'forbidden_aggregates': uuids(self.forbidden_aggregates),
            'in_tree': None
            if self.in_tree is None
            else syntax.check_uuid(self.in_tree, 'in_tree' + suffix),
        }


def _parse_resources(value: str, where: str) -> dict[str, int]:
    resources: dict[str, int] = {}
    for item in value.split(','):
        name, colon, amount = item.partition(':')
        if not colon or name in resources:
            raise exception.InvalidValue(
                where=where,
                expected='VCPU:2,MEMORY_MB:1024 with each class once',
                got=value,
            )
        syntax.check_resource_class(name, where)
        resources[name] = syntax.check_amount(amount, f'{where} {name}')
    return resources


def _parse_traits(value: str, where: str) -> tuple[set[str], set[str]]:
    # in:X,Y, one of several traits, came with microversion 1.39.
    if value.startswith('in:'):
        raise exception.InvalidValue(
            where=where, expected='traits of the form X,!Y', got=value
        )
    items = value.split(',')
    forbidden = {item[1:] for item in items if item.startswith('!')}
    return {i for i in items if not i.startswith('!')}, forbidden


def _parse_aggregates(listed: str, where: str, got: str) -> list[str]:
    if not listed.startswith('in:'):
        return [syntax.check_uuid(listed, where)]
    uuids = listed.removeprefix('in:').split(',')
    if any(uuid.startswith('!') for uuid in uuids):
        raise exception.InvalidValue(
            where=where,
            expected='member_of=in:<uuid>,<uuid> for one of several and '
            'another member_of=!in:<uuid>,<uuid> for none of several; ! '
            'cannot stand inside in:',
            got=got,
        )
    return uuids
