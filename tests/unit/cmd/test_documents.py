# SPDX-License-Identifier: Apache-2.0

import json
import os

import ddt
import testtools

from nova_ext_sched import document
from nova_ext_sched.cmd import audit_report as audit
from nova_ext_sched.cmd import plan_report as plan
from tests import schemas


@ddt.ddt
class SchemaTestCase(testtools.TestCase):
    @ddt.data(('audit', audit.SCHEMA), ('plan', plan.SCHEMA))
    @ddt.unpack
    def test_the_file_is_what_the_classes_say(self, name, parts):
        """NOVA_EXT_SCHED_TEST_WRITE=1 writes it anew."""
        path = schemas.ROOT / 'schemas' / f'{name}.json'
        text = json.dumps(document.make_schema(*parts), indent=2) + '\n'
        if os.environ.get('NOVA_EXT_SCHED_TEST_WRITE'):
            path.write_text(text)
        self.assertEqual(text, path.read_text())
