# SPDX-License-Identifier: Apache-2.0

"""Tests of the request bodies of server groups, with nova as the oracle."""

import copy
import unittest

import ddt
import hypothesis
from hypothesis import strategies
from nova import exception as nova_exception
from nova.api.openstack.compute.schemas import server_groups
from nova.api.validation import validators

from nova_ext_sched import exception
from nova_ext_sched.objects import server_group_body
from nova_ext_sched.policy import anti_affinity

# The specification's schema of POST /os-server-groups, word for word but for
# the types that it takes from nova.
SPECIFIED = {
    'type': 'object',
    'properties': {
        'server_group': {
            'type': 'object',
            'properties': {
                'name': 'parameter_types.name',
                'policy': {
                    'oneOf': [
                        {
                            'type': 'object',
                            'properties': {
                                'name': {
                                    'type': 'string',
                                    'enum': ['anti-affinity'],
                                },
                                'rules': {
                                    'type': 'object',
                                    'properties': {
                                        'max_server_per_host': (
                                            'parameter_types.positive_integer'
                                        ),
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
                                },
                            },
                            'required': ['name'],
                            'additionalProperties': False,
                        },
                    ]
                },
            },
            'required': ['name', 'policy'],
            'additionalProperties': False,
        }
    },
    'required': ['server_group'],
    'additionalProperties': False,
}


def without_words(schema):
    if isinstance(schema, dict):
        return {
            key: without_words(value)
            for key, value in schema.items()
            if key not in ('description', '$comment')
            and (key, value) != ('required', [])
        }
    if isinstance(schema, list):
        return [without_words(item) for item in schema]
    return schema


def faults(body, schema):
    """Return what is wrong with a body, as (where, expected, got)."""
    try:
        server_group_body.validate(body, schema)
    except exception.InvalidValues as error:
        found = error.faults
    except exception.InvalidValue as error:
        found = [error]
    else:
        return []
    return [(fault.where, fault.expected, fault.got) for fault in found]


def nested(policy):
    return {'server_group': {'name': 'test', 'policy': policy}}


def flat(**policy):
    return {'server_group': {'name': 'test', **policy}}


NO_RULES = 'affinity, soft-anti-affinity, soft-affinity have no rules'
ALL = 'one of anti-affinity, affinity, soft-anti-affinity, soft-affinity'


@ddt.ddt
class FaultsTest(unittest.TestCase):
    maxDiff = None

    def test_the_schema_is_the_specifications(self):
        ours = without_words(server_group_body.NESTED)
        group = ours['properties']['server_group']['properties']
        group['name'] = 'parameter_types.name'
        rules = group['policy']['oneOf'][0]['properties']['rules']
        rules['properties']['max_server_per_host'] = (
            'parameter_types.positive_integer'
        )
        self.assertEqual(SPECIFIED, ours)

    @ddt.data(
        ({'name': 'anti-affinity'}, []),
        ({'name': 'anti-affinity', 'rules': {}}, []),
        ({'name': 'soft-affinity'}, []),
        (
            {'name': 'anti-affinity', 'rules': {'max_server_per_host': 3}},
            [],
        ),
        (
            {'name': 'anti-affinity', 'rules': {'max_server_per_host': '3'}},
            [],
        ),
        (
            {'name': 'anti-affinity', 'rules': {'max_server_per_host': 0}},
            [('.rules.max_server_per_host', 'an integer, 1 or more', 0)],
        ),
        (
            {'name': 'anti-affinity', 'rules': {'max_server_per_host': '0'}},
            [('.rules.max_server_per_host', 'an integer, 1 or more', '0')],
        ),
        (
            {'name': 'anti-affinity', 'rules': {'max_server_per_host': True}},
            [('.rules.max_server_per_host', 'an integer, 1 or more', True)],
        ),
        (
            {'name': 'anti-affinity', 'rules': {'max': 2}},
            [('.rules.max', 'one of the keys max_server_per_host', 2)],
        ),
        (
            {'name': 'anti-affinity', 'rules': 3},
            [('.rules', 'an object of rules (max_server_per_host)', 3)],
        ),
        (
            {'name': 'affinity', 'rules': {'max_server_per_host': 2}},
            [
                (
                    '.rules',
                    f'one of the keys name ({NO_RULES})',
                    {'max_server_per_host': 2},
                )
            ],
        ),
        ({'name': 'legacy'}, [('.name', ALL, 'legacy')]),
        ({'name': ['affinity']}, [('.name', ALL, ['affinity'])]),
        ({}, [('', 'the key name', {})]),
        (
            'anti-affinity',
            [('', 'an object with the keys name and rules', 'anti-affinity')],
        ),
    )
    @ddt.unpack
    def test_policy_of_the_specification(self, policy, expected):
        self.assertEqual(
            [
                (f'server_group.policy{where}', words, got)
                for where, words, got in expected
            ],
            faults(nested(policy), server_group_body.NESTED),
        )

    @ddt.data(
        (flat(policy='anti-affinity', rules={'max_server_per_host': 2}), []),
        (flat(policy='affinity', rules={}), []),
        (
            flat(policy='affinity', rules={'max_server_per_host': 2}),
            [
                (
                    'server_group.rules.max_server_per_host',
                    f'no key ({NO_RULES})',
                    2,
                )
            ],
        ),
        (flat(policy='legacy'), [('server_group.policy', ALL, 'legacy')]),
        (
            flat(rules={}),
            [
                (
                    'server_group',
                    'the key policy',
                    {'name': 'test', 'rules': {}},
                )
            ],
        ),
        ({}, [('body', 'the key server_group', {})]),
        (
            [],
            [('body', 'an object with the key server_group', [])],
        ),
    )
    @ddt.unpack
    def test_body_of_nova(self, body, expected):
        self.assertEqual(expected, faults(body, server_group_body.NOVA))

    def test_every_fault_is_told(self):
        body = {
            'server_group': {
                'name': '',
                'policy': {
                    'name': 'anti-affinity',
                    'rules': {'max_server_per_host': -1, 'other': 1},
                },
            }
        }
        self.assertEqual(
            [
                'server_group.name',
                'server_group.policy.rules.max_server_per_host',
                'server_group.policy.rules.other',
            ],
            sorted(
                where for where, _, _ in faults(body, server_group_body.NESTED)
            ),
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

    @hypothesis.settings(deadline=None, max_examples=300)
    @hypothesis.given(
        optional(name=NAMES, policy=POLICIES, rules=RULES, other=VALUES)
    )
    def test_body_of_nova(self, group):
        body = {'server_group': group}
        self.assertEqual(
            self.accepts(body), not faults(body, server_group_body.NOVA)
        )

    @hypothesis.settings(deadline=None, max_examples=300)
    @hypothesis.given(NAMES, strategies.characters(max_codepoint=0x1FFFF))
    def test_names(self, name, char):
        for text in (name, f'a{char}b', f'a{char}'):
            body = {'server_group': {'name': text, 'policy': 'affinity'}}
            self.assertEqual(
                self.accepts(body), not faults(body, server_group_body.NOVA)
            )

    @hypothesis.settings(deadline=None, max_examples=300)
    @hypothesis.given(POLICIES, optional(rules=RULES))
    def test_body_of_the_specification(self, policy, rules):
        # One difference is the specification's: no empty rules where the
        # policy has none.
        expected = self.accepts(flat(policy=policy, **rules)) and (
            policy == anti_affinity.POLICY or not rules
        )
        self.assertEqual(
            expected,
            not faults(
                nested({'name': policy, **rules}), server_group_body.NESTED
            ),
        )
