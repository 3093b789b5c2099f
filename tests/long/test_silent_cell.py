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
from nova.scheduler import request_filter
import testtools

# Not imported: it patches what nova asks for.
SCRIPT = pathlib.Path(__file__).with_name('silent_cell_process.py')
NO_HOST = 'No valid host was found. There are not enough hosts available.'
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
        self.assertEqual([REFUSED] * 10, answer['in group'])
        # One of them asked, and the operator hears of it once.
        self.assertEqual(1, answer['connections'])
        [error] = answer['errors']
        self.assertIn('because a cell does not answer', error)
        self.assertEqual(1, error.count('the database of cell far'))
        self.assertLess(len(error), 300)
        # No thread of nova's is taken: the others have a host.
        self.assertEqual(['host1'] * 5, answer['others'])
        # As long as nova 34 itself asks no cell for them.
        stopped = mode == 'threads' and hasattr(
            request_filter, 'owner_nova_filter'
        )
        self.assertEqual(
            [NO_HOST if stopped else 'host1'] * 5, answer['whole']
        )
