# SPDX-License-Identifier: Apache-2.0

"""How nova moves the servers of a host; its own checks are in functional."""

from unittest import mock

import ddt
from nova import objects
from nova import servicegroup

from nova_ext_sched.dryrun.decision import admission
from nova_ext_sched.dryrun.plan import departures
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import plans
from tests.unit.dryrun.plan import small


@ddt.ddt
class DrainTestCase(small.TestCase):
    """The servers of h1 go to h2."""

    def drain(self, servers, hosts='h2=9', **states):
        """Drain h1.

        :param states: the hypervisor of hosts, and its version
        """

        def change(cloud):
            for name, (kind, version) in states.items():
                fields = {'type': kind, 'version': version}
                for field, value in fields.items():
                    setattr(cloud.states[name], f'hypervisor_{field}', value)

        self.small.change = change
        return self.small.drain(f'h1=9 {servers}; {hosts}', 'h1')

    @ddt.data(
        ('live', 'live', ''),
        ('stopped', 'cold', 'stopped'),
        ('crashed', 'cold', 'stopped'),
        ('device', 'cold', 'device'),
        ('unlike', 'cold', 'refused'),
        # It may be running.
        ('pending', '', 'nova cannot move it: it is pending'),
        ('shelved', '', 'nova cannot move it: it is shelved'),
    )
    @ddt.unpack
    def test_live_or_cold(self, kind, how, why):
        """Of two that are alike, and of one of a group."""
        found = self.drain(f'a=1:{kind} b=1:{kind} c=1+g:{kind}')
        said = [(one.how, one.why) for one in found.moves]
        said += [('', one.said) for one in found.stuck]
        self.assertEqual(3 * [(how, why)], said)

    def test_not_where_it_is(self):
        """nova-conductor refuses that, live or cold."""
        for kind in ('live', 'stopped'):
            cloud = self.small.build(f'h1=9 a=1:{kind}; h2=9')
            leaving = [plans.Leaving('a', 'a', 'p', 'h1', [])]
            places = destinations.Destinations(cloud)
            prepared = departures.prepare(places, leaving)['a']
            allowed = [*filter(prepared.may_move_to, cloud.states.values())]
            self.assertEqual(['h2'], [state.host for state in allowed])

    @ddt.data(
        (('qemu', 5), ''),
        (('qemu', 6), ''),
        (('qemu', 4), 'older than 5 (h2: 4)'),
        (('xen', 9), 'of another type than qemu (h2: xen)'),
        (('qemu', 4),
         'of another type than qemu (h3: xen) or older than 5 (h2: 4)',
         ('xen', 5)),
        (('xen', 4), 'of another type than qemu (h2: xen, h3: xen)',
         ('xen', 5)),
    )  # fmt: skip
    @ddt.unpack
    def test_hypervisors(self, second, said, third=None):
        """A cold migration goes to any; others are conductor's matter."""
        hosts = {'h1': ('qemu', 5), 'h2': second}
        if third:
            hosts['h3'] = third
        text = 'h2=9; h3=9' if third else 'h2=9'
        for servers in ('a=1', 'a=1+g'):
            found = self.drain(servers, text, **hosts)
            self.assertEqual(not said, bool(found.moves))
            expected = f'the hypervisors of all hosts left are {said}'
            for one in found.stuck:
                self.assertEqual('hypervisor', one.cause)
                self.assertEqual(expected, one.said)
        for servers in ('a=1:device', 'a=1+g:device'):
            found = self.drain(servers, text, **hosts)
            self.assertEqual('a:h2', small.say(found.moves))

    def test_a_compute_node_that_is_gone(self):
        _, servers = described = small.parse('h1=9 a=1 b=1:device; h2=9')
        build = self.small.build

        def lose(_):
            cloud = build(described)
            for uuid in servers:
                self.small.instances[uuid].node = 'gone'
            return cloud

        self.small.build = lose
        stuck = self.small.drain(described, 'h1').stuck
        self.assertEqual('a b', small.name(stuck))
        for one in stuck:
            self.assertEqual('state', one.cause)
            self.assertIn('nova has no compute node of h1', one.said)
            self.assertIn('start nova-compute there', one.helps)

    def test_what_nova_is_asked(self):
        """A cold migration is not that of a live one; others as they are."""
        seen = []
        self.small.request_filters.append(
            lambda _, spec: seen.append((spec.user_id, spec.ignore_hosts))
        )
        self.drain('a=1 b=1:stopped c=1+g')
        asked = {(operation, *hosts) for operation, hosts in seen}
        expected = {('live',), ('cold',), ('live', 'h1', 'h1')}
        self.assertLessEqual(expected, asked)

    def test_a_host_that_is_down(self):
        """Its servers are like those there alone, and asked about."""
        with (
            mock.patch.object(admission, 'ask') as ask,
            mock.patch.object(
                objects.Service, 'get_by_compute_host', lambda _, host: host
            ),
            mock.patch.object(
                servicegroup.API, 'service_is_up', lambda _, host: host == 'h1'
            ),
        ):
            cloud = 'h1=9 a=1 b=1; h2=9 c=1 d=1; h3=9'
            self.small.drain(cloud, 'h1', 'h2')
        asked = [call.args[2].uuid for call in ask.call_args_list]
        self.assertEqual(['a', 'c'], asked)

    def test_equivalent_servers_are_asked_about_once(self):
        """Those of groups too, and each has its own group's destinations."""
        with mock.patch.object(admission, 'ask') as ask:
            found = self.small.drain(
                'h1=9 a=1 b=1+g c=1+k d=1; h2=9 e=1+g; h3=9 f=1+k', 'h1'
            )
        asked = [call.args[2].uuid for call in ask.call_args_list]
        self.assertEqual(['a', 'b'], sorted(asked))
        moves = small.say(found.moves).split()
        self.assertLessEqual({'b:h3', 'c:h2'}, {*moves})

    def test_one_that_nova_refuses_speaks_for_none(self):
        with mock.patch.object(
            admission, 'ask', side_effect=admission.NotMovable('no')
        ) as ask:
            found = self.drain('a=1+g b=1+k')
        self.assertEqual('a b', small.name(found.stuck))
        asked = {call.args[2].uuid for call in ask.call_args_list}
        self.assertEqual({'a', 'b'}, asked)
