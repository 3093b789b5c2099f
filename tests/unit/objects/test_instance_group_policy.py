# SPDX-License-Identifier: Apache-2.0

"""Tests of the versioned object of a server group's policy, and its bodies.

nova is the oracle of its own body.
"""

import copy
import json
import unittest

import ddt
import hypothesis
from hypothesis import strategies
import jsonschema
from nova import exception as nova_exception
from nova.api.openstack.compute.schemas import server_groups
from nova.api.validation import parameter_types
from nova.api.validation import validators

from nova_ext_sched import exception
from nova_ext_sched import objects
from nova_ext_sched.objects import base
from nova_ext_sched.objects import instance_group_policy
from nova_ext_sched.policy import anti_affinity
from tests.unit.objects.strategies import values

Policy = objects.InstanceGroupPolicy

policies = strategies.one_of(
    strategies.builds(
        Policy,
        policy=strategies.just('anti-affinity'),
        rules=strategies.fixed_dictionaries(
            {}, optional={'max_server_per_host': strategies.integers(1)}
        ),
        group_id=strategies.none() | strategies.integers(1),
    ),
    strategies.builds(
        Policy, policy=strategies.sampled_from(anti_affinity.POLICIES)
    ),
)


@ddt.ddt
class InstanceGroupPolicyTest(unittest.TestCase):
    def test_a_stored_value_gets_its_type(self):
        policy = Policy(
            policy='anti-affinity', rules={'max_server_per_host': '3'}
        )
        self.assertEqual({'max_server_per_host': 3}, policy.rules)

    @ddt.data(
        ({'policy': 'affinity', 'rules': None}, 'rules', None),
        ({'rules': {'max_server_per_host': 2}}, 'policy', None),
    )
    @ddt.unpack
    def test_bad(self, fields, where, got):
        with self.assertRaises(exception.InvalidValue) as caught:
            Policy(**fields)
        self.assertEqual(where, caught.exception.where)
        self.assertEqual(got, caught.exception.got)

    @ddt.data('x', 0, True)
    def test_values_are_checked_when_they_are_set_anew(self, value):
        policy = Policy(policy='anti-affinity')
        with self.assertRaises(exception.InvalidValue) as caught:
            policy.rules = {'max_server_per_host': value}
        self.assertEqual(value, caught.exception.got)
        with self.assertRaises(exception.InvalidValue):
            policy.rules['max_server_per_host'] = value
        self.assertEqual({}, policy.rules)

    @ddt.data('to_nova_body', 'to_nested_body')
    def test_rules_set_in_place_are_checked_when_written(self, method):
        for policy, name, value, got in (
            ('anti-affinity', 'other', 1, 1),
            ('affinity', 'max_server_per_host', 2, None),
        ):
            group = Policy(policy=policy)
            group.rules[name] = value
            with self.assertRaises(exception.InvalidValue) as caught:
                getattr(group, method)('test')
            self.assertIn('server_group', caught.exception.where)
            if got is not None:
                self.assertEqual(got, caught.exception.got)

    @ddt.data('to_nova_body', 'to_nested_body')
    def test_names_are_checked_when_written(self, method):
        for name in (' x', 'x' * 256):
            with self.assertRaises(exception.InvalidValue) as caught:
                getattr(Policy(policy='affinity'), method)(name)
            self.assertEqual('server_group.name', caught.exception.where)

    def test_bodies(self):
        for policy, name in (
            ({'name': 'anti-affinity', 'rules': {}}, 'anti-affinity'),
            ({'name': 'affinity'}, 'affinity'),
        ):
            self.assertEqual(
                {'server_group': {'name': 'test', 'policy': policy}},
                Policy(policy=name).to_nested_body('test'),
            )
        self.assertEqual(
            flat(policy='affinity', rules={}),
            Policy(policy='affinity').to_nova_body('test'),
        )

    @hypothesis.settings(deadline=None)
    @hypothesis.given(policies)
    def test_round_trips(self, policy):
        for there, back in (
            (policy.to_nested_body, Policy.from_nested_body),
            (policy.to_nova_body, Policy.from_nova_body),
        ):
            body = json.loads(json.dumps(there('test')))
            again = back(body, group_id=policy.group_id)
            self.assertEqual(values(policy), values(again))
            self.assertEqual(policy, again)
        primitive = json.loads(json.dumps(policy.obj_to_primitive()))
        restored = base.NovaExtSchedObject.obj_from_primitive(primitive)
        self.assertEqual(values(policy), values(restored))
        self.assertEqual(policy, restored)
        self.assertEqual(policy, policy.obj_clone())
        self.assertRaises(TypeError, hash, policy)

    @hypothesis.given(
        strategies.text(),
        strategies.sampled_from(anti_affinity.POLICIES) | strategies.text(),
        strategies.dictionaries(
            strategies.text() | strategies.just('max_server_per_host'),
            strategies.text() | strategies.integers(),
        ),
    )
    def test_whatever_is_written_is_told_on_one_line(
        self, name, policy, rules
    ):
        flat = {'name': name, 'policy': policy, 'rules': rules}
        nested = {'name': name, 'policy': {'name': policy, 'rules': rules}}
        for call in (
            lambda: Policy.from_nova_body({'server_group': flat}),
            lambda: Policy.from_nested_body({'server_group': nested}),
            lambda: Policy(policy=policy, rules=rules).to_nova_body(name),
        ):
            try:
                call()
            except exception.InvalidValue as exc:
                self.assertTrue(str(exc).isprintable(), ascii(str(exc)))


