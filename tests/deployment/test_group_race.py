# SPDX-License-Identifier: Apache-2.0

"""Clients that fill one server group at the same time, in a deployment.

What must hold on every machine is the limit, and that no server is lost; with
the weigher and room for exactly as many servers as are created, all become
ACTIVE. Run by hand, this module measures what the documentation shows, and
prints it as CSV::

    python -m tests.deployment.test_group_race --help
"""

import argparse
import collections
import contextlib
import csv
import dataclasses
import os
import pathlib
import re
import sys

import testtools

from tests.deployment import base

ANTI_AFFINITY = 'ServerGroupAntiAffinityFilter'
NOVA_WEIGHERS = 'nova.scheduler.weights.all_weighers'
OUR_WEIGHERS = 'nova_ext_sched.weighers.all_weighers'
#: What nova's documentation recommends against collisions.
SHUFFLED = {
    ('filter_scheduler', 'shuffle_best_same_weighed_hosts'): 'True',
    ('filter_scheduler', 'host_subset_size'): '8',
}
#: By name: whether our filters are loaded, and options.
SETUPS = {
    'nova': (False, {}),
    'nova-shuffled': (False, SHUFFLED),
    # What makes its soft policy decide before memory and CPU.
    'nova-soft': (
        False,
        {
            (
                'filter_scheduler',
                'soft_anti_affinity_weight_multiplier',
            ): '100000'
        },
    ),
    'weigher': (
        True,
        {
            (
                'filter_scheduler',
                'weight_classes',
            ): f'{NOVA_WEIGHERS},{OUR_WEIGHERS}'
        },
    ),
}
# What the package costs at most.
SETUPS['everything'] = (
    True,
    {
        **SETUPS['weigher'][1],
        ('nova_ext_sched', 'enable_isolated_aggregate_filtering'): 'True',
        (
            'nova_ext_sched',
            'placement_req_required_member_prefix',
        ): 'reservation:',
        (
            'nova_ext_sched',
            'placement_req_default_forbidden_member_prefix',
        ): 'reservation:',
    },
)
# Every preference; the hosts differ by PREFERRED and by their sizes.
SETUPS['preferences'] = (
    True,
    {
        **SETUPS['everything'][1],
        ('nova_ext_sched', 'weighers'): (
            'ServerGroupRoundRobinWeigher,RelativeRoomWeigher,'
            'PreferredAggregatesWeigher,OwnHostsWeigher,SpecialHostsWeigher,'
            'LicencesWeigher'
        ),
        ('nova_ext_sched', 'licence_os_types'): 'windows,linux',
    },
)
#: Aggregates whose hosts weighers of preferences put first or last.
PREFERRED = (
    ('new', ['host1', 'host2'], {'preference': '1'}),
    ('leaves', ['host3'], {'preference': '-1'}),
    ('gpus', ['host4'], {'special': 'VGPU'}),
)


@dataclasses.dataclass(frozen=True)
class Case:
    """A group, the hosts that it fills, and how.

    :ivar rule: the group's max_server_per_host
    :ivar sizes: for each host how many servers it has room for; None for many
    :ivar down: how many hosts are down, of the last
    :ivar racks: for each rack how many hosts it has; empty for no racks
    :ivar limit: max_server_per_failure_domain
    :ivar spare: how many servers less than there is room for
    :ivar at_once: how many servers one request creates beside the others
    :ivar policy: of the group; a soft one has no rule
    :ivar groups: how many groups are filled at once, on the same hosts
    :ivar churn: how many servers are deleted when the group is full, and
        created anew
    """

    name: str
    rule: int = 3
    sizes: tuple[int | None, ...] = (None,) * 8
    down: int = 0
    racks: tuple[int, ...] = ()
    limit: int = 0
    spare: int = 0
    at_once: int = 0
    policy: str = 'anti-affinity'
    groups: int = 1
    churn: int = 0

    @property
    def hosts(self):
        return [f'host{number}' for number in range(1, len(self.sizes) + 1)]

    @property
    def domains(self):
        """Return the rack of each host."""
        racks = [
            f'rack{n}'
            for n, size in enumerate(self.racks)
            for _ in range(size)
        ]
        return dict(zip(self.hosts, racks, strict=False))

    @property
    def servers(self):
        """Return how many servers are created."""
        up = len(self.sizes) - self.down
        room = {
            host: self.rule if size is None else min(self.rule, size)
            for host, size in zip(self.hosts[:up], self.sizes, strict=False)
        }
        if not self.racks:
            return sum(room.values()) - self.spare
        by_rack = collections.Counter()
        for host, rack in self.domains.items():
            by_rack[rack] += room.get(host, 0)
        return sum(min(self.limit, n) for n in by_rack.values()) - self.spare

    @property
    def requests(self):
        single = [1] * (self.servers - self.at_once)
        if not self.at_once:
            return single
        middle = len(single) // 2
        return [*single[:middle], self.at_once, *single[middle:]]


