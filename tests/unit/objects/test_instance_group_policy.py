# SPDX-License-Identifier: Apache-2.0

"""Tests of the versioned object of a server group's policy."""

import json
import unittest

import ddt
import hypothesis
from hypothesis import strategies

from nova_ext_sched import exception
from nova_ext_sched import objects
from nova_ext_sched.objects import base
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
    def test_defaults(self):
        policy = Policy(policy='anti-affinity')
        self.assertEqual({}, policy.rules)
        self.assertIsNone(policy.group_id)

    def test_a_stored_value_gets_its_type(self):
        policy = Policy(
            policy='anti-affinity', rules={'max_server_per_host': '3'}
        )
        self.assertEqual({'max_server_per_host': 3}, policy.rules)

    @ddt.data(
        ({'policy': 'legacy'}, 'policy', 'legacy'),
        ({'policy': 'affinity', 'rules': None}, 'rules', None),
        (
            {'policy': 'anti-affinity', 'rules': {'max_server_per_host': 0}},
            'rules.max_server_per_host',
            0,
        ),
        ({'rules': {'max_server_per_host': 2}}, 'policy', None),
    )
    @ddt.unpack
    def test_bad(self, fields, where, got):
        with self.assertRaises(exception.InvalidValue) as caught:
            Policy(**fields)
        self.assertEqual(where, caught.exception.where)
        self.assertEqual(got, caught.exception.got)

    @ddt.data('x', 0, -1, 2.5, 3.0, True)
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

    @ddt.data('', ' x', 'a\0b', '\u200b', 'x' * 256, None, 7)
    def test_names_are_checked_when_written(self, name):
        for method in ('to_nova_body', 'to_nested_body'):
            with self.assertRaises(exception.InvalidValue) as caught:
                getattr(Policy(policy='affinity'), method)(name)
            self.assertEqual('server_group.name', caught.exception.where)

    def test_bodies(self):
        self.assertEqual(
            {
                'server_group': {
                    'name': 'test',
                    'policy': {'name': 'anti-affinity', 'rules': {}},
                }
            },
            Policy(policy='anti-affinity').to_nested_body('test'),
        )
        self.assertEqual(
            {'server_group': {'name': 'test', 'policy': {'name': 'affinity'}}},
            Policy(policy='affinity').to_nested_body('test'),
        )
        self.assertEqual(
            {
                'server_group': {
                    'name': 'test',
                    'policy': 'affinity',
                    'rules': {},
                }
            },
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

    @hypothesis.settings(deadline=None)
    @hypothesis.given(policies, policies)
    def test_equality(self, one, other):
        same = values(one) == values(other)
        self.assertEqual(same, one == other)
        self.assertEqual(not same, one != other)
        self.assertNotEqual(one, 3)
        self.assertNotEqual(Policy(), one)
        self.assertEqual(Policy(), Policy())

    @hypothesis.settings(deadline=None, max_examples=200)
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
