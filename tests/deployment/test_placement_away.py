# SPDX-License-Identifier: Apache-2.0

"""A placement that is slow, silent or away, and requests of server groups.

Where requests of a group are refused although placement answered in the end,
plain nova is better off without this package. Run by hand, this module
restarts placement in the middle of bursts, with the package and without in
turn, and prints how many servers were lost, as CSV::

    python -m tests.deployment.test_placement_away --help
"""

import argparse
import collections
import concurrent.futures
import contextlib
import csv
import re
import sys
import time

import psutil
import testtools

from tests.deployment import base
from tests.deployment import hanging
from tests.deployment import test_group_race

RACKS = test_group_race.Case('racks', 16, racks=(4, 4), limit=64)
# oslo.service's, in the tests.
GRACE = ('DEFAULT', 'graceful_shutdown_timeout')


def options(setup='weigher', **more):
    """Return whether our filters are loaded, and options of nova.conf."""
    ours, config = test_group_race.options(RACKS, setup, 2)
    # A nova-compute that a test holds up is not down.
    config['DEFAULT', 'service_down_time'] = '600'
    return ours, config | more


class Burst:
    """Requests that the test does not wait for."""

    def __init__(self, cloud, groups, count, limit=RACKS.limit):
        self._cloud = cloud
        pool = concurrent.futures.ThreadPoolExecutor(1)
        hints = {'max_server_per_failure_domain': [str(limit)]}
        self._created = pool.submit(
            cloud.client, ['start_members', groups, count, hints]
        )
        pool.shutdown(wait=False)

    def create(self):
        """Wait until nova-api has answered; return the servers' UUIDs."""
        return self._created.result()[0]

    def landed(self, seconds=300):
        """Return the host of each server, or its fault."""
        return self._cloud.client(['landed', self.create(), seconds])[0]


class AwayTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(base.Deployment(tuple(RACKS.hosts)))
        test_group_race.create_racks(self.cloud, RACKS, 'failure_domain')

    @contextlib.contextmanager
    def under_way(self, group, count=2):
        """Let nova-compute claim nothing; yield members that wait for it."""
        with contextlib.ExitStack() as stack:
            for process in self.cloud.nova.processes.values():
                stack.enter_context(self.cloud.processes.frozen(process))
            servers = Burst(self.cloud, [group], count).create()
            self.cloud.processes.wait(
                lambda: self.count_allocated() >= count, 'the first members'
            )
            yield servers

    def count_allocated(self):
        return self.cloud.mariadb.count('placement.consumers')

    def assertActive(self, places):
        self.assertEqual([], [one for one in places if one[:4] != 'host'])

    def assertNotLogged(self, text):
        lines = self.cloud.log().splitlines()
        self.assertEqual([], [line for line in lines if text in line])


