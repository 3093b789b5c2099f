# SPDX-License-Identifier: Apache-2.0

"""Output that the documentation shows: what a command printed, unedited.

A test runs the command and compares. What differs from run to run is
replaced by something of the same length; the rules stand here alone.
NOVA_EXT_SCHED_TEST_WRITE=1 writes the files anew in place of comparing.
"""

import os
import pathlib
import re

PAGES = pathlib.Path(__file__).parents[1] / 'doc' / 'source'

WIDTH = 80

_UUID = re.compile(r'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_TIME = re.compile(r'20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d')

_UUIDS = [f'{n}d1f52c6-6b3a-4d0c-9c39-0f4c1c9a7e55' for n in range(1, 10)]
# That of nova's tests is no UUID.
_PROJECT = '6f70656e737461636b20342065766572'
_SHOWN_TIME = '2026-11-05T01:10:42'


def check(test, name, text, project=''):
    """Compare what a command printed with what the documentation shows.

    :param test: a test case
    :param name: of the file, below ``doc/source``
    :param text: the command after ``$``, and its output
    :param project: the ID of the project in it
    """
    for line in text.splitlines():
        if not line.startswith('$'):
            test.assertLessEqual(len(line), WIDTH, line)
    # A UUID that wraps would hide here; none does.
    seen = {}
    text = _UUID.sub(
        lambda match: seen.setdefault(match[0], _UUIDS[len(seen)]), text
    )
    text = _TIME.sub(_SHOWN_TIME, text)
    if project:
        text = text.replace(project, _PROJECT)
    path = PAGES / name
    if os.environ.get('NOVA_EXT_SCHED_TEST_WRITE'):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    test.assertEqual(path.read_text(), text)
