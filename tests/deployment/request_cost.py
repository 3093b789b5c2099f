# SPDX-License-Identifier: Apache-2.0

"""What a request costs nova-scheduler, with the package and without.

Processor time of a scheduler's workers, and time by the clock, of requests of
a group of 200 servers on 8 hosts in 4 racks, and of others; nova's default
filters, then everything of ours on beside them, in turn. Prints both and their
ratio, as CSV::

    python -m tests.deployment.request_cost --help
"""

import argparse
import collections
import csv
import dataclasses
import statistics
import sys

from tests.cloud import nova
from tests.deployment import base
from tests.deployment import test_group_race

ISOLATED = 100
MEMBERS = 200
TRAIT = 'CUSTOM_ISOLATED'
PLACE = test_group_race.Case('group', MEMBERS, racks=(2, 2, 2, 2))


@dataclasses.dataclass(frozen=True)
class Case:
    """Some requests.

    :ivar isolated: whether there are isolated aggregates
    :ivar grouped: whether they are of the group
    :ivar limited: whether it has a limit of failure domains
    :ivar at_once: how many are under way at the same time
    """

    name: str
    isolated: bool = False
    grouped: bool = True
    limited: bool = False
    at_once: int = 1


CASES = (
    Case('nothing isolated', grouped=False),
    Case('a group of 200'),
    Case('a limit', limited=True),
    Case('100 isolated', isolated=True, grouped=False),
    Case('a limit, 100 isolated', isolated=True, limited=True),
    Case('a limit, 100 isolated, 40 at once', True, limited=True, at_once=40),
)


def options(setup):
    """Return whether our filters are loaded, and options of nova.conf."""
    grouped = (
        nova.EVERYTHING
        if setup == 'everything'
        else {'filter_scheduler': {'enabled_filters': ','.join(nova.ENABLED)}}
    )
    return setup == 'everything', {
        (group, name): value
        for group, values in grouped.items()
        for name, value in values.items()
    }


def create_group(cloud, members):
    """Fill the group; return one of its servers."""
    ours, config = options('nova')
    with cloud.scheduler(config, filters=ours):
        [[group]] = cloud.client(['groups', MEMBERS, 1])
        for start in range(0, members, 40):
            count = min(40, members - start)
            [servers] = cloud.client(['start_members', [group], count, {}])
            [places] = cloud.client(['landed', servers])
            if {*places} - {*cloud.hosts}:
                raise RuntimeError(f'the group is not complete: {places}')
    return servers[0]


def ask(cloud, case, server, count):
    """Send requests; return milliseconds, of CPU and of the clock, of one."""
    hints = {'max_server_per_failure_domain': ['1000']} if case.limited else {}
    before = test_group_race.read_cpu(cloud)
    [seconds] = cloud.client(
        ['select', server, case.grouped, hints, count, case.at_once]
    )
    spent = test_group_race.read_cpu(cloud) - before
    return 1000 * spent / count, 1000 * seconds / count


def measure(cloud, arguments):
    """Yield a row of the table for each case."""
    test_group_race.create_racks(cloud, PLACE, 'failure_domain')
    server = create_group(cloud, arguments.members)
    cases = [one for one in CASES if one.name in arguments.cases]
    taken = collections.defaultdict(list)
    for isolated in sorted({one.isolated for one in cases}):
        if isolated:
            cloud.client(
                ['traits', cloud.hosts[:1], [TRAIT]],
                ['aggregates', 'isolated', ISOLATED, TRAIT],
            )
        chosen = [one for one in cases if one.isolated == isolated]
        for _ in range(arguments.rounds):
            for setup in ('nova', 'everything'):
                ours, config = options(setup)
                with cloud.scheduler(config, filters=ours):
                    ask(cloud, chosen[-1], server, 40)
                    for case in chosen:
                        took = ask(cloud, case, server, arguments.requests)
                        print(setup, case.name, took, file=sys.stderr)
                        taken[case.name, setup].append(took)
    for case in cases:
        row = [case.name]
        for times in zip(
            *(
                map(
                    statistics.median, zip(*taken[case.name, one], strict=True)
                )
                for one in ('nova', 'everything')
            ),
            strict=True,
        ):
            row += [f'{one:.1f}' for one in times]
            row.append(f'{times[1] / times[0]:.2f}')
        yield row


def main():
    parser = argparse.ArgumentParser(
        prog='python -m tests.deployment.request_cost',
        description='Measure what a request costs with nova alone and with '
        'everything of this package on, and print it as CSV.',
    )
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--requests', type=int, default=80)
    parser.add_argument('--members', type=int, default=MEMBERS)
    names = [one.name for one in CASES]
    parser.add_argument(
        '--cases', nargs='+', default=names, choices=names, metavar='NAME'
    )
    arguments = parser.parse_args()
    write = csv.writer(sys.stdout, lineterminator='\n').writerow
    write(
        ['case']
        + [
            f'{what}, ms, {of}' if of != 'ratio' else f'{what}, ratio'
            for what in ('CPU', 'clock')
            for of in ('nova', 'everything', 'ratio')
        ]
    )
    with base.Deployment(tuple(PLACE.hosts)) as cloud:
        # A line at DEBUG is as dear as a filter.
        cloud.options['scheduler1.conf'] = {'DEFAULT': {'debug': 'False'}}
        for row in measure(cloud, arguments):
            write(row)
            sys.stdout.flush()


if __name__ == '__main__':
    main()
