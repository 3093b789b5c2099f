# SPDX-License-Identifier: Apache-2.0

"""Whether a server moves live: nova's own tests of devices are the truth.

Before each live migration of theirs drain is asked, and it says ``live`` where
nova then makes it.
"""

from nova.tests import fixtures as nova_fixtures
from nova.tests.functional.libvirt import test_pci_sriov_servers

from nova_ext_sched.cmd import drain
from tests import releases
from tests.functional import base
from tests.functional import explain

# Older releases of nova refuse every device of a flavor.
REFUSED = 'test_live_migrate_server_with_VF'
if releases.MOVES_DEVICES:
    REFUSED += '_legacy'


class LiveMixin(base.PluginMixin):
    def setUp(self):
        super().setUp()
        self.useFixture(nova_fixtures.AllServicesCurrent())

    def _live_migrate(self, server, *args, **kwargs):
        host = self.api.get_server(server['id'])['OS-EXT-SRV-ATTR:host']
        found = explain.ask(drain.Drain, 'drain', host).plan
        self.kinds = [one['method'] for one in found['moves']]
        self.said = found['answer']['sentence']
        self.shut_down = found['shut_down']
        moved = super()._live_migrate(server, *args, **kwargs)
        self.assertEqual(['live'], self.kinds, found)
        return moved


def choose(nova_class, *names):
    """Return a class of some of nova's tests."""
    others = {
        name: None
        for name in dir(nova_class)
        if name.startswith('test_') and name not in names
    }
    return type('Chosen', (LiveMixin, nova_class), others)


class SRIOVTestCase(
    choose(
        test_pci_sriov_servers.SRIOVServersTest,
        'test_live_migrate_VF_success',
        REFUSED,
        'test_live_migrate_server_with_neutron',
    )
):
    def test_live_migrate_server_with_VF_legacy(self):
        """nova refuses it: its alias is not ``live_migratable``."""
        getattr(super(), REFUSED)()
        self.assertEqual(['cold'], self.kinds)
        self.assertIn(
            '1 of 1 server can be moved; 1 running server is shut down for '
            'it (it has a device).',
            self.said,
        )
        self.assertEqual(1, len(self.shut_down))
