# SPDX-License-Identifier: Apache-2.0

import gc

import fixtures
from nova import objects
from nova.scheduler import host_manager
import testtools

from nova_ext_sched.queries import host_managers


class Manager(host_manager.HostManager):
    """As nova's, which reads the cells first."""

    def __init__(self, *cells, loads=host_managers.remember):
        self.enabled_cells = [objects.CellMapping(uuid=one) for one in cells]
        loads()


class HostManagersTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        path = 'nova_ext_sched.queries.host_managers._loaded'
        new = type(host_managers._loaded)()
        self.useFixture(fixtures.MonkeyPatch(path, new))

    def test_cells(self):
        self.assertFalse(host_managers.place_in('c1'))
        manager = Manager('c1', 'c2')
        self.assertTrue(host_managers.place_in('c2'))
        # At SIGHUP nova reads them again.
        del manager.enabled_cells[1]
        self.assertTrue(host_managers.place_in('c1'))
        self.assertFalse(host_managers.place_in('c2'))
        del manager
        gc.collect()
        self.assertFalse(host_managers.place_in('c1'))

    def test_who_calls(self):
        """Only a HostManager, while it is made."""

        class Another:
            def __init__(self):
                self.enabled_cells = [objects.CellMapping(uuid='c1')]
                host_managers.remember()

        one = Another()
        manager = Manager('c2', loads=lambda: None)
        host_managers.remember()
        for cell in ('c1', 'c2'):
            self.assertFalse(host_managers.place_in(cell), (one, manager))
