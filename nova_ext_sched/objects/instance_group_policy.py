# SPDX-License-Identifier: Apache-2.0

"""The policy of a server group with its rules, as a versioned object.

The specification "Complex Anti-Affinity Policies" names the object; nova
keeps policy and rules on its InstanceGroup instead.
"""

import typing

from oslo_versionedobjects import fields

from nova_ext_sched.objects import base
from nova_ext_sched.objects import server_group_body
from nova_ext_sched.policy import anti_affinity


@base.register
class InstanceGroupPolicy(base.NovaExtSchedObject):
    """The policy of a server group.

    :param policy: the name of the policy
    :param rules: the rules that the group has of its own, by name; a value
        may be an integer or, as an old database row has it, its digits
    :param group_id: the key of the group's row, where there is one
    :raises exception.InvalidValues: a policy that does not exist, a rule that
        the policy does not have, or a value of the wrong form. Of what is set
        later, values are checked at once (InvalidValue), and whether policy
        and rules go together when a body is written.
    """

    # Version 1.0: Initial version
    VERSION = '1.0'

    fields = {
        'policy': fields.StringField(),
        'rules': fields.Field(
            fields.Dict(base.Checked(anti_affinity.read_value)), default={}
        ),
        'group_id': fields.IntegerField(nullable=True, default=None),
    }

    def __init__(
        self, context: typing.Any = None, **values: typing.Any
    ) -> None:
        # oslo.versionedobjects makes an empty object and sets its fields.
        if values:
            server_group_body.validate(
                {
                    'policy': values.get('policy'),
                    'rules': values.get('rules', {}),
                },
                server_group_body.POLICY,
            )
        super().__init__(context, **values)

    @classmethod
    def from_nested_body(
        cls, body: typing.Any, group_id: int | None = None
    ) -> typing.Self:
        """Read the request body of the specification.

        :param body: ``{"server_group": {"name": ..., "policy": {"name": ...,
            "rules": {...}}}}``
        :param group_id: the key of the group's row, where there is one
        :raises exception.InvalidValues: one value or several are wrong;
            ``where`` of each is its path in the body
        """
        server_group_body.validate(body, server_group_body.NESTED)
        policy = body['server_group']['policy']
        return cls(
            policy=policy['name'],
            rules=policy.get('rules', {}),
            group_id=group_id,
        )

    @classmethod
    def from_nova_body(
        cls, body: typing.Any, group_id: int | None = None
    ) -> typing.Self:
        """Read the request body of nova since microversion 2.64.

        As :meth:`from_nested_body`.

        :param body: ``{"server_group": {"name": ..., "policy": ...,
            "rules": {...}}}``
        """
        server_group_body.validate(body, server_group_body.NOVA)
        group = body['server_group']
        return cls(
            policy=group['policy'],
            rules=group.get('rules', {}),
            group_id=group_id,
        )

    def to_nested_body(self, name: str) -> dict[str, typing.Any]:
        """Return the request body of the specification.

        ``rules`` is left out where the policy has none: the specification's
        schema refuses the key there.

        :param name: the name of the group
        :raises exception.InvalidValues: the name, the policy or a rule is not
            of its form
        """
        policy: dict[str, typing.Any] = {'name': self.policy}
        if self.rules or self.policy == anti_affinity.POLICY:
            policy['rules'] = {**self.rules}
        body = {'server_group': {'name': name, 'policy': policy}}
        server_group_body.validate(body, server_group_body.NESTED)
        return body

    def to_nova_body(self, name: str) -> dict[str, typing.Any]:
        """Return the request body of nova since microversion 2.64.

        As :meth:`to_nested_body`.
        """
        group = {'name': name, 'policy': self.policy, 'rules': {**self.rules}}
        body = {'server_group': group}
        server_group_body.validate(body, server_group_body.NOVA)
        return body
