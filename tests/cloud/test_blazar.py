# SPDX-License-Identifier: Apache-2.0

"""Blazar, with BlazarFilter of this package in place of blazar-nova's.

Hosts are given to Blazar, leases begin and end, and servers with and without
the reservation land where they may. All that is done by hand is the aggregate
of all hosts that Blazar manages.
"""

import collections
import contextlib
import datetime
import json
import math
import time
import typing

from openstack import exceptions
import testtools
from testtools import content

from tests.cloud import base
from tests.cloud import blazar
from tests.cloud import capacity
from tests.cloud import cinder
from tests.cloud import cloud
from tests.cloud import configuration
from tests.cloud import forms
from tests.cloud import nova
from tests.cloud import tempest
from tests.cloud import world

#: Three hosts are Blazar's; the last one is not.
HOSTS = ('compute1', 'compute2', 'compute3', 'compute4')
MANAGED = HOSTS[:-1]
PLAIN = HOSTS[-1]
#: What stands beside nova and Blazar.
NEIGHBOURS = tuple(
    class_ for class_ in forms.WHOLE[:-1] if class_ is not cinder.Cinder
)

#: The three lines of nova.conf, and what instance reservations need.
OPTIONS = configuration.merge(
    nova.LOADED,
    {
        'filter_scheduler': {
            'enabled_filters': ','.join(
                [
                    *nova.ENABLED,
                    'AggregateMultiTenancyIsolation',
                    'AggregateInstanceExtraSpecsFilter',
                    'BlazarFilter',
                ]
            )
        },
        'blazar:physical:host': {'preemptible_aggregate': blazar.MANAGED},
    },
)
HOST = 'resource_type=physical:host,min={0},max={0}'
INSTANCE = (
    'resource_type=virtual:instance,vcpus=1,memory_mb=64,disk_gb=1,amount=1,'
    'affinity=None'
)
#: A lease that has begun, or cannot.
DONE = ('ACTIVE', 'ERROR')
#: Seconds for Blazar's manager, which looks every ten.
LEASE_SECONDS = 300

#: What a user is told where the pools cannot be read.
REFUSED = 'blazar_reservations cannot decide'

#: Not its API tests, which look for Blazar on port 80 alone.
SCENARIOS = r'^blazar_tempest_plugin\.tests\.scenario\.'


class Landed(typing.NamedTuple):
    """A server of a stream: its host, when it was asked for and launched."""

    host: str
    asked: float
    launched: float


