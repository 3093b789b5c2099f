# SPDX-License-Identifier: Apache-2.0

"""What others do while isolation is set up."""

import contextlib
import unittest.mock

from nova_ext_sched.cli import progress
from nova_ext_sched.placement import client
from tests.functional import openstackclient
from tests.functional import test_osc_isolation

#: What sync gives a host.
GIVEN = {
    test_osc_isolation.WINDOWS,
    test_osc_isolation.record(test_osc_isolation.WINDOWS),
}


class UnderWayTest(test_osc_isolation.IsolationTestCase):
    """What others do while a sync runs, and syncs that end early."""

    def setUp(self):
        super().setUp()
        self.require(
            'windows', ['host1', 'host2', 'host3'], test_osc_isolation.WINDOWS
        )

    def before_put(self, number, action):
        """Call ``action`` before the numbered PUT of a provider's traits."""
        calls = []
        exchange = client.PlacementClient._exchange

        def acting(this, part, uuid, body=None):
            if body is not None:
                calls.append(body)
                if len(calls) == number:
                    action()
            return exchange(this, part, uuid, body)

        return unittest.mock.patch.object(
            client.PlacementClient, '_exchange', acting
        )

    def interrupted_after(self, steps):
        """Interrupt the command, as by Ctrl-C, after a number of steps."""
        calls = []

        def advance():
            calls.append(None)
            if len(calls) == steps:
                raise KeyboardInterrupt

        @contextlib.contextmanager
        def bar(*args, **kwargs):
            yield advance

        return unittest.mock.patch.object(progress, 'bar', bar)

    def test_run_again_and_again(self):
        self.the_token_expires()
        self.interrupted()
        self.another_gives_the_trait_meanwhile()
        self.assertEqual({'windows': []}, self.faults())
        self.another_takes_the_provider_away()

    def the_token_expires(self):
        def expire():
            self.openstack.user = openstackclient.EXPIRED

        with self.before_put(2, expire):
            rows = self.sync(status=1)
        self.assertEqual(
            ['done', 'done', 'done'], [row[3] for row in rows[:3]]
        )
        self.assertIn('does not accept the credentials', rows[3][3])
        self.assertEqual('not tried', rows[4][3])
        self.assertIn('does not accept the credentials', self.errors)
        self.assertIn('not tried: add traits (1)', self.errors)
        self.openstack.user = openstackclient.ADMIN
        self.assertEqual(GIVEN, self.traits('host1'))

    def interrupted(self):
        with self.interrupted_after(1):
            status, output, errors = self.openstack.run_apart(
                *test_osc_isolation.SYNC
            )
        self.assertEqual((130, ''), (status, output))
        self.assertIn(
            'Interrupted. Done: add traits (1); not tried: add traits (1).',
            errors,
        )
        self.assertEqual(GIVEN, self.traits('host2'))
        self.assertEqual(set(), self.traits('host3'))

    def another_gives_the_trait_meanwhile(self):
        """It stays, and is not ours."""

        def another():
            self.add_traits('host3', test_osc_isolation.WINDOWS, 'CUSTOM_MINE')

        with self.before_put(1, another):
            rows = self.sync()
        self.assertEqual(
            [('add traits', sorted(GIVEN), 'host3', 'done')], rows
        )
        self.assertEqual(
            {test_osc_isolation.WINDOWS, 'CUSTOM_MINE'}, self.traits('host3')
        )

    def another_takes_the_provider_away(self):
        def another():
            for path in ('/inventories', ''):
                self.placement.delete(
                    f'/resource_providers/{self.providers["host2"]}{path}',
                    version='1.5',
                )

        self.require('gpu', ['host2', 'host3'], test_osc_isolation.GPU)
        with self.before_put(1, another):
            rows = self.sync(status=1)
        results = {host: result for _, _, host, result in rows if host}
        self.assertIn('failed: placement does not have it', results['host2'])
        self.assertEqual('done', results['host3'])
        self.assertIn('failed: add traits (1)', self.errors)
