# SPDX-License-Identifier: Apache-2.0

"""Where servers go: nova's scheduler on small clouds, asked as little as can.

Servers are asked about in three ways: those of which all is shared, those with
hints or of a group, and those of a cloud with a filter of which nobody knows
what it reads. tests/functional asks nova itself.
"""

import collections
import dataclasses
import re
from unittest import mock

import ddt
from nova import exception as nova_exception
from nova import objects
from nova.network import model
from nova.scheduler import utils
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched.dryrun.decision import likeness
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import own_queries
from nova_ext_sched.queries import sources
from tests import documentation
from tests.unit.dryrun.cloud import clouds
from tests.unit.dryrun.plan import small
from tests.unit.dryrun.plan.small import Host
from tests.unit.dryrun.plan.small import Server

#: What makes a server one with hints that ask nothing.
HINTS = {'different_host': ['nobody']}


class DestinationsTestCase(small.TestCase):
    """Hosts a, b, c and so on; nova's weigher prefers b, then c, and so on.

    The servers of a must leave it.
    """

    def drain(self, servers, hosts='abcd', kind='whole', *more):
        """Return where they go, and why others do not.

        :param servers: the CPUs of each of a's, or it
        :param kind: ``whole``, ``part`` or ``unknown``
        """
        hints = HINTS if kind == 'part' else None
        rooms = {
            one: Host(units=1000, ram=900_000 - 1000 * n)
            for n, one in enumerate(hosts)
        }
        found = {
            f's{n}': one
            if isinstance(one, Server)
            else Server('a', one, hints=hints)
            for n, one in enumerate(servers)
        }
        if kind == 'unknown':
            self.small.host_filters += (small.Unknown(lambda *_: True),)
        self.found = self.small.drain((rooms, found), 'a', *more)
        return ''.join(one.expected for one in self.found.moves)

    def share(self, offer):
        """Let hosts share two providers of 30 GB each.

        :param offer: returns the names of those that a host is offered
        """

        def change(cloud):
            for name in ('disks', 'others'):
                cloud.server.add(name, traits=[clouds.SHARES], DISK_GB=30)
            ask = cloud.server._allocation_candidates
            cloud.server._allocation_candidates = lambda params: answer(
                ask(params)
            )

        def answer(found):
            requests = []
            for one in found['allocation_requests']:
                own = one['allocations']
                disk = own.pop('disks', None)
                names = offer(*own) if disk else ()
                for given in [own | {name: disk} for name in names] or [own]:
                    given = {'allocations': given, 'mappings': {'': [*given]}}
                    requests.append(given)
            return {**found, 'allocation_requests': requests}

        self.small.change = change

    def refuse(self, refuses):
        """Let a request filter end some requests."""

        def run(_, spec):
            if refuses(spec):
                raise nova_exception.RequestFilterFailed(reason='no')

        self.small.request_filters.append(run)