CASES = [
    Case('24 on 8 hosts'),
    Case('60 on 20 hosts', sizes=(None,) * 20),
    # As many as a scheduler has threads.
    Case('64 on 8 hosts', 8),
    Case('64 in racks of 4, 4, limit 32', 8, racks=(4, 4), limit=32),
    # What a request costs, with and without a limit of failure domains.
    Case('200 on 8 hosts', 100, spare=600),
    Case(
        '200 in racks of 4, 4, limit 400',
        100,
        racks=(4, 4),
        limit=400,
        spare=600,
    ),
    Case('hosts of different size', sizes=(1, 2, 2, 3, 3, 4, 4, 5, 5, None)),
    Case('one of 9 hosts is down', sizes=(None,) * 9, down=1),
    Case('multi-create of 12 beside 12', at_once=12),
    Case(
        'racks of 3, 3, 3, limit 4', 9, (None,) * 9, racks=(3, 3, 3), limit=4
    ),
    Case(
        'racks of 5, 4, 3, no room to spare',
        1,
        (None,) * 12,
        racks=(5, 4, 3),
        limit=4,
    ),
    Case(
        'racks of 5, 4, 3, 3 to spare',
        3,
        (None,) * 12,
        racks=(5, 4, 3),
        limit=4,
        spare=3,
    ),
    Case('24 on 8 hosts, 8 anew', churn=8),
    Case('hosts for 1 and 3, rule 2', 2, (1, 1, 1, 1, 3, 3, 3, 3)),
    Case('hosts for 1 and 3, 4 anew', 2, (1, 1, 1, 1, 3, 3, 3, 3), churn=4),
    Case('racks with room for 4, 4, 2', 9, (2,) * 5, racks=(2, 2, 1), limit=4),
    Case(
        'racks with room for 4, 4, 2, 3 anew',
        9,
        (2,) * 5,
        racks=(2, 2, 1),
        limit=4,
        churn=3,
    ),
    Case('multi-create of 12 beside 12, 8 anew', at_once=12, churn=8),
    *(
        Case(
            f'soft policy, {name}',
            rule,
            spare=8 * rule - servers,
            at_once=at_once,
            policy='soft-anti-affinity',
            churn=servers // 3,
        )
        for name, servers, rule, at_once in (
            ('3 on 8 hosts, 1 anew', 3, 1, 0),
            ('5 on 8 hosts, 1 anew', 5, 1, 0),
            ('24 on 8 hosts, 8 anew', 24, 3, 0),
            ('multi-create of 12 beside 12, 8 anew', 24, 3, 12),
        )
    ),
    Case('two groups of 24', groups=2),
    Case('two groups of 24, 8 anew', groups=2, churn=8),
]
NAMES = {case.name: case for case in CASES}


