# SPDX-License-Identifier: Apache-2.0

"""What the OpenStackClient pays for our being installed."""

import os
import subprocess
import sys
import types
import unittest
from unittest import mock

from nova_ext_sched import placement
from nova_ext_sched.osc import plugin

# What argparse and typing bring is Python's own; the package itself and its
# room are packages without code.
OURS = {'nova_ext_sched', 'nova_ext_sched.osc', 'nova_ext_sched.osc.plugin'}

_IMPORTED = """
import sys
before = set(sys.modules)
import nova_ext_sched.osc.plugin
print(*sorted(set(sys.modules) - before))
"""


def run(*command):
    how = {'check': True, 'capture_output': True, 'text': True}
    env = os.environ | {'PYTHONWARNINGS': 'default'}
    return subprocess.run(command, timeout=120, env=env, **how)


class PluginTest(unittest.TestCase):
    def test_it_imports_nothing_but_python(self):
        done = run(sys.executable, '-W', 'error', '-c', _IMPORTED)
        imported = set(done.stdout.split())
        self.assertLessEqual(OURS, imported)
        found = {
            name
            for name in imported - OURS
            if name.partition('.')[0] not in sys.stdlib_module_names
        }
        self.assertEqual(set(), found)

    def test_openstack_warns_of_nothing_of_ours(self):
        openstack = os.path.join(os.path.dirname(sys.executable), 'openstack')
        done = run(openstack, '--version')
        self.assertIn('openstack', done.stdout)
        self.assertNotIn('EventletDeprecationWarning', done.stderr)
        self.assertNotIn('nova_ext_sched', done.stderr)

    def test_the_client_is_that_of_the_cloud(self):
        region = object()
        manager = types.SimpleNamespace(
            sdk_connection=types.SimpleNamespace(config=region)
        )
        with mock.patch.object(
            placement.PlacementClient, 'from_region'
        ) as from_region:
            self.assertIs(
                from_region.return_value, plugin.make_client(manager)
            )
        from_region.assert_called_once_with(region)