@ddt.ddt
class WhereTestCase(DestinationsTestCase):
    @ddt.data('whole', 'part', 'unknown')
    def test_the_best_that_takes_it(self, kind):
        """Others have taken what they have; of equal hosts the first."""
        self.assertEqual('bbcc', self.drain([2] * 4, 'abcd', kind))
        self.assertEqual('cc', self.drain([2] * 2, 'abcd', kind, 'b'))
        self.assertEqual('bcd', self.drain([3] * 4, 'abcd', kind))
        [stuck] = self.found.stuck
        self.assertEqual('VCPU', stuck.cause)
        self.assertIn('are full (VCPU)', stuck.said)
        self.small.change = lambda cloud: [
            setattr(state, 'free_ram_mb', 9000)
            for state in cloud.states.values()
        ]
        self.assertEqual('bcdbcd', self.drain([1] * 6, 'abcd', kind))

    @ddt.data('whole', 'part')
    def test_disks_that_hosts_share(self, kind):
        """Where one provider is full, a host of others is found, far back."""
        self.share(lambda host: ['others' if host == 'l' else 'disks'])
        hints = HINTS if kind == 'part' else None
        servers = [Server('a', 1, disk=20, hints=hints)] * 3
        self.assertEqual('bl', self.drain(servers, 'abcdefghijkl'))
        self.assertEqual({None}, {one.to for one in self.found.moves})

    def test_what_hosts_share_may_come_back(self):
        """Once a round was given up: nobody has come to d since."""
        self.share(lambda host: ['disks', 'others'])

        def passes(state, spec):
            """Refuse a host with a single candidate."""
            return len(state.allocation_candidates) > bool(spec.flavor.root_gb)

        self.small.host_filters = (small.Filter(passes),)
        hosts, servers = small.parse('a=4 x1=1 x2=1; b=4 y1=1 y2=2; c=2; d=2')
        for uuid in ('x1', 'x2', 'y1'):
            servers[uuid] = dataclasses.replace(servers[uuid], disk=20)
        found = self.small.maintain((hosts, servers))
        self.assertEqual('c d b', small.say_rounds(found))
        self.assertEqual('y2:c y1:d', small.say(found.rounds[2].moves))

    def test_a_filter_that_may_look_at_anything(self):
        one = small.Unknown(lambda _, spec: spec.instance_uuid != 's0')
        self.small.host_filters = (one,)
        self.assertEqual('b', self.drain([1, 1]))
        self.assertEqual('s0', small.name(self.found.stuck))

    def test_a_host_without_a_candidate_that_is_left(self):
        def take(state, _):
            if state.uuid == 'b':
                state.allocation_candidates = []
            return True

        self.small.host_filters = (small.Filter(take),)
        self.assertEqual('c', self.drain([1]))

    def test_what_is_of_one_server_is_not_shared(self):
        """Its hints, its group, and the hosts that it ignores."""
        hints = {'different_host': ['s3']}
        one, other = (Server(host, 1, group='g') for host in 'ab')
        self.small.change = lambda cloud: setattr(
            cloud.states['b'], 'free_ram_mb', 10**9
        )
        self.drain([Server('a', 1, hints=hints), one, 1, other])
        moves = small.say(self.found.moves).split()
        self.assertEqual(['s0:c', 's1:c', 's2:b'], sorted(moves))

    def test_one_that_is_gone_decides_for_no_other(self):
        """Its request ends where a request filter reads the server."""
        self.small.deleted = {'s0'}
        self.refuse(lambda spec: spec.instance_uuid == 's0')
        self.assertEqual('b', self.drain([1, 1]))
        self.assertEqual('s0', small.name(self.found.gone))

    def test_a_request_that_ends(self):
        self.refuse(lambda spec: True)
        for kind in ('whole', 'part', 'unknown'):
            self.assertEqual('', self.drain([1], kind=kind))
            self.assertIn('ends the request', self.found.stuck[0].said)
        self.assertEqual([], self.small.filter.asked)

    def test_what_is_not_known(self):
        """Whether a host has room that others left, of numbered groups."""
        cloud = 'h1=4/9 a=4; h2=4 b=4/1; h3=4/1'
        self.assertEqual('b:h3 a:h2', small.say(self.small.mend(cloud).moves))
        name = 'get_num_of_suffixed_groups'
        with mock.patch.object(utils.ResourceRequest, name, lambda _: 1):
            [one] = self.small.mend(cloud).stuck
        self.assertEqual('not known', one.cause)
        self.assertIn('whether h2:nodeh2 has room', one.said)

    def test_barred_hosts_are_said_first(self):
        """Whatever else refuses them."""
        self.small.filter.most = 0
        for kind in ('whole', 'part', 'unknown'):
            self.drain([1], 'abcd', kind, 'b')
            [stuck] = self.found.stuck
            self.assertIn('0 of 4 hosts', stuck.said)
            self.assertIn('2 are excluded by the request', stuck.said)


def _note_weighed(cloud, numbers):
    """Append how many hosts a cloud's weighers order, each time they do."""
    weigh = cloud.get_weighed_hosts
    cloud.get_weighed_hosts = lambda states, spec: (
        numbers.append(len(states)) or weigh(states, spec)
    )