# The policy in the specification's schema of POST /os-server-groups, word for
# word but for positive_integer, which it takes from nova.
SPECIFIED = {
    'oneOf': [
        {
            'type': 'object',
            'properties': {
                'name': {'type': 'string', 'enum': ['anti-affinity']},
                'rules': {
                    'type': 'object',
                    'properties': {
                        'max_server_per_host': (
                            parameter_types.positive_integer
                        )
                    },
                    'additionalProperties': False,
                },
            },
            'required': ['name'],
            'additionalProperties': False,
        },
        {
            'type': 'object',
            'properties': {
                'name': {
                    'type': 'string',
                    'enum': [
                        'affinity',
                        'soft-anti-affinity',
                        'soft-affinity',
                    ],
                }
            },
            'required': ['name'],
            'additionalProperties': False,
        },
    ]
}


def faults(body, kind):
    """Return what is wrong with a body, as (where, expected, got)."""
    try:
        instance_group_policy.validate(body, kind)
    except exception.InvalidValues as error:
        return [
            (fault.where, fault.expected, fault.got)
            for fault in error.findings
        ]
    return []


def nested(*rules, name='anti-affinity', **more):
    """Return the specification's body, with rules where they are given."""
    policy = {'name': name, **({'rules': rules[0]} if rules else {}), **more}
    return {'server_group': {'name': 'test', 'policy': policy}}


def flat(**policy):
    """Return nova's body."""
    return {'server_group': {'name': 'test', **policy}}


NESTED, NOVA = instance_group_policy.NESTED, instance_group_policy.NOVA
POLICY = 'server_group.policy'
VALUE = 'rules.max_server_per_host'
INTEGER = 'an integer, 1 or more'
ALL = 'one of anti-affinity, affinity, soft-anti-affinity, soft-affinity'
NO_RULES = 'no rules, as affinity, soft-anti-affinity, soft-affinity have none'


