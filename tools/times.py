# SPDX-License-Identifier: Apache-2.0

"""How long tests take, so that stestr's workers end together.

stestr gives the class that takes longest to the worker that has least to do,
by the times of earlier runs. A fresh clone has none, nor has a class that was
moved. tests/times.json stands in: seconds that a test takes, by folder and by
class. A class has a line if its folder's is wrong for it by a second or more.

After a run of all tests, this writes the table anew:

    .tox/nova34/bin/python tools/times.py
"""

import collections
import datetime
import json
import pathlib
import statistics
import sys

from stestr.repository import abstract
from stestr.repository import util
import subunit
import testtools

# stestr's repository is beside the Python that runs the tests: environments
# that run at once have one each.
PLACE = sys.prefix
TABLE = pathlib.Path(__file__).parent.parent / 'tests' / 'times.json'
# Seconds by which the folder's line is wrong for a class that has its own.
LISTED = 1
# Seconds for a test of a folder that the table does not know.
UNKNOWN = 1
START = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)


def folder_of(test_id):
    """Return ``unit`` for a test in a folder of tests/unit."""
    return test_id.split('.')[1]


def class_of(test_id):
    """Return ``unit.test_module.Class``, which stays when a module moves.

    The two classes that share such a name share their line, too.
    """
    module, name = test_id.split('(')[0].split('.')[-3:-1]
    return f'{folder_of(test_id)}.{module}.{name}'


def of_run(stream):
    """Return the seconds of each test of a run.

    They are counted from the end of the test that its worker ran before, which
    includes setUpClass.

    :param stream: the run as subunit, version 2
    :return: pairs of a test's ID and seconds
    """
    workers = collections.defaultdict(list)

    def add(test):
        start, stop = test['timestamps']
        # A set-up of a class that fails is told as one of its own.
        if start and stop and test['id'].startswith('tests.'):
            workers[frozenset(test['tags'])].append((start, stop, test['id']))

    result = testtools.StreamToDict(add)
    result.startTestRun()
    subunit.ByteStreamToStreamResult(stream).run(result)
    result.stopTestRun()
    for tests in workers.values():
        tests.sort()
        previous = tests[0][0]
        for _, stop, test_id in tests:
            yield test_id, (stop - previous).total_seconds()
            previous = stop


def table(seconds):
    """Return the table of these tests.

    :param seconds: pairs of a test's ID and seconds
    :return: seconds that a test takes, by class or folder
    """
    folders = collections.defaultdict(list)
    classes = collections.defaultdict(list)
    for test_id, taken in seconds:
        folders[folder_of(test_id)].append(taken)
        classes[class_of(test_id)].append(taken)
    means = {name: statistics.mean(taken) for name, taken in folders.items()}
    for name, taken in classes.items():
        mean = means[name.split('.')[0]]
        if abs(sum(taken) - len(taken) * mean) >= LISTED:
            means[name] = statistics.mean(taken)
    return {name: round(mean, 3) for name, mean in sorted(means.items())}


def expected(known, test_id):
    """Return the seconds that the table has for a test."""
    folder = known.get(folder_of(test_id), UNKNOWN)
    return known.get(class_of(test_id), folder)


def repository():
    """Return stestr's repository, a new one if there is none."""
    try:
        return util.get_repo_open(repo_url=PLACE)
    except abstract.RepositoryNotFound:
        return util.get_repo_initialise(repo_url=PLACE)


def teach(stored, test_ids):
    """Give stestr the times of tests that it has not run here.

    :param stored: stestr's repository
    :param test_ids: the tests that will run
    """
    known = json.loads(TABLE.read_text())
    unknown = stored.get_test_times(set(test_ids))['unknown']
    if not unknown:
        return
    # As a run of these tests, which is then forgotten; the times stay.
    inserter = stored.get_inserter()
    inserter.startTestRun()
    for test_id in unknown:
        taken = datetime.timedelta(seconds=expected(known, test_id))
        inserter.status(test_id, 'inprogress', timestamp=START)
        inserter.status(test_id, 'success', timestamp=START + taken)
    inserter.stopTestRun()
    stored.remove_run_id(str(inserter.get_id()))


def main():
    run = repository().get_latest_run()
    written = table(of_run(run.get_subunit_stream()))
    TABLE.write_text(json.dumps(written, indent=0) + '\n')
    print(f'{TABLE.name}: {len(written)} lines')


if __name__ == '__main__':
    main()
