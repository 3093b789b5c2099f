# SPDX-License-Identifier: Apache-2.0

"""What others do while isolation is set up."""

import contextlib
import unittest.mock

from nova_ext_sched.cli import progress
from nova_ext_sched.placement import client
from tests.functional import openstackclient
from tests.functional import test_osc_isolation


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
        def bar(*args):
            yield advance

        return unittest.mock.patch.object(progress, 'bar', bar)

    def test_what_another_gives_meanwhile_stays_and_is_not_ours(self):
        def another():
            self.add_traits('host2', test_osc_isolation.WINDOWS, 'CUSTOM_MINE')

        with self.before_put(2, another):
            rows = self.sync()
        self.assertEqual({'done'}, {row[3] for row in rows})
        self.assertEqual(
            {test_osc_isolation.WINDOWS, 'CUSTOM_MINE'}, self.traits('host2')
        )
        self.assertEqual(
            {
                test_osc_isolation.WINDOWS,
                test_osc_isolation.record(test_osc_isolation.WINDOWS),
            },
            self.traits('host1'),
        )

    def test_another_takes_the_provider_away(self):
        def another():
            for path in ('/inventories', ''):
                self.placement.delete(
                    f'/resource_providers/{self.providers["host2"]}{path}',
                    version='1.5',
                )

        with self.before_put(2, another):
            rows = self.sync(status=1)
        results = {host: result for _, _, host, result in rows if host}
        self.assertEqual('done', results['host1'])
        self.assertIn('failed: placement does not have it', results['host2'])
        self.assertEqual('done', results['host3'])
        self.assertIn('failed: add traits (1)', self.errors)

    def test_interrupted_and_run_again(self):
        # Two traits are created, and a host is given its trait.
        with self.interrupted_after(3):
            status, output, errors = self.openstack.run_apart(
                *test_osc_isolation.SYNC
            )
        self.assertEqual((130, ''), (status, output))
        self.assertIn(
            'Interrupted. Done: create trait (2), add traits (1); not tried: '
            'add traits (2).',
            errors,
        )
        self.assertEqual(
            {
                test_osc_isolation.WINDOWS,
                test_osc_isolation.record(test_osc_isolation.WINDOWS),
            },
            self.traits('host1'),
        )
        self.assertEqual(set(), self.traits('host2'))
        self.assertEqual(
            [
                (
                    'add traits',
                    [
                        test_osc_isolation.WINDOWS,
                        test_osc_isolation.record(test_osc_isolation.WINDOWS),
                    ],
                    'host2',
                    'done',
                ),
                (
                    'add traits',
                    [
                        test_osc_isolation.WINDOWS,
                        test_osc_isolation.record(test_osc_isolation.WINDOWS),
                    ],
                    'host3',
                    'done',
                ),
            ],
            self.sync(),
        )
        self.assertEqual({'windows': []}, self.faults())

    def test_the_token_expires_and_the_command_is_run_again(self):
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
        self.sync()
        self.assertEqual({'windows': []}, self.faults())