class Run:
    """What became of the servers of one fill, of one group."""

    def __init__(self, case, landed, sent_on):
        places = collections.Counter(
            place for place in landed if place in case.hosts
        )
        self.on = dict(places)
        self.active = places.total()
        self.sent_on = sent_on
        self.on_host = max(places.values(), default=0)
        up = case.hosts[: len(case.sizes) - case.down]
        #: How many more the fullest host has than the emptiest.
        self.uneven = self.on_host - min(places[host] for host in up)
        racks = collections.Counter()
        for host, count in places.items():
            racks[case.domains.get(host)] += count
        self.by_rack = '/'.join(
            str(racks[f'rack{number}']) for number in range(len(case.racks))
        )
        #: Servers above the limit of their rack.
        self.above = sum(
            max(0, racks[f'rack{number}'] - case.limit)
            for number in range(len(case.racks))
        )
        self.faults = collections.Counter(
            # The same fault of several servers is one.
            re.sub('[0-9a-f]{8}-[0-9a-f-]{27}', 'a server', place)
            for place in landed
            if place not in case.hosts
        )


def prepare(cloud, case, known):
    """Make the hosts what a case says; ``known`` has what was done before."""
    calls = []
    up = len(case.sizes) - case.down
    for number, host in enumerate(cloud.hosts):
        size = case.sizes[number] if number < len(case.sizes) else None
        down = not number < up
        if known.get(host) != (size, down):
            calls += [
                ['limit_servers', host, size],
                ['force_down', host, down],
            ]
            known[host] = size, down
    if calls:
        cloud.client(*calls)


def fill(cloud, case, clients):
    """Fill new groups and return what became of their servers."""
    hints = {}
    if case.limit:
        hints['max_server_per_failure_domain'] = [str(case.limit)]
    ((landed, sent_on),) = cloud.client(
        [
            'fill_groups',
            case.policy,
            case.rule,
            case.requests,
            clients,
            hints,
            case.groups,
            case.churn,
        ]
    )
    return [Run(case, one, sent_on) for one in landed]


def options(case, setup, schedulers):
    """Return whether our filters are loaded, and options of nova.conf."""
    ours, extra = SETUPS[setup]
    enabled = ['ComputeFilter', ANTI_AFFINITY]
    if ours and case.racks:
        enabled.append('FailureDomainFilter')
    if setup in ('everything', 'preferences'):
        enabled += ['AggregateInstanceTypeFilter', 'IsolatedAggregatesFilter']
    return ours, {
        ('filter_scheduler', 'enabled_filters'): ','.join(enabled),
        ('scheduler', 'workers'): str(schedulers),
        **extra,
    }


def create_racks(cloud, case, key):
    """Create the aggregates of a case's racks; others have other keys."""
    hosts = collections.defaultdict(list)
    for host, rack in case.domains.items():
        hosts[rack].append(host)
    calls = [
        ['aggregate', f'{key} {rack}', members, {key: rack}]
        for rack, members in hosts.items()
    ]
    if calls:
        cloud.client(*calls)


def prefer(cloud):
    """Make hosts differ for weighers of preferences."""
    cloud.client(*(['aggregate', *one] for one in PREFERRED))


class GroupRaceTestCase(testtools.TestCase):
    def test_the_group_fills(self):
        case = Case('12 on 4 hosts', sizes=(None,) * 4)
        soft = dataclasses.replace(case, policy='soft-anti-affinity', churn=4)
        cloud = self.useFixture(base.Deployment(tuple(case.hosts)))
        prefer(cloud)
        ours, config = options(case, 'preferences', 2)
        with cloud.scheduler(config, filters=ours):
            (run,) = fill(cloud, case, 8)
            (even,) = fill(cloud, soft, 8)
        for one in (run, even):
            self.assertEqual((12, {}), (one.active, dict(one.faults)))
        self.assertEqual(3, run.on_host)
        self.assertLess(even.uneven, 2, even.on)


