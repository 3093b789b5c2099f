# SPDX-License-Identifier: Apache-2.0

"""Rules that change in the middle of a burst of server groups.

Each request is judged by the rules that its scheduler had when it began, and
by the metadata of aggregates for which nova-api had answered by then. Seven
groups get eight servers each; all rules have room for them.
"""

import collections
from concurrent import futures
import datetime
import json
import re
import sys

import testtools

from tests.deployment import base
from tests.deployment import test_group_race

GROUPS = 7
WAVE = 2 * GROUPS
LIMIT = 4
WORKERS = 2
RACKS = test_group_race.Case('racks', 4, racks=(4, 4))
SCHEDULERS = ('scheduler1', 'scheduler2')
#: The host that the later rules close.
CLOSED = 'host8'
TRAIT = 'CUSTOM_LICENSED'
CLOSES = {f'trait:{TRAIT}': 'required'}
#: When a scheduler begins with a request.
BEGINS = re.compile(
    r'(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) .*'
    r"Starting to schedule for instances: \['([0-9a-f-]{36})'\]"
)


def plain():
    return test_group_race.options(RACKS, 'nova', WORKERS)[1]


def rules(limit, isolation):
    """Return options of nova.conf."""
    config = test_group_race.options(RACKS, 'everything', WORKERS)[1]
    ours = {
        'max_server_per_failure_domain': str(limit),
        'enable_isolated_aggregate_filtering': str(isolation),
    }
    return config | {('nova_ext_sched', name): ours[name] for name in ours}


class Burst:
    """Members of groups, several at once.

    :ivar groups: the members of each group
    :ivar places: of each server, its host or its fault
    """

    def __init__(self, cloud, count):
        self._cloud = cloud
        [groups] = cloud.client(['groups', RACKS.rule, count])
        self.groups = {group: [] for group in groups}
        self.places = {}

    def start(self, count):
        """Create members of the groups in turn; nobody waits for them."""
        groups = [*self.groups]
        [servers] = self._cloud.client(['start_members', groups, count, {}])
        for number, server in enumerate(servers):
            self.groups[groups[number % len(groups)]].append(server)

    def land(self):
        """Wait until all have a host, or a fault."""
        servers = [one for members in self.groups.values() for one in members]
        [places] = self._cloud.client(['landed', servers, 300])
        self.places = dict(zip(servers, places, strict=True))

    def on(self, hosts):
        """Return the servers that have one of these hosts."""
        return {one for one, place in self.places.items() if place in hosts}

    def by_domain(self, domains):
        """Yield of each group and domain the members that stand there."""
        for members in self.groups.values():
            for hosts in domains.values():
                yield self.on(hosts) & {*members}

    @property
    def lost(self):
        """What became of the servers without a host."""
        return {
            one: place
            for one, place in self.places.items()
            if place not in self._cloud.hosts
        }


def read_begins(cloud):
    """Return when a scheduler began with each server.

    :returns: by server the time, and whether the scheduler had been restarted
    """
    begins = {}
    for name in SCHEDULERS:
        started = 0
        for line in cloud.nova.scheduler_log(name).splitlines():
            started += base.STARTED in line
            if match := BEGINS.match(line):
                when = datetime.datetime.fromisoformat(match[1]).timestamp()
                begins[match[2]] = when, started > WORKERS
    return begins


class ChangedRulesTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(
            base.Deployment(tuple(RACKS.hosts), schedulers=len(SCHEDULERS))
        )
        test_group_race.create_racks(self.cloud, RACKS, 'failure_domain')
        self.domains = {
            rack: [host for host in RACKS.hosts if RACKS.domains[host] == rack]
            for rack in RACKS.domains.values()
        }
        self.cloud.client(
            ['traits', [CLOSED], [TRAIT]],
            ['aggregate', 'windows', [CLOSED], {}],
            ['aggregate', 'feed', ['host1', 'host2', 'host5'], {}],
        )

    def remove(self, *bursts):
        for burst in bursts:
            self.cloud.client(['remove', [*burst.on(self.cloud.hosts)]])

    def assertJudged(self, burst, begins, old):
        """Each server stands where its rules let it.

        :param begins: when a scheduler began with each
        :param old: those of the former rules, which closed no host and may
            have limited no domain
        """
        self.assertEqual(set(), burst.on([CLOSED]) - old)
        for there in burst.by_domain(self.domains):
            new = there - old
            first = min((begins[one] for one in new), default=0)
            before = {one for one in there & old if begins[one] < first}
            self.assertLessEqual(len(new), max(0, LIMIT - len(before)))

    def assertNoneRefused(self, burst):
        """No request is refused for which its rules had room."""
        for server, fault in burst.lost.items():
            if 'No valid host' in fault:
                [group] = [
                    {*one} for one in burst.groups.values() if server in one
                ]
                for hosts in self.domains.values():
                    self.assertLessEqual(
                        LIMIT, len(group & burst.on(hosts)), burst.places
                    )

    def assertNoMoreLost(self, ours, novas):
        """nova's late check, and a restart, lose servers of plain nova too."""
        print(
            f'lost: {[*ours.lost.values()]}; '
            f'by plain nova: {[*novas.lost.values()]}',
            file=sys.stderr,
        )
        self.assertLessEqual(len(ours.lost), len(novas.lost))

    def assertAudited(self, *bursts):
        """audit lists exactly what the rules of today refuse.

        :returns: how many servers violate each policy
        """
        expected = {
            (server, policy)
            for burst in bursts
            for policy, servers in (
                ('isolation', burst.on([CLOSED])),
                *(
                    ('failure-domain', there)
                    for there in burst.by_domain(self.domains)
                    if len(there) > LIMIT
                ),
            )
            for server in servers
        }
        done = self.cloud.nova.command('audit', '-f', 'json', status=None)
        found = json.loads(done.stdout)
        self.assertEqual([], found['faults'])
        self.assertEqual(
            expected,
            {(one['server'], one['policy']) for one in found['findings']},
        )
        return collections.Counter(policy for _, policy in expected)

    def fill(self):
        """Ask for more of a group than the later rules let into the racks.

        One burst for what they let: of more at once each scheduler would find
        room for the last ones.
        """
        full = Burst(self.cloud, 1)
        for count in (2 * LIMIT, LIMIT):
            full.start(count)
            full.land()
        return full

    def test_a_rolling_restart(self):
        """Two schedulers with different nova.conf, one after the other."""
        self.cloud.client(['set_metadata', 'windows', CLOSES])
        novas, *_ = self.restart_amid_burst(plain(), plain(), False)
        ours, full, begins = self.restart_amid_burst(
            rules(0, False), rules(LIMIT, True), True
        )
        old = {one for one, (_, restarted) in begins.items() if not restarted}
        of_burst = {*ours.places}
        # Most of the burst was amid the change.
        self.assertLess(WAVE // 2, len(of_burst & old))
        self.assertLess(WAVE // 2, len(of_burst - old))
        when = {one: time for one, (time, _) in begins.items()}
        self.assertJudged(ours, when, old)
        self.assertNoneRefused(ours)
        found = self.assertAudited(full, ours)
        self.assertLessEqual({'isolation', 'failure-domain'}, {*found})
        self.assertNoMoreLost(ours, novas)

    def restart_amid_burst(self, before, after, filters):
        """Restart the schedulers one by one while a burst comes.

        :returns: the burst, a group that was there before, and when a
            scheduler began with each server
        """
        with self.cloud.scheduler(before, filters=filters):
            full, burst = self.fill(), Burst(self.cloud, GROUPS)
            for name in SCHEDULERS:
                with futures.ThreadPoolExecutor(1) as pool:
                    burst.start(WAVE)
                    restarted = pool.submit(
                        self.cloud.restart_scheduler, name, after, filters
                    )
                    burst.start(WAVE)
                    restarted.result()
            burst.land()
            begins = read_begins(self.cloud)
        if not filters:
            self.remove(full, burst)
        return burst, full, begins

    def test_metadata_of_an_aggregate(self):
        """A host is closed, and another domain made, for later requests."""
        novas, *_ = self.change_amid_burst(plain(), False)
        ours, full, answered = self.change_amid_burst(rules(LIMIT, True), True)
        begins = {
            one: when for one, (when, _) in read_begins(self.cloud).items()
        }
        old = {one for one in ours.places if begins[one] < answered}
        self.assertLess(WAVE // 2, len(old))
        self.assertLess(WAVE // 2, len({*ours.places} - old))
        # No more than the limit from the beginning.
        self.assertEqual(
            [LIMIT, LIMIT], [*map(len, full.by_domain(self.domains))]
        )
        # The racks have the limit all the time.
        for there in ours.by_domain(self.domains):
            self.assertLessEqual(len(there), LIMIT)
        self.domains['feed'] = ['host1', 'host2', 'host5']
        self.assertJudged(ours, begins, old)
        self.assertNoneRefused(ours)
        self.assertAudited(full, ours)
        self.assertNoMoreLost(ours, novas)

    def change_amid_burst(self, options, filters):
        """Change the metadata of two aggregates while a burst comes.

        :returns: the burst, a group that was there before, and when nova-api
            had answered
        """
        self.cloud.client(
            ['set_metadata', 'windows', dict.fromkeys(CLOSES)],
            ['set_metadata', 'feed', {'failure_domain': None}],
        )
        with self.cloud.scheduler(options, filters=filters):
            full, burst = self.fill(), Burst(self.cloud, GROUPS)
            burst.start(2 * WAVE)
            with futures.ThreadPoolExecutor(1) as pool:
                started = pool.submit(burst.start, 2 * WAVE)
                changed = self.cloud.client(
                    ['set_metadata', 'feed', {'failure_domain': 'feed'}],
                    ['set_metadata', 'windows', CLOSES],
                )
                started.result()
            burst.land()
        if not filters:
            self.remove(full, burst)
        return burst, full, changed[-1]
