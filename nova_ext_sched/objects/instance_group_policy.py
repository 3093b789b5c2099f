# SPDX-License-Identifier: Apache-2.0

"""The policy of a server group with its rules, as a versioned object.

The specification "Complex Anti-Affinity Policies" names the object; nova
keeps policy and rules on its InstanceGroup instead.

Two request bodies create a server group: the one of the specification
(``policy: {name, rules}``) and the one that nova took up in microversion 2.64
(``policy`` and ``rules`` side by side). Here they are JSON schemas;
:mod:`nova_ext_sched.schema` shows a description where a value has another
form.
"""

import typing
import unicodedata

import jsonschema
from oslo_versionedobjects import fields

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import schema
from nova_ext_sched.objects import base
from nova_ext_sched.policy import amount
from nova_ext_sched.policy import anti_affinity

Schema = dict[str, typing.Any]

_FORMATS = jsonschema.FormatChecker(formats=())


@_FORMATS.checks('name')
def _is_name(text: typing.Any) -> bool:
    """Return whether nova accepts the text as a name.

    As nova.api.validation.parameter_types.valid_name_regex, which alone lets
    a line break pass at the end. What is no string is for ``type`` to refuse.
    """
    return not isinstance(text, str) or (
        text == text.strip()
        and all(
            char < '\uffff'
            and (char.isprintable() or unicodedata.category(char) == 'Zs')
            for char in text
        )
    )


_LIMIT = anti_affinity.MAX_SERVER_PER_HOST
_POLICIES = list(anti_affinity.POLICIES)
_OTHERS = [name for name in _POLICIES if name != anti_affinity.POLICY]
_NO_RULES = f'no rules, as {", ".join(_OTHERS)} have none'


def _object(required: list[str], **keys: Schema) -> Schema:
    """Return the schema of an object that has no other keys."""
    noun = messages.agree(len(keys), 'key', 'keys')
    return {
        'type': 'object',
        'description': f'an object with the {noun} {", ".join(keys)}',
        'required': required,
        'properties': keys,
        'additionalProperties': False,
    }


def _policy(key: str, without_rules: Schema, **name: Schema) -> Schema:
    """Return the schema of a policy and its rules.

    :param key: the key of the policy's name
    :param without_rules: what rules may be where the policy has none
    :param name: what else stands beside them
    """
    without_rules = {**without_rules, 'description': _NO_RULES}
    return {
        **_object([*name, key], **name, **{key: _POLICY_NAME}, rules=_RULES),
        'if': {'required': [key], 'properties': {key: {'enum': _OTHERS}}},
        'then': {'properties': {'rules': without_rules}},
    }


_NAME = {
    'type': 'string',
    'format': 'name',
    'minLength': 1,
    'maxLength': 255,
    'description': 'a name of 1 to 255 printable characters below U+FFFF, '
    'without blanks at its ends',
}
_POLICY_NAME = {
    'enum': _POLICIES,
    'description': f'one of {", ".join(_POLICIES)}',
}
# nova.api.validation.parameter_types.positive_integer
_POSITIVE_INTEGER = {
    'type': ['integer', 'string'],
    'minimum': 1,
    'pattern': '^0*[1-9][0-9]*$',
    'description': amount.EXPECTED,
}
_RULES = {
    **_object([], **{_LIMIT: _POSITIVE_INTEGER}),
    'description': f'an object of rules ({_LIMIT})',
}

#: Policy and rules alone.
POLICY = _policy('policy', {'maxProperties': 0})
#: The body of nova since microversion 2.64.
NOVA = _object(
    ['server_group'],
    server_group=_policy('policy', {'maxProperties': 0}, name=_NAME),
)
#: The body of the specification, which has no place for empty rules where the
#: policy has none.
NESTED = _object(
    ['server_group'],
    server_group=_object(
        ['name', 'policy'], name=_NAME, policy=_policy('name', {'enum': []})
    ),
)


def validate(body: typing.Any, kind: Schema) -> typing.Any:
    """Return a request body, checked.

    :param body: the body, decoded from JSON
    :param kind: :data:`NESTED`, :data:`NOVA` or :data:`POLICY`
    :raises exception.InvalidValues: one value or several are wrong
    """
    validator = schema.Validator(kind, format_checker=_FORMATS)
    findings = [
        exception.InvalidValue(
            where=schema.format_path(finding.path) or 'body',
            expected=finding.expected,
            got=finding.value,
        )
        for finding in schema.find(validator.iter_errors(body))
    ]
    if findings:
        raise exception.InvalidValues(findings)
    return body


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
            rules = values.get('rules', {})
            validate({'policy': values.get('policy'), 'rules': rules}, POLICY)
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
        policy = validate(body, NESTED)['server_group']['policy']
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
        group = validate(body, NOVA)['server_group']
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
        group = {'name': name, 'policy': policy}
        return validate({'server_group': group}, NESTED)

    def to_nova_body(self, name: str) -> dict[str, typing.Any]:
        """Return the request body of nova since microversion 2.64.

        As :meth:`to_nested_body`.
        """
        group = {'name': name, 'policy': self.policy, 'rules': {**self.rules}}
        return validate({'server_group': group}, NOVA)