def read_cpu(cloud):
    """Return the processor time of the schedulers so far, in seconds."""
    wanted = {one.pid for one in cloud.nova.scheduler_processes}
    ticks = 0
    # A worker has a higher number than the process that started it.
    for path in sorted(
        pathlib.Path('/proc').glob('[0-9]*/stat'),
        key=lambda one: int(one.parent.name),
    ):
        with contextlib.suppress(OSError):
            # The name may have spaces and stands in parentheses.
            fields = path.read_text().rpartition(')')[2].split()
            pid, parent = int(path.parent.name), int(fields[1])
            if pid in wanted or parent in wanted:
                wanted.add(pid)
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf('SC_CLK_TCK')


def racks(runs):
    """Return the cells of the racks of some runs."""
    if not runs[0].by_rack:
        return '-', '-'
    return (
        ' '.join(run.by_rack for run in runs),
        str(sum(run.above for run in runs)),
    )


def measure(cloud, arguments):
    """Yield a row of the table for each case, setup and load."""
    known = {}
    if arguments.isolated:
        cloud.client(
            ['traits', cloud.hosts[:1], ['CUSTOM_ISOLATED']],
            ['aggregates', 'many', arguments.isolated, 'CUSTOM_ISOLATED'],
        )
    if 'preferences' in arguments.setups:
        prefer(cloud)
    for number, name in enumerate(arguments.cases):
        case = NAMES[name]
        prepare(cloud, case, known)
        # Racks of earlier cases stay, under keys of their own.
        key = f'failure_domain_{number}'
        create_racks(cloud, case, key)
        for setup in arguments.setups:
            for schedulers in arguments.schedulers:
                ours, config = options(case, setup, schedulers)
                if ours:
                    config[('nova_ext_sched', 'failure_domain_key')] = key
                for clients in arguments.clients:
                    runs, spent = [], []
                    with cloud.scheduler(config, filters=ours):
                        for _ in range(arguments.runs):
                            before = read_cpu(cloud)
                            runs += fill(cloud, case, clients)
                            spent.append(read_cpu(cloud) - before)
                    for run in runs:
                        print(run.on, dict(run.faults), file=sys.stderr)
                    yield (
                        name,
                        setup,
                        f'{schedulers}, {clients}',
                        ', '.join(
                            str(n) for n in sorted(r.active for r in runs)
                        )
                        + f' of {case.servers}',
                        str(max(run.on_host for run in runs)),
                        ', '.join(
                            str(n) for n in sorted(r.uneven for r in runs)
                        ),
                        ' '.join(str(run.sent_on) for run in runs),
                        *racks(runs),
                        ' '.join(f'{one:.1f}' for one in spent),
                    )


def main():
    parser = argparse.ArgumentParser(
        prog='python -m tests.deployment.test_group_race',
        description='Fill server groups from several clients at the same '
        'time, and print what became of the servers.',
    )
    parser.add_argument('--runs', type=int, default=5)
    parser.add_argument(
        '--schedulers', type=int, nargs='+', default=[2], metavar='N'
    )
    parser.add_argument(
        '--clients', type=int, nargs='+', default=[8], metavar='N'
    )
    parser.add_argument(
        '--isolated',
        type=int,
        default=0,
        metavar='N',
        help='create so many isolated aggregates first',
    )
    parser.add_argument(
        '--setups', nargs='+', default=list(SETUPS), choices=list(SETUPS)
    )
    parser.add_argument(
        '--cases', nargs='+', default=list(NAMES), choices=list(NAMES)
    )
    arguments = parser.parse_args()
    most = max(len(NAMES[name].sizes) for name in arguments.cases)
    hosts = tuple(f'host{number}' for number in range(1, most + 1))
    write = csv.writer(sys.stdout, lineterminator='\n').writerow
    write(
        (
            'case',
            'setup',
            'schedulers, clients',
            'ACTIVE, by run',
            'most on a host',
            'fullest minus emptiest, by run',
            'sent on',
            'racks, by run',
            'above the limit',
            'CPU of the schedulers, seconds by run',
        )
    )
    with base.Deployment(hosts) as cloud:
        for row in measure(cloud, arguments):
            write(row)
            sys.stdout.flush()


if __name__ == '__main__':
    main()
