# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import fixtures
import testtools

from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.plan import departures
from nova_ext_sched.dryrun.plan import destinations
from nova_ext_sched.dryrun.plan import movable
from nova_ext_sched.dryrun.plan import plans
from tests.unit.dryrun.plan import small

CLOUD = 'h1=9 a=1 b=1; h2=9 c=1; h3=9 d=1 e=1; h4=9'


class MigrationsTestCase(testtools.TestCase):
    """How the servers that move are read."""

    def prepare(self, wanted='abcde', change=lambda cloud: None, read=None):
        """Return what is prepared; self.asked has cells, hosts and servers."""
        made = self.useFixture(small.Small())
        cloud = made.build(CLOUD)
        change(cloud)
        self.asked = []
        take = read or servers.Reader.read_on

        def read_on(reader, cell, hosts, wanted, attrs):
            self.asked.append((cell, ''.join(hosts), ''.join(wanted)))
            return take(reader, cell, hosts, wanted, attrs)

        places = destinations.Destinations(cloud)
        leaving = [
            plans.make_leaving(made.instances[uuid], made.servers[uuid].host)
            for uuid in wanted
        ]
        with (
            mock.patch.object(servers.Reader, 'read_on', read_on),
            mock.patch.object(servers, 'PAGE', 3),
        ):
            return departures.prepare(places, leaving)

    def test_hosts_are_read_together(self):
        """As long as they have no more servers than a page."""
        prepared = self.prepare('deabc')
        self.assertEqual([*'abcde'], sorted(prepared))
        expected = [('cell1', 'h1h2', 'abc'), ('cell1', 'h3', 'de')]
        self.assertEqual(expected, self.asked)
        # Servers that stay are not read.
        self.prepare('bd')
        self.assertEqual([('cell1', 'h1h3', 'bd')], self.asked)

    def test_no_other_cell_is_asked(self):
        def add(cloud):
            cloud.cells['cell2'] = mock.Mock(uuid='cell2')
            found = {'cell1': set(), 'cell2': set()}
            cloud.ask_cells = lambda *_: found

        self.prepare('ab', add)
        self.assertEqual([('cell1', 'h1', 'ab')], self.asked)

        def lose(cloud):
            add(cloud)
            cloud.nodes_of = lambda host: ()

        # A host without a compute node may be in any.
        self.prepare('ab', lose)
        self.assertEqual(
            [(cell, 'h1', 'ab') for cell in ('cell1', 'cell2')], self.asked
        )

    def test_a_cell_that_fails(self):
        """Each server is then prepared alone."""

        def fail(*_):
            raise cells.CellFailed(cell='cell1', cause='away')

        alone = self.prepare(read=fail)
        self.assertEqual(2, len(self.asked))
        self.assertEqual([*'abcde'], sorted(alone))
        for one in alone.values():
            self.assertIsInstance(one, movable.Migration)


class EvacuationsTestCase(testtools.TestCase):
    """How the servers of hosts that fail are read."""

    def setUp(self):
        super().setUp()
        cloud = self.cloud = self.useFixture(small.Small()).build(CLOUD)
        self.useFixture(fixtures.MockPatchObject(servers, 'PAGE', 3))
        # Hosts that were read; a cell that does not answer.
        self.asked, self.silent = [], ''
        take = servers.Reader.read_on

        def read_on(reader, cell, hosts, attrs):
            self.asked.append(''.join(hosts))
            if cell == self.silent:
                raise cells.CellFailed(cell=cell, cause='away')
            return take(reader, cell, hosts, attrs=attrs)

        self.useFixture(
            fixtures.MockPatchObject(servers.Reader, 'read_on', read_on)
        )
        self.evacuations = departures.Evacuations(
            destinations.Destinations(cloud)
        )
        self.evacuations.expect({'cell1': {'h1': 2, 'h2': 1, 'h3': 2}})

    def read(self, host):
        read = self.evacuations.read('cell1', host)
        return ''.join(one.uuid for one in read)

    def test_hosts_are_read_together(self):
        """Each has its own servers, and is read again if it fails again."""
        found = [self.read(host) for host in ('h1', 'h2', 'h3')]
        self.assertEqual(['ab', 'c', 'de'], found)
        self.assertEqual(['h1h2', 'h3'], self.asked)
        self.assertEqual(['c', 'ab'], [self.read('h2'), self.read('h1')])
        self.assertEqual(['h2', 'h1'], self.asked[2:])

    def test_one_that_nobody_expects(self):
        self.evacuations.expect({})
        self.assertEqual(('ab', ''), (self.read('h1'), self.read('h4')))
        self.assertEqual(['h1', 'h4'], self.asked)

    def test_a_cell_that_fails(self):
        """No host of it counts as empty."""
        self.silent = 'cell1'
        for host in ('h1', 'h2', 'h1'):
            self.assertRaises(cells.CellFailed, self.read, host)
        self.silent = ''
        self.assertEqual(['ab', 'c'], [self.read('h1'), self.read('h2')])

    def test_a_cell_that_fails_after_a_page(self):
        """No host of the page counts, as if it had been read alone."""
        self.assertEqual('ab', self.read('h1'))
        self.silent = 'cell1'
        self.cloud.silent_cells['cell1'] = 'away'
        self.assertRaises(cells.CellFailed, self.read, 'h2')
