# SPDX-License-Identifier: Apache-2.0

"""How many servers of a request hosts take, with filters of the test's own."""

import itertools
import types

import ddt
import fixtures
from nova import objects
from nova.scheduler.filters import affinity_filter
import testtools

from nova_ext_sched.dryrun.fit import count
from tests.unit.dryrun.cloud import clouds

Fit = count.Fit
OR_MORE, UNLIMITED = count.State.OR_MORE, count.State.UNLIMITED


@ddt.ddt
class RoomsTestCase(testtools.TestCase):
    """Hosts a and b, of 8 and 4 CPUs, for servers of two."""

    capacities = {'a': 8, 'b': 4}  # noqa: RUF012

    def setUp(self):
        super().setUp()
        self.spec = clouds.make_spec(2)
        self.summaries = {}
        for host, capacity in self.capacities.items():
            self.summarize(host, VCPU=capacity)
        self.offer(lambda host: {host: {'VCPU': 2}})

    def summarize(self, uuid, root=None, **capacities):
        """Let placement say what a provider has, of which nothing is used."""
        summary = clouds.make_summary(
            **{name: (number, 0) for name, number in capacities.items()}
        )
        self.summaries[uuid] = {**summary, 'root_provider_uuid': root or uuid}

    def offer(self, allocate):
        """Let placement offer each host by one candidate."""
        self.requests = [
            clouds.make_request(**allocate(host)) for host in self.capacities
        ]

    def make(self, *host_filters):
        cloud = clouds.Cloud('', host_filters)
        for host in self.capacities:
            cloud.add_node(host)
        for uuid, summary in self.summaries.items():
            found = summary['resources'].items()
            capacities = {name: one['capacity'] for name, one in found}
            cloud.server.add(uuid, **capacities)
        return cloud

    def measure(self, *host_filters, claims=False, before=0):
        """Return what each host takes, and why no more.

        :param claims: whether each server is claimed
        :param before: servers that come to the host a before
        """
        cloud = self.make(*host_filters)
        known, asked = cloud.describe(), self.spec.obj_to_primitive()
        with cloud.fork() as future:
            for one in range(before):
                target = cloud.find_target('a', a={'VCPU': 2})
                self.assertTrue(future.come(f'{one}', self.spec, target))
            states = cloud.get_host_states_by_uuids(None, None, None)
            offered = types.SimpleNamespace(
                requests=self.requests,
                summaries=self.summaries,
                queries=['resources=VCPU%3A2&required=CUSTOM_FAST'],
            )
            kind = None if claims else lambda _: 'x'
            rooms = count.Counts(cloud, self.spec, states, offered, kind)
            found = rooms.measure(future)
            on_hosts = sum(one[1] for one in cloud.describe().values())
            self.came = on_hosts - before
        self.tied = rooms.tied
        self.assertEqual(known, cloud.describe())
        self.assertEqual(asked, self.spec.obj_to_primitive())
        return {
            host: (one.servers, one.end and one.end.cause)
            for host, one in found.items()
        }

    def test_a_forced_host_has_no_filters(self):
        self.spec.force_hosts = ['a']
        found = self.measure(clouds.AtMostFilter(0))
        self.assertEqual({'a': (4, 'VCPU'), 'b': (2, 'VCPU')}, found)

    def test_by_halving_as_claim_by_claim(self):
        """It leaves no claim."""
        for most, before in itertools.product(range(6), range(3)):
            known = clouds.KnownFilter(most)
            found = self.measure(known, before=before)
            self.assertEqual(0, self.came)
            claimed = self.measure(known, claims=True, before=before)
            self.assertEqual(found, claimed)
            numbers = max(0, min(4, most) - before), min(2, most)
            self.assertEqual(numbers, (found['a'][0], found['b'][0]))

    def test_many_servers_are_asked_about_few_times(self):
        for host in self.capacities:
            self.summarize(host, VCPU=2000)
        for most, asked in ((10_000, 1), (999, 11)):
            known = clouds.KnownFilter(most)
            self.requests[0]['allocations']['a']['resources'] = {'VCPU': 2}
            found = self.measure(known)
            self.assertEqual(min(most, 1000), found['a'][0])
            self.assertLessEqual(known.asked.count('a'), asked)

    def test_claims_stay_in_the_fork(self):
        found = self.measure(claims=True)
        self.assertEqual({'a': (4, 'VCPU'), 'b': (2, 'VCPU')}, found)
        self.assertEqual(6, self.came)

    def test_a_group_is_as_before(self):
        known = {'members': ['old'], 'hosts': ['hosta']}
        group = objects.InstanceGroup(policy='anti-affinity', **known)
        self.spec.instance_group = group
        self.measure(clouds.AtMostFilter(1))
        self.assertEqual(2, self.came)
        self.assertEqual(['old'], group.members)
        self.assertEqual(['hosta'], group.hosts)

    def test_an_affinity_group_stays_together(self):
        """The servers that came say where its next ones may go."""
        self.spec.instance_group = objects.InstanceGroup(
            policy='affinity', policies=['affinity'], members=[], hosts=[]
        )
        found = self.measure(affinity_filter.ServerGroupAffinityFilter())
        self.assertEqual(
            {'a': 4, 'b': 0}, {h: n for h, (n, _) in found.items()}
        )
        # Another order of hosts would fill the other one.
        self.assertEqual([{*'ab'}], self.tied)

    def test_hosts_of_one_kind_are_asked_once(self):
        self.summarize('b', VCPU=8)
        for class_, hosts in (
            (clouds.KnownFilter, {'a'}),
            (clouds.AtMostFilter, {*'ab'}),
        ):
            one = class_(9)
            found = self.measure(one)
            self.assertEqual({'a': (4, 'VCPU'), 'b': (4, 'VCPU')}, found)
            self.assertEqual(hosts, set(one.asked))

    def test_what_hosts_share(self):
        self.offer(lambda host: {host: {'VCPU': 2}, 'disks': {'DISK_GB': 10}})
        self.summarize('disks', DISK_GB=35)
        found = self.measure()
        self.assertEqual(3, sum(servers for servers, _ in found.values()))
        self.assertEqual([{'a', 'b'}], self.tied)
        # Each is full before it.
        self.summarize('disks', DISK_GB=70)
        self.assertEqual({'a': (4, 'VCPU'), 'b': (2, 'VCPU')}, self.measure())
        self.assertEqual([], self.tied)

    def test_another_candidate_of_the_host(self):
        other = clouds.make_request(a={'VCPU': 1}, nic={'NET': 1})
        self.requests.append(other)
        self.summarize('nic', 'a', NET=9)
        self.summarize('a', VCPU=9)
        # Four by the first, and one by the second.
        self.assertEqual((5, 'VCPU'), self.measure()['a'])

    @ddt.data(False, True)
    def test_without_an_end(self, claims):
        self.useFixture(fixtures.MockPatchObject(count, 'MOST', 99))
        self.offer(lambda host: {host: {}})
        found = self.measure(claims=claims)
        self.assertEqual({'a': (99, None), 'b': (99, None)}, found)


@ddt.ddt
class FitTestCase(testtools.TestCase):
    @ddt.data(
        ((), Fit(0)),
        ((Fit(2), Fit(3)), Fit(5)),
        ((Fit(2), Fit(3, OR_MORE)), Fit(5, OR_MORE)),
        ((Fit(2, UNLIMITED), Fit(3, OR_MORE)), Fit(5, UNLIMITED)),
    )
    @ddt.unpack
    def test_sum(self, fits, expected):
        self.assertEqual(expected, count.add_up(fits))
