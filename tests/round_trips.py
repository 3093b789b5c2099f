# SPDX-License-Identifier: Apache-2.0

"""A cloud's answers beside those of the simulator on its export."""

import json
import os
import pathlib
import subprocess
import sys

from nova_ext_sched.cmd.simulate import check
from nova_ext_sched.cmd.simulate import document

ROOT = pathlib.Path(__file__).parents[1]

# A simulator's process that gives the documents of its explanations as
# reasons.
_WORKER = """
import json
from nova_ext_sched.cmd.simulate import worker
import nova.tests.functional
from nova_ext_sched.cmd.simulate import explanations
explanations.describe = lambda document: [json.dumps(document)]
worker.main()
"""


def read(test, text):
    """Return the document of a text, which the simulator takes."""
    data = document.parse(text)
    test.assertEqual([], [str(one) for one in check.findings(data)])
    return data


def simulate(test, data):
    """Run a scenario in a process of its own; return each step's outcome."""
    request = {
        'data': data,
        'plain': False,
        'log_file': None,
        'log_level': 'INFO',
    }
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', _WORKER],
        input=json.dumps(request),
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
        capture_output=True,
        text=True,
    )
    result = json.loads(done.stdout.splitlines()[-1])
    test.assertEqual({'run'}, result.keys(), result)
    return result['run']['outcomes']


def add_steps(data, requests):
    """Put requests into a scenario, as steps independent of each other.

    :param requests: fields of a boot step, each with its project
    """
    data['independent'] = True
    data['projects'] = sorted(
        {*data.get('projects', ()), *(step['project'] for step in requests)}
    )
    data['steps'] = [
        {'boot': f'new-{number}', **step}
        for number, step in enumerate(requests)
    ]


def compare(test, expected, data, words):
    """Compare a cloud's explanations with those of the simulator.

    :param expected: a document of explain for each step; None where the
        server is to land where the step expects it
    :param words: of the scenario, by what the cloud calls the same
    """
    outcomes = simulate(test, data)
    for wanted, outcome, step in zip(
        expected, outcomes, data['steps'], strict=True
    ):
        got = json.loads(outcome['reasons'][0])
        if wanted is None:
            test.assertEqual(step['expect'], got['answer']['best'])
            continue
        test.assertEqual(
            sorted(
                words.get(one['host'], one['host'])
                for one in wanted['hosts']
                if one['left']
            ),
            sorted(one['host'] for one in got['hosts'] if one['left']),
            step,
        )
        test.assertEqual(_answer(wanted, words), _answer(got), step)
        # Members of groups are dealt by names.
        if 'group' not in step or not words:
            test.assertEqual(
                [
                    words.get(one['host'], one['host'])
                    for one in wanted['order']
                ],
                [one['host'] for one in got['order']],
                step,
            )


def _answer(explained, words=None):
    """Return what an explanation says, by the words of names."""

    def rename(cause):
        key, equals, name = cause.partition('=')
        return key + equals + (words or {}).get(name, name)

    answer = explained['answer']
    return (
        answer['finds_host'],
        len(explained['hosts']),
        sorted(
            (rename(one['cause']), one['hosts']) for one in answer['reasons']
        ),
        answer['end'] and answer['end']['cause'],
    )