class PlacementAwayTestCase(AwayTest):
    def test_silent_for_longer_than_a_database_may_be(self):
        """Nobody is refused, and nobody waits when it answers again."""
        ours, config = options()
        with self.cloud.scheduler(config, filters=ours):
            first, other = self.cloud.client(['groups', 16, 2])[0]
            with self.under_way(first):
                with self.cloud.processes.frozen(self.cloud.placement.process):
                    burst = Burst(self.cloud, [first], 8)
                    burst.create()
                    time.sleep(35)
                    late = Burst(self.cloud, [first, other], 8)
                    late.create()
                    time.sleep(2)
                begin = time.monotonic()
                # Each has its allocation before nova-compute goes on.
                self.cloud.processes.wait(
                    lambda: self.count_allocated() >= 18, 'allocations'
                )
                self.assertLess(time.monotonic() - begin, 45)
            self.assertActive(burst.landed() + late.landed())
            self.assertNotLogged('cannot decide')

    def test_one_get_that_is_never_answered(self):
        """64 requests of 16 other groups become ACTIVE."""
        ours, config = options()
        proxy = hanging.Hanging(self.cloud.placement.port)
        config['placement', 'endpoint'] = f'http://127.0.0.1:{proxy.port}'
        with self.cloud.scheduler(config, filters=ours):
            first, *others = self.cloud.client(['groups', 16, 17])[0]
            with self.under_way(first) as members:
                proxy.paths = tuple(
                    f'GET /allocations/{uuid}' for uuid in members
                )
                stopped = Burst(self.cloud, [first], 1)
                self.cloud.processes.wait(
                    lambda: len(proxy.held) >= 2, 'a GET that hangs'
                )
            places = Burst(self.cloud, others, 64).landed()
            self.assertActive(places)
            [place] = self.cloud.client(['landed', stopped.create(), 0])[0]
            self.assertEqual('ERROR: timed out', place)
            self.assertNotLogged('cannot decide')
            # Of our threads, which have no request of nova's. nova's own are
            # sometimes more than its connections.
            self.assertNotLogged('[-] Connection pool is full')

    def test_a_scheduler_that_is_told_to_stop(self):
        """It ends in time, although GETs and requests wait.

        Under eventlet plain nova's own requests keep it for minutes.
        """
        ours, config = options()
        config[GRACE] = '15'
        self.cloud.nova.scheduler_variables = {
            'OS_NOVA_DISABLE_EVENTLET_PATCHING': '1'
        }
        with self.cloud.scheduler(config, filters=ours):
            [group] = self.cloud.client(['groups', 16, 1])[0]
            with self.under_way(group):
                with self.cloud.processes.frozen(self.cloud.placement.process):
                    Burst(self.cloud, [group], 8).create()
                    time.sleep(3)
                    [process] = self.cloud.nova.scheduler_processes
                    family = [
                        psutil.Process(process.pid),
                        *psutil.Process(process.pid).children(recursive=True),
                    ]
                    process.terminate()
                    _, left = psutil.wait_procs(family, timeout=25)
                    self.assertEqual([], left)


def lose(cloud, group, count, seconds):
    """Restart placement in the middle of a burst.

    :param seconds: how long placement is away
    :returns: the faults of the servers that are lost
    """
    consumers = 'placement.consumers'
    before = cloud.mariadb.count(consumers)
    burst = Burst(cloud, [group], count)
    cloud.processes.wait(
        lambda: cloud.mariadb.count(consumers) >= before + count // 4,
        'a quarter of the burst',
    )
    with cloud.placement.away():
        time.sleep(seconds)
    places = burst.landed()
    active = [
        server
        for server, place in zip(burst.create(), places, strict=True)
        if place in cloud.hosts
    ]
    cloud.client(['remove', active])
    return collections.Counter(
        re.sub('[0-9a-f]{8}-[0-9a-f-]{27}', 'a server', place)
        for place in places
        if place not in cloud.hosts
    )


def measure(cloud, arguments):
    """Yield a row for each time that placement is away, and each setup."""
    test_group_race.create_racks(cloud, RACKS, 'failure_domain')
    lost = collections.defaultdict(list)
    for seconds in arguments.seconds:
        for _ in range(arguments.runs):
            for setup in arguments.setups:
                ours, config = options(setup)
                with cloud.scheduler(config, filters=ours):
                    [[group]] = cloud.client(['groups', RACKS.rule, 1])
                    faults = lose(cloud, group, arguments.servers, seconds)
                print(seconds, setup, dict(faults), file=sys.stderr)
                lost[seconds, setup].append(faults.total())
    for (seconds, setup), counts in lost.items():
        yield seconds, setup, ' '.join(map(str, counts)), sum(counts)


def main():
    parser = argparse.ArgumentParser(
        prog='python -m tests.deployment.test_placement_away',
        description='Restart placement in the middle of bursts of one server '
        'group, and print how many servers were lost.',
    )
    parser.add_argument('--runs', type=int, default=3)
    parser.add_argument('--servers', type=int, default=64)
    parser.add_argument(
        '--seconds', type=int, nargs='+', default=[0, 5, 20, 60], metavar='N'
    )
    parser.add_argument(
        '--setups',
        nargs='+',
        default=['nova', 'everything'],
        choices=list(test_group_race.SETUPS),
    )
    arguments = parser.parse_args()
    write = csv.writer(sys.stdout, lineterminator='\n').writerow
    write(('seconds away', 'setup', 'lost, by run', 'lost in all'))
    with base.Deployment(tuple(RACKS.hosts)) as cloud:
        for row in measure(cloud, arguments):
            write(row)
            sys.stdout.flush()


if __name__ == '__main__':
    main()