@ddt.ddt
class AskedTestCase(DestinationsTestCase):
    """How little is asked, whichever way."""

    def test_only_the_best(self):
        """One after the other; one that refused not again, by one of both."""
        hosts = 'abcdefghijklmn'
        self.drain([1], hosts)
        self.assertEqual(['b'], self.small.filter.asked[-1:])
        self.small.filter.asked.clear()
        self.small.filter.most = 0
        self.drain([1, 1], hosts)
        # Those beyond the best after them, and all to say why.
        asked = collections.Counter(self.small.filter.asked)
        self.assertEqual({2}, {*asked.values()})

    def test_one_that_refuses_goes_on_to_refuse(self):
        """Until one comes to it, or leaves; in this plan alone."""
        self.small.filter.most = 1
        for _ in range(2):
            self.small.filter.asked.clear()
            self.assertEqual('bcd', self.drain([1] * 4))
            asked = collections.Counter(self.small.filter.asked)
            self.assertEqual({'b', 'c', 'd', 'a'}, {*asked})
            # For all; to take one, and refuse one; why. How many are left
            # for the last is known.
            self.assertEqual(4, max(asked.values()))

    def test_not_all_hosts_are_proposed(self):
        """Where none of so many will do, all are asked at once, and why."""
        hosts = [f'h{number:02}' for number in range(60)]
        one = small.Filter(lambda _, spec: not spec.scheduler_hints)
        self.small.host_filters = (one,)
        self.assertEqual('', self.drain([1], ['a', *hosts], 'part'))
        # Two for how many hosts there are, about.
        some = own_queries.PROPOSED + 2 * destinations.WEIGHED
        self.assertEqual(61 + some + 60 + 61, len(one.asked))

    def test_its_own_filters_are_asked_about_some(self):
        """Of those where others arrive, too."""
        hosts = [f'h{number:03}' for number in range(100)]
        self.small.change = lambda cloud: cloud.under_way.update(
            {f'on {host}': {host} for host in hosts}
        )
        self.assertEqual('h000', self.drain([1], ['a', *hosts], 'part'))
        # All for those that are alike, as they are and as others arrive; the
        # best for how many there are, before and then, and for the place.
        some = destinations.WEIGHED + 2 * destinations._AT_ONCE + 1
        self.assertEqual(101 + 100 + some, len(self.small.filter.asked))

    def test_all_are_ordered_once(self):
        """Then those where servers came since, and the best of the others."""
        hosts = [f'h{number:03}' for number in range(100)]
        weighed = []

        def change(cloud):
            _note_weighed(cloud, weighed)
            cloud.under_way = {f'on {host}': {host} for host in hosts}

        self.small.change = change
        # Of equal hosts the one that took a server stays the best.
        expected = 'h000' * 4 + 'h001' * 4
        self.assertEqual(expected, self.drain([1] * 8, ['a', *hosts]))
        # For all that are alike, and with those that arrive.
        self.assertEqual([100, 100], [one for one in weighed if one > 9])

    def test_a_host_that_changed_loses_its_rank(self):
        """One that took a server is behind those that took none."""
        hosts = [f'h{number:03}' for number in range(100)]

        def change(cloud):
            cloud.under_way = {f'on {host}': {host} for host in hosts}
            for host in hosts:
                cloud.states[host].free_ram_mb = 9000

        self.small.change = change
        expected = ''.join(hosts[: destinations.WEIGHED + 2])
        number = destinations.WEIGHED + 2
        self.assertEqual(expected, self.drain([1] * number, ['a', *hosts]))

    def test_few_hosts_are_weighed_for_a_move(self):
        """However many changed: the best of each run, and the last few."""
        hosts = [f'h{number:03}' for number in range(100)]
        weighed = []

        def change(cloud):
            _note_weighed(cloud, weighed)
            for number, host in enumerate(hosts):
                cloud.states[host].free_ram_mb = 9000 - number

        self.small.change = change
        self.drain([1] * 60, ['a', *hosts])
        # For all that are alike; 52 changed when four runs became one.
        most = destinations.UNORDERED + 3 * destinations.WEIGHED
        self.assertEqual([100, 52], [one for one in weighed if one > most])

    @ddt.data('part', 'group')
    def test_its_own_question_decides(self, kind):
        """Of each host that its filters leave, the best first."""

        def require(_, spec):
            if spec.scheduler_hints or spec.instance_group:
                spec.flavor.extra_specs = {'trait:T': 'required'}

        self.small.request_filters.append(require)
        self.small.change = lambda cloud: setattr(
            cloud.server.providers['m'], 'traits', {'T'}
        )
        hints, group = (HINTS, 0) if kind == 'part' else (None, 'g')
        servers = [Server('a', 1, hints=hints, group=group)]
        self.assertEqual('m', self.drain(servers, 'abcdefghijklmn'))
        asked = self.small.cloud.server.asked
        asked = ' '.join(one for one in asked if 'candidates' in one)
        # nova asks for the host's own providers; each is asked once.
        asked = re.findall(r'\bin_tree=(\w+)', asked)
        self.assertEqual([*'bcdefghijklm'], asked)

    @ddt.data('whole', 'part')
    def test_request_filters_are_asked_once(self, kind):
        """They may ask Cinder; another plan asks anew."""
        asked = []
        self.small.request_filters.append(
            lambda _, spec: asked.append(spec.instance_uuid)
        )
        expected = {'whole': [1], 'part': [2, 1]}[kind]
        for _ in range(2):
            self.drain([1, 1], kind=kind)
            counts = collections.Counter(asked).values()
            self.assertEqual(expected, [*counts])
            asked.clear()

    def test_a_group_stands_where_its_members_moved(self):
        """Filters are asked again then; the request is left as it is."""
        seen = []

        def look(_, spec):
            group = spec.instance_group
            if group and spec.instance_uuid == 's1':
                place = sources.current.place({'s0': frozenset()})
                seen.append((sorted(group.hosts), place['s0']))

        self.small.request_filters.append(look)
        servers = [Server('a', 1, group='g')] * 2
        self.assertEqual('bc', self.drain(servers))
        self.assertEqual((['a', 'a'], frozenset()), seen[0])
        self.assertEqual((['a', 'b'], {'b'}), seen[-1])

    def test_like_servers_are_explained_once(self):
        """With the ports of one that is there; another plan asks anew."""
        seen = []

        def look(_, spec):
            has_ports = 'requested_networks' in spec
            ports = spec.requested_networks if has_ports else ()
            seen.append(has_ports and [one.port_id for one in ports])

        def plug(cloud):
            vif = model.VIF(id=uuids.port, network=model.Network(id=uuids.net))
            known = model.NetworkInfo([vif])
            for one in self.small.instances.values():
                one.info_cache = objects.InstanceInfoCache(network_info=known)

        self.small.request_filters.append(look)
        self.small.filter.most = 0
        self.small.change = plug
        for _ in range(2):
            seen.clear()
            self.drain([1, 1])
            self.assertEqual([False, [uuids.port]], seen)