class BlazarTestCase(capacity.TruthMixin, base.CloudTestCase):
    form = (
        *NEIGHBOURS,
        nova.Nova.variant(cells={'cell1': HOSTS}),
        blazar.Blazar,
    )

    def test_leases(self):
        """One story: what one part leaves, the next one needs."""
        self.blazar = self.cloud.blazar
        self.world = world.World(self.cloud)
        self.compute = self.world.admin.compute
        self.start_schedulers()
        self.create()
        self.a_server_without_a_reservation()
        lease, reservation = self.a_lease_begins()
        self.capacity_says_how_many_fit(reservation)
        self.only_its_project_uses_it(reservation)
        self.explain_says_why(reservation)
        self.an_instance_reservation()
        self.a_lease_is_deleted(lease, reservation)
        self.more_pools_than_the_query_names()
        self.leases_begin_and_end_in_a_stream_of_boots()
        self.nothing_lands_without_the_api_database()
        self.assertEqual([], self.audit())
        self.leases_without_the_aggregate_that_closes_the_gap()

    def create(self):
        """Create what servers need, and give Blazar its hosts."""
        for name, ram in (('plain', 64), ('half', capacity.HALF_A_HOST_MB)):
            self.world.create_flavor(name, ram)
        world.create_image(self.world.admin, 'linux')
        self.world.create_network()
        self.blazar.take(*MANAGED)
        self.assertCountEqual(MANAGED, self.pools()[blazar.FREE_POOL])

    # What can be seen.

    def pools(self):
        """Return the hosts of each aggregate, by its name."""
        return {one.name: one.hosts or [] for one in self.compute.aggregates()}

    def host_of(self, server):
        return self.world.show(server).hypervisor_hostname

    def boot(self, user='member', **arguments):
        """Create a server; return its host, None where it has none."""
        (server,) = self.world.boot('plain', 'linux', user, **arguments)
        self.assertIn(server.status, ('ACTIVE', 'ERROR'))
        self.last = server
        return server.hypervisor_hostname

    def audit(self):
        done = self.cloud.nova.command('audit', '-f', 'json', user='admin')
        return json.loads(done.stdout)['findings']

    def wait_for(self, condition, what):
        deadline = time.monotonic() + LEASE_SECONDS
        while not (found := condition()):
            if time.monotonic() > deadline:
                raise TimeoutError(what)
            time.sleep(1)
        return found

    def begin_lease(self, name, reservation, user='member', minutes=60):
        """Create a lease; return it and its reservation once it began."""
        lease, reservation = self.blazar.create_lease(
            name, user, reservation, minutes
        )
        status = self.wait_for(
            lambda: (
                (found := self.blazar.lease_status(lease)) in DONE and found
            ),
            name,
        )
        return lease, reservation, status

    # The story.

    def a_server_without_a_reservation(self):
        self.assertEqual([PLAIN] * 3, [self.boot() for _ in range(3)])
        # An administrator who forces a host does no more.
        self.assertIsNone(
            self.boot('admin', availability_zone=f'nova:{MANAGED[0]}')
        )
        self.assertEqual('ERROR', self.last.status)

    def a_lease_begins(self):
        lease, reservation, status = self.begin_lease('first', HOST.format(1))
        self.assertEqual('ACTIVE', status)
        (host,) = self.pools()[reservation]
        self.assertIn(host, MANAGED)
        return lease, reservation

    def capacity_says_how_many_fit(self, reservation):
        (host,) = self.pools()[reservation]
        self.assertTruth(
            {host: 2},
            'half',
            '--hint',
            f'reservation={reservation}',
            hints={'reservation': reservation},
        )
        self.assertTruth({PLAIN: 2}, 'half')

    def only_its_project_uses_it(self, reservation):
        (host,) = self.pools()[reservation]
        hints = {'reservation': reservation}
        self.assertEqual(host, self.boot(hints=hints))
        self.reserved = self.last.id
        self.assertEqual(PLAIN, self.boot())
        self.assertEqual(PLAIN, self.boot('other'))
        for user, wrong in (
            ('other', reservation),
            ('member', blazar.FREE_POOL),
            ('member', 'gone'),
            # nova's tables take no such character.
            ('member', '\U0001f600'),
        ):
            self.assertIsNone(self.boot(user, hints={'reservation': wrong}))
            shown = wrong if wrong.isascii() else ascii(wrong)
            self.assertIn(
                f'no reservation that project {self.world.projects[user]} may '
                f'use is named {shown}',
                self.last.fault['message'],
            )

    def explain_says_why(self, reservation):
        common = ('--flavor', 'plain', '--hint', f'reservation={reservation}')
        found = {
            user: self.cloud.nova.command(
                'explain',
                *common,
                '--project',
                self.world.projects[user],
                user='admin',
                status=None,
            )
            for user in ('member', 'other')
        }
        self.assertEqual(0, found['member'].returncode, found['member'])
        self.assertEqual(3, found['other'].returncode, found['other'])
        self.assertIn('no reservation that project', found['other'].stdout)

    def an_instance_reservation(self):
        """Its server shares a host that nobody reserved as a whole."""
        lease, reservation, status = self.begin_lease('instances', INSTANCE)
        self.assertEqual('ACTIVE', status)
        (host,) = self.pools()[reservation]
        self.assertIn(host, self.pools()[blazar.FREE_POOL])
        self.world.flavor_ids['reserved'] = reservation
        (server,) = self.world.boot('reserved', 'linux')
        self.assertEqual(host, server.hypervisor_hostname, server.fault)
        # One is all that was reserved.
        (server,) = self.world.boot('reserved', 'linux')
        self.assertIsNone(server.hypervisor_hostname)
        self.blazar.end_lease(lease)
        self.assertNotIn(reservation, self.pools())

    def a_lease_is_deleted(self, lease, reservation):
        """Its server goes with it, and its host is free again."""
        self.blazar.end_lease(lease)
        self.assertIsNone(self.compute.find_server(self.reserved))
        self.assertCountEqual(MANAGED, self.pools()[blazar.FREE_POOL])
        self.assertIsNone(self.boot(hints={'reservation': reservation}))

    def more_pools_than_the_query_names(self):
        """The host filter judges the pools that the query has no room for.

        Without servers their hosts are those that nova's weighers prefer.
        """
        self.start_schedulers(
            {
                'nova_ext_sched': {'max_forbidden_aggregates': '1'},
                # It would stand for the pools of all its hosts.
                'blazar:physical:host': {'preemptible_aggregate': ''},
            }
        )
        leases = [
            self.begin_lease(f'pool-{host}', HOST.format(1))
            for host in MANAGED
        ]
        self.assertEqual(['ACTIVE'] * 3, [status for *_, status in leases])
        for user in ('member', 'other'):
            self.assertEqual([PLAIN] * 2, [self.boot(user) for _ in range(2)])
        for _, reservation, _ in leases:
            (host,) = self.pools()[reservation]
            hints = {'reservation': reservation}
            self.assertEqual(host, self.boot(hints=hints))
            self.assertIsNone(self.boot('other', hints=hints))
        for lease, _, _ in leases:
            self.blazar.end_lease(lease)
        self.start_schedulers()

    def leases_begin_and_end_in_a_stream_of_boots(self):
        """None lands on a host of Blazar's, and each lease begins.

        Blazar moves a host in two calls, and in between it is in no pool. The
        aggregate ``managed`` closes this gap.
        """
        with self.stream('stream') as (servers, stays):
            lease, _, first = self.begin_lease('deleted', HOST.format(2))
            self.blazar.end_lease(lease)
            lease, reservation, second = self.begin_lease(
                'ends by itself', HOST.format(1), minutes=2
            )
            (host,) = self.pools()[reservation]
            hints = {'reservation': reservation}
            self.assertEqual(host, self.boot(hints=hints))
            self.reserved = self.last.id
            self.wait_for(
                lambda: self.blazar.lease_status(lease) == 'TERMINATED', lease
            )
            # Further servers are asked for.
            time.sleep(5)
        self.assertEqual(['ACTIVE'] * 2, [first, second])
        self.assertEqual({PLAIN}, {server.host for server in servers})
        # Some were asked for in each lease, and after it.
        reserved = [stay for stay in stays if stay.until < math.inf]
        self.assertLessEqual(3, len(reserved), stays)
        for stay in reserved:
            asked = [server.asked for server in servers]
            self.assertTrue(any(stay.since < at < stay.until for at in asked))
            self.assertLess(stay.until, max(asked))
        # The lease's own server went with it.
        self.assertIsNone(self.compute.find_server(self.reserved))
        self.assertIn(host, self.pools()[blazar.FREE_POOL])
        self.assertEqual(PLAIN, self.boot())

    def nothing_lands_without_the_api_database(self):
        """The schedulers lose it, then everybody; a lease goes on."""
        (lease, reservation, _) = self.begin_lease('fault', HOST.format(1))
        (host,) = self.pools()[reservation]
        hints = {'reservation': reservation}
        urls = self.cloud.mariadb.create_reader('scheduler', 'nova_api')
        self.start_schedulers(
            {'api_database': {'connection': urls['nova_api']}}
        )
        self.assertEqual(PLAIN, self.boot())
        with self.cloud.mariadb.cut('scheduler'):
            for asked in (None, hints):
                self.assertIsNone(self.boot(hints=asked))
                self.assertIn(REFUSED, self.last.fault['message'])
        self.assertIn(
            'is refused, because without the filter it could land on any '
            f'host: {REFUSED}',
            self.cloud.nova.scheduler_log(),
        )
        self.works_again(host, hints)
        with self.world.stream(told=world.TOLD) as asked:
            with self.cloud.mariadb.cut('nova_api'):
                time.sleep(20)
            self.works_again(host, hints)
        for server in self.world.settled():
            if server.id in asked:
                self.assertIn(server.hypervisor_hostname, (None, PLAIN))
        self.blazar.end_lease(lease)

    def works_again(self, host, hints):
        """Wait until servers land again; check where they do."""

        def lands():
            with contextlib.suppress(*world.TOLD):
                return self.boot() == PLAIN and self.boot(hints=hints) == host

        self.wait_for(lands, 'no server lands')

    def leases_without_the_aggregate_that_closes_the_gap(self):
        """None lands where Blazar knows that a host is in a pool.

        In the gap between Blazar's calls a server may land. Then the lease
        may end in error.
        """
        self.start_schedulers(
            {'blazar:physical:host': {'preemptible_aggregate': ''}}
        )
        statuses = []
        with self.stream('gap') as (servers, stays):
            for number in range(3):
                lease, _, status = self.begin_lease(
                    f'gap-{number}', HOST.format(1)
                )
                statuses.append(status)
                time.sleep(15)
                self.blazar.end_lease(lease)
        self.assertEqual(
            [],
            [
                (server, stay)
                for server in servers
                for stay in stays
                if server.host == stay.host
                and stay.since < server.asked
                and server.launched < stay.until
            ],
        )
        # Only a server in the gap keeps a lease from its beginning.
        if {server.host for server in servers} == {PLAIN}:
            self.assertEqual({'ACTIVE'}, set(statuses))

    def start_schedulers(self, *options):
        self.cloud.nova.start_schedulers(OPTIONS, *options)
        self.cloud.nova.wait_for_schedulers()

    def built(self, server):
        """Wait until a server is ACTIVE; it may be gone again."""
        with contextlib.suppress(exceptions.NotFoundException):
            found = self.world.wait(server)
            self.assertEqual('ACTIVE', found.status, found.fault)
            return found
        # Blazar deletes what stands on a host when its lease ends.
        (found,) = (
            found
            for found in self.world.admin.compute.servers(
                all_projects=True, deleted=True
            )
            if found.id == server
        )
        self.assertIsNotNone(found.launched_at, 'never built')
        return found

    @contextlib.contextmanager
    def stream(self, name):
        """Create servers until the block ends; they are gone then.

        What was seen is a detail of the test: NAME.

        :returns: lists that are filled at the end: of ``Landed``, and of the
            stays of hosts in aggregates
        """
        servers, stays = [], []
        log = self.cloud.folder / 'nova-api.out'
        with self.cloud.nova.api_options({'DEFAULT': {'debug': 'True'}}):
            before = log.stat().st_size
            with self.world.stream(0.5) as asked:
                yield servers, stays
            with log.open('rb') as text:
                text.seek(before)
                stays += blazar.stays(text.read().decode(errors='replace'))
        for server, at in asked.items():
            found = self.built(server)
            launched = datetime.datetime.fromisoformat(found.launched_at)
            servers.append(
                Landed(
                    found.hypervisor_hostname,
                    at,
                    launched.replace(tzinfo=datetime.UTC).timestamp(),
                )
            )
        self.assertLess(10, len(servers))
        hosts = collections.Counter(server.host for server in servers)
        lines = [f'{dict(hosts)}', *map(str, servers), *map(str, stays)]
        self.addDetail(name, content.text_content('\n'.join(lines)))
        world.delete_servers(self.world.admin, asked)


class TempestTestCase(testtools.TestCase):
    """The tests of Blazar's own, of which none logs in to a server.

    They want a cloud of one host: where it is reserved there is no other.
    """

    def test_blazar_tempest_plugin(self):
        form = (
            *NEIGHBOURS,
            nova.Nova.variant(
                cells={'cell1': HOSTS[:1]}, scheduler_options=OPTIONS
            ),
            blazar.Blazar,
            tempest.Tempest,
        )
        base.take_down()
        with cloud.Cloud(form) as one_host:
            compute = one_host.connect().compute
            compute.create_aggregate(name=blazar.FREE_POOL)
            managed = compute.create_aggregate(name=blazar.MANAGED)
            compute.add_host_to_aggregate(managed, HOSTS[0])
            one_host.tempest.prepare()
            # One after the other: they share the host, which one that fails
            # leaves with Blazar.
            results = one_host.tempest.run(
                SCENARIOS, between=one_host.blazar.leave_nothing
            )
            print(one_host.tempest.describe(results), flush=True)
        self.assertLess(5, len(results))
        self.assertEqual({'success'}, set(results.values()), results)
