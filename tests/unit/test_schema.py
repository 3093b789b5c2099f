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
    'an object with the key do',
    required=['do'],
    **{'$comment': 'the others need no count'},
)
STEP = {'oneOf': [BOOT, STOP], 'description': 'a step'}
DOCUMENT = an_object(
    {'steps': {'type': 'array', 'items': STEP}}, 'an object with the key steps'
)

# A document; what is wrong with it.
CASES = [
    ({'steps': [{'do': 'boot', 'count': 1}, {'do': 'stop'}]}, []),
    (3, ['(top): expected an object with the key steps, got 3']),
    ({'step': []},
     ['step: expected one of the keys steps, got step; did you mean '
      'steps?']),
    ({'steps': [{'do': 'stop'}, {'do': 'boot', 'count': 0}]},
     ['steps[1].count: expected an integer >= 1, got 0']),
    ({'steps': [{'do': 'boot'}]},
     ['steps[0]: expected the key count, got do']),
    ({'steps': [{}]}, ['steps[0]: expected the key do and count, got no key']),
    ({'steps': [{'do': 'jump', 'count': 0}]},
     ["steps[0].do: expected one of boot, stop, delete, got 'jump'"]),
    ({'steps': [{'do': 'boots'}]},
     ["steps[0].do: expected one of boot, stop, delete, got 'boots'; "
      'did you mean boot?']),
    ({'steps': [{'do': 'stop', 'count': 1}]},
     ['steps[0].count: expected one of the keys do (the others need no '
      'count), got count']),
    ({'steps': [3, {'do': 'boot', 'count': 'x'}], 'a\nb': 1},
     ['steps[0]: expected a step, got 3',
      "steps[1].count: expected an integer >= 1, got 'x'",
      "'a\\nb': expected one of the keys steps, got 'a\\nb'"]),
]  # fmt: skip


def find(document):
    errors = jsonschema.Draft202012Validator(DOCUMENT).iter_errors(document)
    return list(schema.find(errors))


@ddt.ddt
class FindingsTest(unittest.TestCase):
    @ddt.idata(CASES)
    @ddt.unpack
    def test_findings(self, document, expected):
        self.assertCountEqual(expected, list(map(str, find(document))))

    def test_path(self):
        fault = schema.Finding(('a', 'b', 1, 'c'), 'a string', '2')
        self.assertEqual('a.b[1].c: expected a string, got 2', str(fault))

    def test_what_somebody_wrote_is_one_short_line(self):
        shown = schema.show(['many\n'] * 1000)
        self.assertLess(len(shown), 150)
        self.assertNotIn('\n', shown)
        fault = schema.Finding(('a\nb' * 1000,), 'less', shown)
        self.assertLess(len(str(fault)), 500)
        self.assertNotIn('\n', str(fault))

    def test_without_a_description(self):
        errors = jsonschema.Draft202012Validator({'type': 'string'})
        [fault] = schema.find(errors.iter_errors(3))
        self.assertEqual("3 is not of type 'string'", fault.expected)

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
            self.assertTrue(str(fault).isprintable(), fault)
