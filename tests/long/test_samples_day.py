# SPDX-License-Identifier: Apache-2.0

"""What the page of the operator's day shows, of a cloud of 300 hosts."""

import random

import sqlalchemy as sa

from tests import samples
from tests.benchmarks import many_hosts
from tests.benchmarks import standing
from tests.functional import test_look_first
from tests.long import pages

RACKS = 12
# Servers that fill a host.
MOST = 7


def count_servers(number, chance):
    """Return how many servers a host has; older racks are fuller."""
    return min(MOST, chance.randrange(10 - number % RACKS // 2))


class DayTestCase(pages.PagesMixin, many_hosts.ManyHostsTestCase):
    """host0 and 299 copies of it, in twelve racks of 25.

    nova.conf has no line of the package, as on the first day.
    """

    plugin = test_look_first.NovaConf
    hosts = 299
    servers_of_a_host = 0
    racks = RACKS

    def set_services(self, *hosts, **columns):
        """Write columns of the rows of some hosts' nova-compute."""
        engine, table = self.table('nova_cell1.services')
        with engine.begin() as connection:
            connection.execute(
                sa.update(table).where(table.c.host.in_(hosts)).values(columns)
            )

    @samples.compares('admin/day/capacity.txt')
    def test_the_page(self):
        self.remove_host('rack0', 'host0')
        self.add_host(f'rack{RACKS - 1}', 'host0')
        for flavor in self.admin_api.get_flavors():
            self.admin_api.delete_flavor(flavor['id'])
        flavor = self.flavor(name='m1.large', vcpu=2, memory_mb=1024, disk=20)
        server = self.boot(flavor=flavor, host='host0')
        chance = random.Random(7)
        standing.copy(
            self,
            [server['id']],
            [
                standing.Place(0, number)
                for number in range(self.hosts)
                for _ in range(count_servers(number, chance))
            ],
        )
        self.set_services('copy17', 'copy101', disabled=True)
        self.set_services('copy64', forced_down=True)
        self.show(
            'admin/day/capacity.txt',
            'nova-ext-sched capacity --flavor m1.large --map',
        )
