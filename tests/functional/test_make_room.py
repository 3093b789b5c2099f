# SPDX-License-Identifier: Apache-2.0

"""Room for new servers: nova makes the moves, and then takes each."""

from nova_ext_sched.cmd import make_room
from tests.functional import explain
from tests.functional import plans


class RoomTestCase(plans.PlanTestCase):
    """nova prefers the first hosts, which the moves would fill."""

    weights = {f'host{n}': 700 - n for n in range(1, 5)}

    def stand(self, **sizes):
        """Let servers of so many CPUs stand on hosts; return them by name.

        :param sizes: of each host
        """
        flavors = {
            size: self.flavor(vcpu=size)
            for size in {one for each in sizes.values() for one in each}
        }
        return {
            host: [
                self.boot(flavor=flavors[size], az=f'nova:{host}')
                for size in each
            ]
            for host, each in sizes.items()
        }

    def ask(self, flavor, number, *argv, status=0):
        """Return the document of so many servers of a flavor.

        :param status: of the command; None for any that says how many fit
        """
        self.turn_on()
        arguments = ('--flavor', flavor, '--count', f'{number}')
        found = explain.ask(make_room.MakeRoom, 'make-room', *arguments, *argv)
        statuses = (0, 3) if status is None else (status,)
        self.assertIn(found.status, statuses, found)
        return found.plan

    def take_room(self, flavor, plan, **server):
        """Carry out a plan, create its servers, and return these.

        :param server: see ``boot``
        """
        self.carry_out(plan)
        self.sync_instances()
        made = []
        for host in plan['room_on']:
            made.append(self.boot(flavor=flavor, host=host, **server))
            self.assertEqual(host, self.host_of(made[-1]))
        return made

    def assertRoom(self, flavor, plan, **server):
        """Let a plan keep its promise, and nova find no more room."""
        self.take_room(flavor, plan, **server)
        self.assertNoValidHost(flavor=flavor, **server)


class TriedTestCase(RoomTestCase):
    def test_explain_tries_it(self):
        self.stand(host1=[4], host2=[4], host3=[4], host4=[4])
        flavor = self.flavor(vcpu=7)
        arguments = ('--flavor', flavor, '--try')
        plan = explain.read(*arguments).document['make_room']
        self.assertRegex(
            plan['sentence'], r'1 move makes room, on host[1-4]\.\Z'
        )
        self.assertIn(plan['sentence'], explain.run(*arguments).out)
        self.take_room(flavor, plan)
        # It fits nowhere else, whatever moves.
        document = explain.read('--flavor', self.flavor(vcpu=11), '--try')
        room = document.document['make_room']
        self.assertIn('No moves make room for it.', room['sentence'])
        self.assertEqual([], room['moves'])


