# SPDX-License-Identifier: Apache-2.0

"""A cloud of a test in a file, asked in a process of its own."""

import json
import pathlib
import subprocess
import sys

import fixtures
from nova.tests import fixtures as nova_fixtures

from nova_ext_sched.cmd import save
from tests.functional import explain

# Not by its name: its package brings nova's tests, and with them eventlet.
_CHILD = pathlib.Path(__file__).with_name('saved_child.py')

#: Keys of documents that differ between a cloud and its file.
DIFFERENT = ('time', 'command', 'origin')


class Saved(fixtures.Fixture):
    """The cloud of this process in a file.

    :param args: of save
    """

    def __init__(self, *args):
        super().__init__()
        self._args = args

    def _setUp(self):
        folder = self.useFixture(fixtures.TempDir()).path
        self.path = pathlib.Path(folder, 'cloud.json.gz')
        self.said = explain.call_plain(
            save.Save, 'save', str(self.path), *self._args
        )

    def ask(self, *commands):
        """Return what commands answer, each a list of words."""
        return ask(
            [[*one, '--from', str(self.path)] for one in commands],
            read_weights(),
        )


def read_weights():
    """Return the weights of hosts, by name."""
    # nova's fixture puts a mock there.
    get = nova_fixtures.HostNameWeigher.get_weights
    return getattr(get, 'return_value', {})


def ask(commands, weights=None):
    """Run commands in a process without a cloud; return what they wrote.

    :param weights: of hosts, where nova's weigher of tests is on
    """
    asked = {
        'path': [one for one in sys.path if one],
        'weights': weights,
        'commands': commands,
    }
    ended = subprocess.run(
        [sys.executable, '-W', 'ignore', _CHILD],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0 and ended.stdout, ended.stderr
    return [explain.Output(*one) for one in json.loads(ended.stdout)]


def strip(document):
    """Return a document without what may differ."""
    return {
        key: value for key, value in document.items() if key not in DIFFERENT
    }
