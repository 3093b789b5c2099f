# SPDX-License-Identifier: Apache-2.0

"""Tests of what a JSON schema finds wrong, in words."""

import unittest

import ddt
import hypothesis
from hypothesis import strategies as st
import jsonschema

from nova_ext_sched import schema


def an_object(properties, words, **more):
    return {
        'type': 'object',
        'properties': properties,
        'additionalProperties': False,
        'description': words,
        **more,
    }


COUNT = {'type': 'integer', 'minimum': 1, 'description': 'an integer >= 1'}
BOOT = an_object(
    {'do': {'const': 'boot'}, 'count': COUNT},
    'an object with the keys do and count',
    required=['do', 'count'],
)
STOP = an_object(
    {'do': {'enum': ['stop', 'delete']}},
    'an object with the key do alone',
    required=['do'],
)
DOCUMENT = an_object(
    {'steps': {'type': 'array', 'items': {'oneOf': [BOOT, STOP]}}},
    'an object with the key steps',
)

# A document; what is wrong with it.
CASES = [
    ({'steps': [{'do': 'boot', 'count': 1}, {'do': 'stop'}]}, []),
    (3, [('', 'an object with the key steps', 3)]),
    (
        {'step': []},
        [
            (
                'step',
                'no such key (did you mean steps?), but an object with the '
                'key steps',
                [],
            )
        ],
    ),
    (
        {'steps': [{'do': 'stop'}, {'do': 'boot', 'count': 0}]},
        [('steps[1].count', 'an integer >= 1', 0)],
    ),
    (
        {'steps': [{'do': 'boot'}]},
        [('steps[0]', 'the key count', {'do': 'boot'})],
    ),
    (
        {'steps': [{'do': 'jump', 'count': 0}]},
        [('steps[0].do', 'one of boot, stop, delete', 'jump')],
    ),
    (
        {'steps': [{'do': 'stop', 'count': 1}]},
        [
            (
                'steps[0].count',
                'no such key, but an object with the key do alone',
                1,
            )
        ],
    ),
    (
        {'steps': [{'do': 'boot', 'count': 'x'}], 'a\nb': 1},
        [
            ('steps[0].count', 'an integer >= 1', 'x'),
            (
                "'a\\nb'",
                'no such key, but an object with the key steps',
                1,
            ),
        ],
    ),
]


def find(document):
    errors = jsonschema.Draft202012Validator(DOCUMENT).iter_errors(document)
    return schema.find_faults(errors)


@ddt.ddt
class FaultsTest(unittest.TestCase):
    @ddt.idata(CASES)
    @ddt.unpack
    def test_faults(self, document, expected):
        self.assertCountEqual(expected, [tuple(f) for f in find(document)])

    def test_without_a_description(self):
        errors = jsonschema.Draft202012Validator({'type': 'string'})
        [fault] = schema.find_faults(errors.iter_errors(3))
        self.assertEqual("3 is not of type 'string'", fault.expected)

    @hypothesis.settings(deadline=None, max_examples=100)
    @hypothesis.given(
        st.recursive(
            st.none() | st.integers() | st.text(),
            lambda inner: (
                st.lists(inner)
                | st.dictionaries(
                    st.sampled_from(['steps', 'do', 'count']) | st.text(),
                    inner,
                )
            ),
        )
    )
    def test_any_document(self, document):
        valid = jsonschema.Draft202012Validator(DOCUMENT).is_valid(document)
        faults = find(document)
        self.assertEqual(valid, not faults)
        for fault in faults:
            self.assertTrue(fault.path.isprintable(), fault.path)
            self.assertTrue(fault.expected.isprintable(), fault.expected)
