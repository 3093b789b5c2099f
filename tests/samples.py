# SPDX-License-Identifier: Apache-2.0

"""Output that the documentation shows: what a command printed, unedited.

Each sample is a file below ``doc/source``: commands after ``$``, and what they
printed. Pages include it; the README has a copy. A test runs the commands and
compares; tests/unit/test_documentation_samples.py holds that each block with
output is such a sample. What differs from run to run is replaced by something
of the same length; the rules stand here alone. A page that shows a sample with
the directive ``picture`` has it in colour, too, from a file beside it.
NOVA_EXT_SCHED_TEST_WRITE=1 writes the files anew in place of comparing.
"""

import functools
import importlib.metadata
import os
import pathlib
import re
import shlex
import subprocess
import sys

from tests import documentation
from tests import pictures

PAGES = pathlib.Path(__file__).parents[1] / 'doc' / 'source'

WIDTH = 80

_UUID = re.compile(r'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_TIME = re.compile(r'20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d')
# How long moves take is of the machine.
_LEFT = re.compile(r'(?<=about )\d+ seconds?(?= left)')
_VERSION = re.compile(r'("(nova|nova-ext-sched)": )"[^"]+"')
# A line of JSON is as long as it is.
_JSON = re.compile(r' *"')
_PASTED = re.compile(r' +(openstack|nova-manage|nova-ext-sched) ')

_UUIDS = [f'{n}d1f52c6-6b3a-4d0c-9c39-0f4c1c9a7e55' for n in range(1, 10)]
# That of nova's tests is no UUID.
_PROJECT = '6f70656e737461636b20342065766572'
_SHOWN_TIME = '2026-11-05T01:10:42'
_VERSIONS = {'nova': '34.0.0', 'nova-ext-sched': '1.0.0'}


def compares(*names):
    """Declare which samples a test compares; it fails if it leaves one out.

    :param names: of the files, below ``doc/source``
    """

    def decorate(method):
        @functools.wraps(method)
        def run(test, *args, **kwargs):
            test.samples_left = {*names}
            method(test, *args, **kwargs)
            test.assertEqual(set(), test.samples_left)

        return run

    return decorate


@functools.cache
def in_colour():
    """Return the names of the samples that pages show in colour."""
    return {
        str((path.parent / match['path']).relative_to(PAGES))
        for path in PAGES.rglob('*.rst')
        for match in documentation.PICTURE.finditer(path.read_text())
    }


def run(test, command, folder, *hidden, columns, status=0):
    """Run a command as it is typed; return it after ``$``, and its output.

    :param test: a test case
    :param folder: where it runs
    :param hidden: further arguments, of which the sample says nothing
    :param columns: the width of the terminal
    :param status: the exit status that it must have
    """
    program, *arguments = shlex.split(command.replace('\\\n', ''))
    done = subprocess.run(
        [pathlib.Path(sys.executable).parent / program, *arguments, *hidden],
        cwd=folder,
        env=os.environ | {'COLUMNS': columns, 'PYTHONWARNINGS': 'ignore'},
        capture_output=True,
        text=True,
    )
    test.assertEqual(status, done.returncode, done.stderr)
    return f'$ {command}\n{done.stdout}{done.stderr}'


def skip_other_releases(test):
    """Skip a test where another nova runs than the samples are from."""
    if not importlib.metadata.version('nova').startswith('34.'):
        test.skipTest('the samples are from nova 34')


def check(test, name, text, project='', width=WIDTH):
    """Compare what a command printed with what the documentation shows.

    :param test: a test case; :func:`compares` names the sample
    :param name: of the file, below ``doc/source``
    :param text: the command after ``$``, and its output, with escape sequences
        where :func:`in_colour` has the name
    :param project: the ID of the project in it
    :param width: what no line of the output exceeds, but lines of JSON and
        commands that are pasted
    """
    test.assertIn(name, test.samples_left)
    test.samples_left.remove(name)
    block = documentation.Block(name, 1, 'console', _without_colour(text))
    for line in documentation.output(block):
        if not (_JSON.match(line) or _PASTED.match(line)):
            test.assertLessEqual(len(line), width, line)
    # A UUID that wraps would hide here; none does.
    seen = {}
    text = _UUID.sub(
        lambda match: seen.setdefault(match[0], _UUIDS[len(seen)]), text
    )
    text = _LEFT.sub('3 seconds', _TIME.sub(_SHOWN_TIME, text))
    text = _VERSION.sub(
        lambda match: f'{match[1]}"{_VERSIONS[match[2]]}"', text
    )
    if project:
        text = text.replace(project, _PROJECT)
    files = {PAGES / name: _without_colour(text)}
    if name in in_colour():
        files[(PAGES / name).with_suffix('.svg')] = pictures.draw(text, width)
    for path, written in files.items():
        if os.environ.get('NOVA_EXT_SCHED_TEST_WRITE'):
            path.parent.mkdir(exist_ok=True)
            path.write_text(written)
        test.assertEqual(path.read_text(), written)


def _without_colour(text):
    return re.sub(r'\x1b\[[0-9;]*m', '', text)