@ddt.ddt
class FaultsTest(unittest.TestCase):
    maxDiff = None

    @ddt.data(
        *(
            (
                NESTED,
                nested({'max_server_per_host': got}),
                f'{POLICY}.{VALUE}',
                INTEGER,
                got,
            )
            for got in ('0', 3.0)
        ),
        (NESTED, nested({'max': 2}), f'{POLICY}.rules.max',
         'one of the keys max_server_per_host', 2),
        (NESTED, nested({}, name='affinity'), f'{POLICY}.rules', NO_RULES, {}),
        (NESTED, nested(name='legacy'), f'{POLICY}.name', ALL, 'legacy'),
        (NESTED, flat(policy='affinity'), POLICY,
         'an object with the keys name, rules', 'affinity'),
        (NOVA, flat(policy='affinity', rules={'max_server_per_host': 2}),
         'server_group.rules', NO_RULES, {'max_server_per_host': 2}),
        (NOVA, {}, 'body', 'the key server_group', {}),
        (NOVA, [], 'body', 'an object with the key server_group', []),
    )  # fmt: skip
    @ddt.unpack
    def test_body(self, kind, body, *fault):
        self.assertEqual([fault], faults(body, kind))

    def test_every_fault_is_told(self):
        body = nested({'max_server_per_host': -1, 'other': 1})
        body['server_group']['name'] = ''
        self.assertEqual(
            [
                'server_group.name',
                f'{POLICY}.{VALUE}',
                f'{POLICY}.rules.other',
            ],
            sorted(where for where, _, _ in faults(body, NESTED)),
        )


NAMES = strategies.sampled_from(
    ['test', '', ' x', 'a b', 'a\0', '\u200b', '\xa0x', 'a\u2028b', 7, None]
) | strategies.text(max_size=5)
VALUES = (
    strategies.integers(-2, 5)
    | strategies.sampled_from(['', '0', '00', '1', '07', '-1', 'x', '1x'])
    | strategies.none()
    | strategies.booleans()
    | strategies.floats(allow_nan=False)
    | strategies.just([1])
)
RULES = (
    strategies.dictionaries(
        strategies.sampled_from(['max_server_per_host', 'other']), VALUES
    )
    | VALUES
)
POLICIES = strategies.sampled_from(
    [*anti_affinity.POLICIES, 'legacy', '', 3, None]
)


def optional(**keys):
    return strategies.fixed_dictionaries({}, optional=keys)


class NovaIsTheOracleTest(unittest.TestCase):
    """The same bodies are accepted as nova's API accepts."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.nova = validators._SchemaValidator(server_groups.create_v264)

    def accepts(self, body):
        group = body['server_group']
        try:
            # nova turns digits into integers in the body that it checks.
            self.nova.validate(copy.deepcopy(body))
        except nova_exception.ValidationError:
            return False
        # nova's pattern alone lets a line break pass at the end.
        if group['name'].endswith('\n'):
            return False
        # nova takes 3.0, which it cannot read back from its database.
        limit = group.get('rules', {}).get('max_server_per_host')
        if isinstance(limit, float):
            return False
        # nova.api.openstack.compute.server_groups refuses this by hand.
        return not (
            group['policy'] != anti_affinity.POLICY and group.get('rules')
        )

    @hypothesis.given(
        optional(name=NAMES, policy=POLICIES, rules=RULES, other=VALUES)
    )
    def test_body_of_nova(self, group):
        body = {'server_group': group}
        self.assertEqual(self.accepts(body), not faults(body, NOVA))

    @hypothesis.given(NAMES, strategies.characters(max_codepoint=0x1FFFF))
    def test_names(self, name, char):
        for text in (name, f'a{char}b', f'a{char}'):
            body = {'server_group': {'name': text, 'policy': 'affinity'}}
            self.assertEqual(
                self.accepts(body),
                not faults(body, instance_group_policy.NOVA),
            )

    @hypothesis.given(optional(name=POLICIES, rules=RULES, other=VALUES))
    def test_body_of_the_specification(self, policy):
        limit = policy.get('rules')
        if isinstance(limit, dict):
            limit = limit.get('max_server_per_host')
        self.assertEqual(
            jsonschema.Draft4Validator(SPECIFIED).is_valid(policy)
            and not isinstance(limit, float),
            not faults(
                {'server_group': {'name': 'test', 'policy': policy}}, NESTED
            ),
        )
