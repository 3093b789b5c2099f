# SPDX-License-Identifier: Apache-2.0

"""The policy of a server group with its rules, as a versioned object.

The specification "Complex Anti-Affinity Policies" names the object; nova
keeps policy and rules on its InstanceGroup instead.
"""

from collections.abc import Mapping
import typing

from oslo_versionedobjects import fields

from nova_ext_sched import exception
from nova_ext_sched.objects import base
from nova_ext_sched.objects import server_group_body
from nova_ext_sched.policy import anti_affinity


def _no_policy(where: str, got: typing.Any) -> exception.InvalidValue:
    return exception.InvalidValue(
        where=where,
        expected=f'one of {", ".join(anti_affinity.POLICIES)}',
        got=got,
    )


class _Policy(fields.FieldType):
    def coerce(self, obj: typing.Any, attr: str, value: typing.Any) -> str:
        if value not in anti_affinity.POLICIES:
            raise _no_policy(attr, value)
        return value


class PolicyField(fields.AutoTypedField):
    """The name of a policy."""

    AUTO_TYPE = _Policy()


class _Rules(fields.FieldType):
    def coerce(
        self, obj: typing.Any, attr: str, value: typing.Any
    ) -> dict[str, typing.Any]:
        if not isinstance(value, Mapping):
            raise exception.InvalidValue(
                where=attr, expected='an object of rules', got=value
            )
        if not obj.obj_attr_is_set('policy'):
            raise _no_policy('policy', None)
        return anti_affinity.read_rules(obj.policy, value, attr)


class RulesField(fields.AutoTypedField):
    """Rules by name; each value is of the type that its rule has."""

    AUTO_TYPE = _Rules()


@base.register
class InstanceGroupPolicy(base.NovaExtSchedObject):
    """The policy of a server group.

    :param policy: the name of the policy
    :param rules: the rules that the group has of its own, by name; a value
        may be an integer or, as an old database row has it, its digits
    :param group_id: the key of the group's row, where there is one
    :raises exception.InvalidValue: (from the constructor, too) a policy that
        does not exist, a rule that the policy does not have, or a value of
        the wrong form
    """

    # Version 1.0: Initial version
    VERSION = '1.0'

    fields = {
        'policy': PolicyField(read_only=True),
        'rules': RulesField(default={}),
        'group_id': fields.IntegerField(nullable=True, default=None),
    }

    def __init__(self, context: typing.Any = None, **kwargs: typing.Any):
        # What rules may be depends on the policy, so that comes first.
        rules = kwargs.pop('rules', {})
        super().__init__(context, **kwargs)
        if rules or 'policy' in kwargs:
            self.rules = rules
            self.group_id = kwargs.get('group_id')

    @property
    def effective_rules(self) -> dict[str, typing.Any]:
        """The value of every rule of the policy, defaults included."""
        return anti_affinity.with_defaults(self.policy, self.rules)

    @classmethod
    def from_nested_body(
        cls, body: typing.Any, group_id: int | None = None
    ) -> typing.Self:
        """Read the request body of the specification.

        :param body: ``{"server_group": {"name": ..., "policy": {"name": ...,
            "rules": {...}}}}``
        :param group_id: the key of the group's row, where there is one
        :raises exception.InvalidValue: one value is wrong; ``where`` is its
            path in the body
        :raises exception.InvalidValues: several are
        """
        server_group_body.validate(body, server_group_body.NESTED)
        policy = body['server_group']['policy']
        return cls._from_body(
            policy['name'], policy, 'server_group.policy.rules', group_id
        )

    @classmethod
    def from_nova_body(
        cls, body: typing.Any, group_id: int | None = None
    ) -> typing.Self:
        """Read the request body of nova since microversion 2.64.

        :param body: ``{"server_group": {"name": ..., "policy": ...,
            "rules": {...}}}``
        :param group_id: the key of the group's row, where there is one
        :raises exception.InvalidValue: one value is wrong; ``where`` is its
            path in the body
        :raises exception.InvalidValues: several are
        """
        server_group_body.validate(body, server_group_body.NOVA)
        group = body['server_group']
        return cls._from_body(
            group['policy'], group, 'server_group.rules', group_id
        )

    @classmethod
    def _from_body(
        cls,
        policy: str,
        holder: dict[str, typing.Any],
        where: str,
        group_id: int | None,
    ) -> typing.Self:
        # The schema takes 3.0 for an integer; the rule does not.
        rules = anti_affinity.read_rules(
            policy, holder.get('rules', {}), where
        )
        return cls(policy=policy, rules=rules, group_id=group_id)

    def to_nested_body(self, name: str) -> dict[str, typing.Any]:
        """Return the request body of the specification.

        ``rules`` is left out where the policy has none: the specification's
        schema refuses the key there.

        :param name: the name of the group
        """
        policy: dict[str, typing.Any] = {'name': self.policy}
        if anti_affinity.rules_of(self.policy):
            policy['rules'] = dict(self.rules)
        return {'server_group': {'name': name, 'policy': policy}}

    def to_nova_body(self, name: str) -> dict[str, typing.Any]:
        """Return the request body of nova since microversion 2.64.

        :param name: the name of the group
        """
        return {
            'server_group': {
                'name': name,
                'policy': self.policy,
                'rules': dict(self.rules),
            }
        }
