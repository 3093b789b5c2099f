# SPDX-License-Identifier: Apache-2.0

"""make-room beside every order of moves, on real clouds of few hosts.

Groups and hints, a limit of failure domains, zones and leases on four hosts,
on which nova then carries the plan out; NUMA cells and devices on two.
NOVA_EXT_SCHED_TEST_PLANS is the number of clouds of each kind, 3 by default.
"""

import itertools
import os
import random
from unittest import mock

import ddt

from nova_ext_sched.cmd import arguments
from nova_ext_sched.cmd import make_room as command
from nova_ext_sched.dryrun.plan import make_room
from tests.functional import test_make_room
from tests.long import devices
from tests.long import orders
from tests.long import test_promises_devices

CASES = int(os.environ.get('NOVA_EXT_SCHED_TEST_PLANS', '3'))
# CPUs of each host.
ROOM = 10
LEASED = {'reservation:lease': 'true'}
RULES = ('', 'anti-affinity', 'affinity', 'different_host', 'racks')
LIMIT = 'max_server_per_failure_domain'


class OrdersMixin:
    def assertBest(self, flavor, count, *argv):
        """Compare a plan with all moves that there are; return it.

        :param argv: more arguments of the command
        """
        parser = command.MakeRoom(mock.Mock(), None).get_parser('make-room')
        parsed_args = parser.parse_args(
            ('--flavor', flavor, '--count', f'{count}', *argv)
        )
        with arguments.read_cloud(parsed_args) as cloud:
            wanted = arguments.make_question(parsed_args, flavor=flavor)
            plan = make_room.make(cloud, wanted, count)
            every = orders.Orders(cloud, wanted, count)
            moves = [(one.server, one.to) for one in plan.moves]
            # Never too many.
            with every.moved(moves):
                for order in {*itertools.permutations(plan.room_on)}:
                    self.assertTrue(every.takes(order), (order, plan))
            self.assertEqual(every.count_new([]), plan.fit_now, plan)
            # And never fewer.
            most = every.search(plan.room_on[: plan.fit_now])
        made = len(plan.room_on)
        fewest = len(every.best.get(made, ()))
        print('ORDERS', plan.fit_now, made, most, len(moves), fewest)
        self.assertLessEqual(most, made, (every.best, plan))
        self.assertLessEqual(len(moves), fewest + 2, plan)
        return plan


@ddt.ddt
class CloudTestCase(OrdersMixin, test_make_room.RoomTestCase):
    """host1 and host2 are one rack; one host is leased, one a zone."""

    host_filters = (
        *test_make_room.RoomTestCase.host_filters,
        'DifferentHostFilter',
    )

    @ddt.data(*range(CASES))
    def test_random_clouds(self, seed):
        choose = random.Random(seed)
        rule = choose.choice(RULES)
        size, count = choose.choice([5, 6, 7]), choose.choice([1, 2, 2])
        leased, zoned, *_ = choose.sample(sorted(self.weights), 4)
        hints, number = {}, choose.choice([1, 1, 2])
        if rule not in ('', 'different_host'):
            policy = rule if rule == 'affinity' else 'anti-affinity'
            hints = {'group': self.create_group(policy=policy)}
            number = choose.choice([0, 1]) if rule == 'affinity' else number
        self.aggregate('zone', [zoned], zone='east')
        mates, servers = [], []
        for host in choose.sample(sorted(self.weights), 4):
            free = ROOM
            # Hardly any host takes a new one as it is.
            while free >= size or choose.random() < 0.1:
                vcpu = min(free, choose.choice([1, 2, 2, 3, 3, 4]))
                is_mate = free == ROOM and len(mates) < number
                is_leased = choose.random() < (0.6 if host == leased else 0.1)
                is_zoned = host == zoned and choose.random() < 0.4
                free -= vcpu
                servers.append(
                    self.boot(
                        flavor=self.flavor(
                            vcpu=vcpu, specs=LEASED if is_leased else {}
                        ),
                        az=f'{"east" if is_zoned else "nova"}:{host}',
                        hints=hints if is_mate else {},
                    )
                )
                mates += [servers[-1]] if is_mate else []
                if not free or choose.random() < 0.1:
                    break
        self.aggregate('lease', [leased], metadata=LEASED)
        racks = {'host1': 'rack1', 'host2': 'rack1'}
        for host in self.weights:
            rack = racks.get(host, host)
            self.aggregate(f'rack of {host}', [host], failure_domain=rack)
        self.rack_limit = int(rule == 'racks')
        self.turn_on()
        if rule == 'different_host' and mates:
            hints = {'different_host': [one['id'] for one in mates]}
        specs = LEASED if choose.random() < 0.1 else {}
        flavor = self.flavor(vcpu=size, specs=specs)
        argv = [
            f'--hint={key}={one}'
            for key, value in hints.items()
            for one in ([value] if key == 'group' else value)
        ]
        print('CLOUD', seed, rule, len(servers), size, count)
        self.assertBest(flavor, count, *argv)
        plan = self.ask(flavor, count, *argv, status=None)
        choose.shuffle(plan['room_on'])
        self.take_room(flavor, plan, hints=hints)


@ddt.ddt
class CellsTestCase(
    OrdersMixin, test_promises_devices.DevicesMixin, devices.DevicesBase
):
    """Each of two cells has six pinned CPUs; the second has three devices."""

    dedicated = '0-11'
    test_promises = None
    hosts = ('host1', 'host2')

    @ddt.data(*range(CASES))
    def test_random_clouds(self, seed):
        choose = random.Random(seed)
        for host in self.hosts:
            specs, used = choose.choice([{}, test_promises_devices.NIC]), 0
            # So many fit, whichever cells nova chooses.
            while used < 8 and choose.random() < 0.95:
                vcpu = min(8 - used, choose.choice([2, 3, 3, 4]))
                used += vcpu
                flavor = self.large(vcpu, **devices.PINNED, **specs)
                self.boot_stopped(flavor=flavor, host=host)
                specs = {}
        specs = choose.choice([{}, test_promises_devices.NIC])
        flavor = self.large(
            choose.choice([4, 5, 6]), **devices.PINNED, **specs
        )
        self.assertBest(flavor, choose.choice([1, 2]))


class CellsInPlacementTestCase(CellsTestCase):
    """The same with devices that are providers in placement."""

    in_placement = True
