# SPDX-License-Identifier: Apache-2.0

"""A cloud of a test in a file, asked in a process of its own."""

import functools
import json
import os
import pathlib
import subprocess
import sys

import fixtures
from nova.tests import fixtures as nova_fixtures

from nova_ext_sched.cmd import save
from tests.functional import explain

# Not by its name: its package brings nova's tests, and with them eventlet.
_CHILD = pathlib.Path(__file__).with_name('saved_child.py')

#: The attribute ``together`` of classes that ask: one fork runs them all
#: (:mod:`tests.forks`), so that what answers is started once.
TOGETHER = 'saved'

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
    question = {
        'environ': {**os.environ},
        'folder': os.getcwd(),
        'path': [one for one in sys.path if one],
        'weights': weights,
        'commands': commands,
    }
    child = _child()
    try:
        child.stdin.write(f'{json.dumps(question)}\n')
        child.stdin.flush()
        line = child.stdout.readline()
    except BaseException:
        # A later question must not get the answer to this one.
        _end(child)
        raise
    if not line:
        _end(child)
        raise AssertionError('the process has ended')
    answers, said = json.loads(line)
    assert answers is not None, said
    return [explain.Output(*one) for one in answers]


@functools.cache
def _child():
    """Start what answers, once: it imports nova.

    It ends with this process, when its standard input does.
    """
    return subprocess.Popen(
        [sys.executable, '-W', 'ignore', _CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _end(child):
    _child.cache_clear()
    child.kill()
    child.wait()


def strip(document):
    """Return a document without what may differ."""
    return {
        key: value for key, value in document.items() if key not in DIFFERENT
    }
