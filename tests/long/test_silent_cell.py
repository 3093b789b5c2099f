# SPDX-License-Identifier: Apache-2.0

"""A cell whose database accepts a connection and says nothing."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import ddt
from nova import utils
import testtools

# Not imported: it patches what nova asks for.
SCRIPT = pathlib.Path(__file__).with_name('silent_cell_process.py')
REFUSED = (
    'No valid host was found. Scheduling failed: failure_domains cannot decide'
)

#: What nova may work in; its older releases know eventlet alone.
MODES = {'eventlet': '0'}
if hasattr(utils, 'concurrency_mode_threading'):
    MODES['threads'] = '1'


@ddt.ddt
class SilentCellTest(testtools.TestCase):
    @ddt.data(*MODES)
    def test_a_member_takes_no_thread_of_novas(self, mode):
        """Ten boots, in two bursts of as many as nova has threads."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, '-W', 'ignore', SCRIPT, folder],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
                timeout=300,
                env={
                    **os.environ,
                    'OS_NOVA_DISABLE_EVENTLET_PATCHING': MODES[mode],
                },
            )
        answer = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual([REFUSED] * 10, answer['refused'])
        # nova reads the hosts of the other cell.
        self.assertEqual(['host1'], answer['hosts'])
        # One of them asked, and the operator hears of it once.
        self.assertEqual(1, answer['connections'])
        [error] = answer['errors']
        self.assertIn('because a cell does not answer', error)
        self.assertIn('the database of cell far', error)