class MakeRoomTestCase(RoomTestCase):
    def test_room_for_two_where_one_fits(self):
        """A stopped server, and a host whose reservation keeps both away."""
        servers = self.stand(
            host1=[4, 2], host2=[5, 1, 1], host3=[2], host4=[1, 1]
        )
        _, running, stopped = servers['host2']
        self.act(stopped, 'os-stop', 'SHUTOFF')
        self.aggregate(
            'lease', ['host4'], metadata={'reservation:lease': 'true'}
        )
        flavor = self.flavor(vcpu=5)
        for argv, number, said in (
            ((), 3, '1 of 3 fits now. 3 moves make room for the other 2, on '),
            ((), 4, '1 of 4 fits now. 3 moves make room for 2 more, on '),
            (('--host', 'host1', '--host', 'host4'), 3,
             '0 of 3 fit now. 2 moves make room for 2 more, on host1. '
             'No moves make room for the other. 0 of 4 hosts can take it. '),
            (('--no-aggregate-property', 'lease', 'reservation:lease'), 2,
             '2 of 2 fit now, and no server has to move.'),
            (('--aggregate', 'lease'), 1, '0 of 1 fit now. No moves make'),
        ):  # fmt: skip
            with self.subTest(said):
                status = 3 if 'No moves' in said or '2 more' in said else 0
                plan = self.ask(flavor, number, *argv, status=status)
                self.assertIn(said, plan['answer']['sentence'])
        plan = self.ask(flavor, 3)
        self.assertEqual(
            {
                (servers['host1'][1]['id'], 'host1', 'live'),
                (running['id'], 'host2', 'live'),
                (stopped['id'], 'host2', 'cold'),
            },
            {
                (one['server'], one['host'], one['method'])
                for one in plan['moves']
            },
        )
        self.assertEqual(['host3', 'host1', 'host2'], plan['room_on'])
        self.assertRoom(flavor, plan)

    def test_what_would_help(self):
        """After it the room is there, and not before."""
        self.stand(host1=[10], host2=[10], host3=[10], host4=[10])
        flavor = self.flavor(vcpu=2)
        plan = self.ask(flavor, 1, status=3)
        self.assertIn('free 2 VCPU on one of host1', plan['would_help'])
        self.assertIn('add a host like host', plan['would_help'])
        self._start_compute('host5')
        self.assertEqual(1, self.ask(flavor, 1)['fit_now'])

    def test_anti_affinity_group(self):
        """The room of a host is of no use where a member stands."""
        hints = {'group': self.create_group()}
        flavor = self.flavor(vcpu=5)
        self.boot(flavor=flavor, hints=hints, az='nova:host4')
        self.stand(host1=[4, 2], host2=[3, 3], host3=[9])
        self.turn_on()
        group = hints['group']
        plan = self.ask(flavor, 3, '--server-group', group, status=3)
        self.assertEqual(0, plan['fit_now'])
        self.assertEqual(['host1', 'host2'], sorted(plan['room_on']))
        self.assertRoom(flavor, plan, hints=hints)

    def test_no_move_takes_a_promised_host(self):
        """The only place of the member is where a new one is to come."""
        hints = {'group': self.create_group()}
        self.stand(host1=[3], host2=[1], host3=[10], host4=[10])
        small = self.flavor(vcpu=2)
        self.boot(flavor=small, hints=hints, az='nova:host1')
        flavor, group = self.flavor(vcpu=6), hints['group']
        plan = self.ask(flavor, 2, '--server-group', group, status=3)
        self.assertEqual((['host2'], []), (plan['room_on'], plan['moves']))
        self.assertRoom(flavor, plan, hints=hints)

    def test_failure_domains(self):
        """Of each rack of two hosts one takes a new server."""
        for rack, hosts in (
            ('a', ('host1', 'host2')),
            ('b', ('host3', 'host4')),
        ):
            self.aggregate(rack, hosts, failure_domain=rack)
        self.rack_limit = 1
        hints = {'group': self.create_group()}
        self.stand(host2=[1], host3=[5], host4=[5])
        flavor, group = self.flavor(vcpu=6), hints['group']
        plan = self.ask(flavor, 4, '--server-group', group, status=3)
        self.assertEqual(1, plan['fit_now'])
        racks = [
            {'host1': 'a', 'host2': 'a'}.get(host, 'b')
            for host in plan['room_on']
        ]
        self.assertEqual(['a', 'b'], racks)
        self.assertRoom(flavor, plan, hints=hints)

    def test_what_a_server_holds(self):
        """Its flavor says more than its row; none is as large as a host."""
        override = self.flavor(**{'specs': {'resources:VCPU': '6'}})
        self.stand(host1=[3], host2=[10], host3=[10], host4=[3])
        server = self.boot(flavor=override, az='nova:host1')
        flavor = self.flavor(vcpu=7)
        plan = self.ask(flavor, 1, '--host', 'host1')
        self.assertEqual([(server['id'], 'host1', 'host4')], self.moves(plan))
        self.assertRoom(flavor, plan)
        name = self.flavor(vcpu=11)
        plan = self.ask(name, 1, status=3)
        most = 'the largest host gives one server 10 vCPUs'
        self.assertEqual(most, plan['never'])
        said = f'{plan["flavor"]} can never fit: {plan["never"]}.'
        self.assertEqual(said, plan['answer']['sentence'])
