# SPDX-License-Identifier: Apache-2.0

"""One group of a query for allocation candidates or resource providers."""

from collections.abc import Iterable
import typing
from urllib import parse

from oslo_versionedobjects import fields

from nova_ext_sched import exception
from nova_ext_sched.objects import base
from nova_ext_sched.objects import querystring
from nova_ext_sched.policy import extra_specs
from nova_ext_sched.policy import syntax


@base.register
class RequestGroup(base.NovaExtSchedObject):
    """What is asked of one provider, or of one tree of providers.

    A group without a suffix may be satisfied by any providers of one tree
    and by sharing providers; a group with a suffix by one provider.
    Placement's rules (specs alloc-candidates-member-of and
    negative-aggregate-membership): the OR sets of ``required_aggregates``
    are ANDed, and with a forbidden aggregate on the root of a tree a group
    without a suffix excludes the whole tree, a group with one the root alone.

    A trait or an aggregate may be both required and forbidden. For an
    aggregate placement then finds nothing; for a trait it refuses the query.

    Values are validated when the object is created and again when the query
    is built from it. UUIDs are kept as they are written.
    """

    # Version 1.0: Initial version
    VERSION = '1.0'

    fields = {
        # '' for the group without a suffix.
        'suffix': fields.StringField(default=''),
        # Amounts by resource class, in the units of the class.
        'resources': fields.DictOfIntegersField(default={}),
        'required_traits': fields.SetOfStringsField(default=set()),
        'forbidden_traits': fields.SetOfStringsField(default=set()),
        # OR sets of UUIDs; each of the sets must hold.
        'required_aggregates': fields.ListOfListsOfStringsField(default=[]),
        'forbidden_aggregates': fields.SetOfStringsField(default=set()),
        # UUID of a provider, root or not, in whose tree to stay.
        'in_tree': fields.StringField(nullable=True, default=None),
    }

    def __init__(self, *args: typing.Any, **kwargs: typing.Any) -> None:
        super().__init__(*args, **kwargs)
        self.obj_set_defaults()
        self.required_aggregates = self._or_sets()
        self.validate()

    @classmethod
    def from_wanted(
        cls, suffix: str, group: extra_specs.Group
    ) -> 'RequestGroup':
        """Return the group that a flavor and an image ask for.

        :raises exception.InvalidValue: a name that nova passes on and
            placement refuses
        """
        return cls(
            suffix=suffix,
            resources=group.resources,
            required_traits=group.required_traits,
            forbidden_traits=group.forbidden_traits,
        )

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
        values: dict[str, typing.Any] = {}
        required_aggregates = []
        forbidden_aggregates: set[str] = set()
        suffix = None
        for key, value in params:
            match = querystring.KEY.fullmatch(key)
            if not match or suffix not in (None, match[2] or ''):
                raise exception.InvalidValue(
                    where='parameters of one request group',
                    expected='resources, required, member_of, in_tree, all '
                    'with the same suffix',
                    got=key,
                )
            kind, suffix = match[1], match[2] or ''
            if kind == 'member_of':
                required, forbidden = querystring.parse_member_of(value, key)
                if required:
                    required_aggregates.append(sorted(required))
                forbidden_aggregates |= forbidden
                continue
            if kind in values:
                raise exception.InvalidValue(
                    where=key, expected='the parameter once', got=value
                )
            values[kind] = value

        where = suffix or ''
        traits: tuple[set[str], set[str]] = (set(), set())
        resources = {}
        if 'required' in values:
            traits = querystring.parse_traits(
                values['required'], 'required' + where
            )
        if 'resources' in values:
            resources = querystring.parse_resources(
                values['resources'], 'resources' + where
            )
        return cls(
            suffix=where,
            resources=resources,
            required_traits=traits[0],
            forbidden_traits=traits[1],
            required_aggregates=required_aggregates,
            forbidden_aggregates=forbidden_aggregates,
            in_tree=values.get('in_tree'),
        )

    def to_queryparams(self) -> querystring.Pairs:
        """Return the parameters of the group as sorted pairs, not encoded.

        :raises exception.InvalidValue: a field was set to what placement
            refuses, or a group with a suffix asks for nothing, which no query
            can say
        """
        self.validate()
        params = []
        if self.resources:
            amounts = (f'{name}:{n}' for name, n in self.resources.items())
            params.append(('resources', ','.join(sorted(amounts))))
        if self.required_traits or self.forbidden_traits:
            params.append(
                (
                    'required',
                    querystring.format_traits(
                        self.required_traits, self.forbidden_traits
                    ),
                )
            )
        for uuids in self._or_sets():
            params.append(('member_of', 'in:' + ','.join(uuids)))
        if self.forbidden_aggregates:
            uuids = sorted(self.forbidden_aggregates)
            params.append(('member_of', '!in:' + ','.join(uuids)))
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

    def validate(self) -> None:
        """Check every field.

        :raises exception.InvalidValue: one that placement would refuse
        """
        suffix = self.suffix
        if suffix:
            syntax.check_suffix(suffix, 'suffix')
        for name, amount in self.resources.items():
            syntax.check_resource_class(name, 'resources' + suffix)
            syntax.check_amount(amount, f'resources{suffix} {name}')
        for trait in (*self.required_traits, *self.forbidden_traits):
            syntax.check_trait(trait, 'required' + suffix)
        for uuids in self.required_aggregates:
            if not uuids:
                raise exception.InvalidValue(
                    where='member_of' + suffix,
                    expected='one aggregate or more in each OR set',
                    got=self.required_aggregates,
                )
            for uuid in uuids:
                syntax.check_uuid(uuid, 'member_of' + suffix)
        for uuid in self.forbidden_aggregates:
            syntax.check_uuid(uuid, 'member_of' + suffix)
        if self.in_tree is not None:
            syntax.check_uuid(self.in_tree, 'in_tree' + suffix)

    def __str__(self) -> str:
        traits = [
            *sorted(self.required_traits),
            *('!' + trait for trait in sorted(self.forbidden_traits)),
        ]
        aggregates = [
            *('(' + ' or '.join(uuids) + ')' for uuids in self._or_sets()),
            *('!' + uuid for uuid in sorted(self.forbidden_aggregates)),
        ]
        parts = [
            'resources='
            + ', '.join(
                f'{name}:{amount}'
                for name, amount in sorted(self.resources.items())
            ),
            'traits=' + ' and '.join(traits),
            'aggregates=' + ' and '.join(aggregates),
        ]
        if self.in_tree is not None:
            parts.append(f'in_tree={self.in_tree}')
        return f'RequestGroup{self.suffix}({"; ".join(parts)})'

    def _or_sets(self) -> list[list[str]]:
        # The same set twice says nothing more than once.
        return sorted(
            list(uuids)
            for uuids in {
                tuple(sorted(set(uuids))) for uuids in self.required_aggregates
            }
        )

    def _values(self) -> dict[str, typing.Any]:
        return super()._values() | {'required_aggregates': self._or_sets()}