class UsesOnlyTestCase(testtools.TestCase):
    def test_request(self):
        """Provider b is within a; d is shared."""
        cloud = clouds.Cloud('abcd')
        cloud.server.providers['d'].traits = {clouds.SHARES}
        for host, providers, expected in (
            ('a', 'ab', True),
            ('a', 'ad', False),
            # A host that shares what it has.
            ('d', 'd', True),
        ):
            given = dict.fromkeys(providers, {'VCPU': 1})
            found = clouds.make_request(**given), host, cloud
            self.assertIs(
                expected, own_queries.uses_own_providers(*found), providers
            )


class SharedTestCase(testtools.TestCase):
    def test_not_in_a_fork(self):
        """What is shared holds for the cloud as it is."""
        cloud = clouds.Cloud()
        places = destinations.Destinations(cloud)
        asked = places.answers.find, likeness.Key('x', True), clouds.make_spec
        with cloud.fork():
            error = self.assertRaises(RuntimeError, *asked)
        self.assertIn('expected the cloud as it is, got a fork', str(error))


class FilteredTestCase(small.TestCase):
    def test_request_filters_are_asked_once_of_a_server(self):
        """Until it is to leave other hosts out."""
        made, asked = self.small, []
        cloud = made.build('a=4 s=1+g; b=4')
        places, spec = destinations.Destinations(cloud), made.make_spec('s')
        like = places.answers.find(likeness.Key('x', False), spec.obj_clone)
        made.request_filters.append(lambda *_: asked.append(1))
        for number in (1, 2):
            spec.ignore_hosts = ['a'] * number
            for _ in range(2):
                places.find(movable.Evacuation('s', spec, like))
            self.assertEqual(number, len(asked))


class PageTestCase(testtools.TestCase):
    def test_survive_says_how_many_hosts_are_weighed(self):
        page = documentation.ROOT / 'doc/source/cli/limits.rst'
        text, most = ' '.join(page.read_text().split()), own_queries.PROPOSED
        best = f'only the {destinations.WEIGHED} hosts that were the best'
        self.assertIn(best, text)
        some = f'for a server with hints or in a group up to {most}.'
        self.assertIn(some, text)
