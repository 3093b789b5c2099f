# SPDX-License-Identifier: Apache-2.0

import json
import os

import ddt
import testtools

from nova_ext_sched.cmd import audit_report as audit
from nova_ext_sched.cmd import capacity_report as capacity
from nova_ext_sched.cmd import documents
from nova_ext_sched.cmd import explain_report as explain
from nova_ext_sched.cmd import plan_report as plan
from tests import schema_writer
from tests import schemas


@ddt.ddt
class SchemaTestCase(testtools.TestCase):
    @ddt.data(
        ('audit', audit.SCHEMA),
        ('capacity', capacity.SCHEMA),
        ('explain', explain.SCHEMA),
        ('plan', plan.SCHEMA),
    )
    @ddt.unpack
    def test_the_file_is_what_the_classes_say(self, name, parts):
        """NOVA_EXT_SCHED_TEST_WRITE=1 writes it anew."""
        path = schemas.ROOT / 'schemas' / f'{name}.json'
        text = json.dumps(schema_writer.make_schema(*parts), indent=2) + '\n'
        if os.environ.get('NOVA_EXT_SCHED_TEST_WRITE'):
            path.write_text(text)
        self.assertEqual(text, path.read_text())
        schema = json.loads(text)
        for form in schema.get('oneOf', [schema]):
            # The first line of what people read, for jq.
            self.assertIn('answer', form['required'])
            reference = form['properties']['answer']['$ref']
            answer = schema['$defs'][reference.rpartition('/')[2]]
            self.assertIn('sentence', answer['required'])


class FinishTestCase(testtools.TestCase):
    def finish(self, faults=()):
        draft = documents.Draft(
            head='One of two',
            remarks=['More.'],
            rows=[],
            topology=[{'host': 'a'}],
            faults=faults,
            status=3,
        )
        return documents.finish(
            draft, 7, lambda: {'answer': {'number': 1}, 'found': ['x']}
        )

    def test_what_could_not_be_read(self):
        """It is told, is no part of the answer, and is the status."""
        made = self.finish(['Cell b is silent.'])
        self.assertEqual(
            ('One of two. More. Cell b is silent.', 1, ['a']),
            (made.sentence, made.status, made.hosts),
        )
        found = made.document()
        self.assertEqual(7, found['format'])
        self.assertEqual(
            {
                'answer': {'sentence': 'One of two. More.', 'number': 1},
                'topology': [{'host': 'a'}],
                'found': ['x'],
                'faults': ['Cell b is silent.'],
            },
            {key: found[key] for key in [*found][3:]},
        )

    def test_everything_was_read(self):
        self.assertEqual(3, self.finish().status)
