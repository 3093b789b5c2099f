# SPDX-License-Identifier: Apache-2.0

"""Limits of failure domains where a stage or a cell is missing."""

import contextlib
import threading
from unittest import mock

from nova import utils
from nova.compute import manager as compute_manager
from nova.conductor import manager as conductor_manager

from tests.functional import test_failure_domain

at_most = test_failure_domain.at_most
DIFFERENT = test_failure_domain.DIFFERENT


class OneRequestTest(test_failure_domain.FailureDomainsTestCase):
    def test_picks_and_members_count_together(self):
        # nova's filter takes the hosts of the picks from the candidates.
        group = self.create_group()
        self.boot_in(group, at_most('2'))
        self.assertEqual(
            ['none'] * 4, self.hosts_of_one_request(group, at_most('2'), 4)
        )
        self.assertEqual(
            ['a2', 'b1', 'b2'],
            self.hosts_of_one_request(group, at_most('2'), 3),
        )
        self.assertEqual([None], self.hosts(group, at_most('2'), 1))

    def test_placed_a_moment_ago(self):
        """nova-compute has not yet claimed the first server."""
        claimed = threading.Event()
        manager = self.computes['a1'].manager
        build = manager._do_build_and_run_instance

        def hold(*args, **kwargs):
            claimed.wait(30)
            return build(*args, **kwargs)

        group = self.create_group()
        with mock.patch.object(
            manager, '_do_build_and_run_instance', side_effect=hold
        ) as held:
            first = self.post(group, test_failure_domain.DIFFERENT)
            self._wait_for_assert(held.assert_called_once)
            second = self.boot_in(group, test_failure_domain.DIFFERENT)
            claimed.set()
            first = self._wait_for_state_change(first, 'ACTIVE')
        self.assertEqual('a1', self.host_of(first))
        self.assertEqual('b1', self.host_of(second))


class CellsTest(test_failure_domain.FailureDomainsTestCase):
    """A rack whose hosts are in two cells."""

    NUMBER_OF_CELLS = 2
    started = ('a1', 'a2', 'b1')
    cells = {'a2': 'cell2', 'b1': 'cell2'}

    def test_one_server_a_rack(self):
        self.assertEqual(
            ['a1', 'b1', None],
            self.hosts(self.create_group(), test_failure_domain.DIFFERENT, 3),
        )

    def test_a_cell_that_was_just_disabled(self):
        """nova-scheduler, which is not told, places a server there.

        Conductor has not created it when the next one is placed. Rack a is
        full then, and a1 the best host.
        """
        group = self.create_group()
        mapping = self.cell_mappings['cell2']
        mapping.disabled = True
        mapping.save()
        schedule = conductor_manager.ComputeTaskManager._schedule_instances
        hosts = []

        def schedule_two(*args, **kwargs):
            selections = schedule(*args, **kwargs)
            if not hosts:
                hosts.append(selections[0][0].service_host)
                hosts.extend(
                    self.hosts(group, test_failure_domain.DIFFERENT, 1)
                )
            return selections

        with mock.patch.object(
            conductor_manager.ComputeTaskManager,
            '_schedule_instances',
            schedule_two,
        ):
            self.boot_in(group, test_failure_domain.DIFFERENT, host='a2')
        self.assertEqual(['a2', 'b1'], hosts)


class MoveTest(test_failure_domain.PairTestCase):
    @contextlib.contextmanager
    def boot_meanwhile(self, method):
        """Boot a server of the group when nova-compute comes to a method.

        Yields a list that gets the host of that server.
        """
        original = getattr(compute_manager.ComputeManager, method)
        calls, hosts = [], []

        def boot_first(*args, **kwargs):
            calls.append(args)
            if len(calls) == 1:
                hosts.extend(self.hosts(self.group, DIFFERENT, 1))
            return original(*args, **kwargs)

        with mock.patch.object(
            compute_manager.ComputeManager, method, boot_first
        ):
            yield hosts

    def test_what_counts_meanwhile(self):
        self.aggregate('rack c', ['loose'], failure_domain='c')
        self._migrate_server(self.server)
        self.assertEqual('loose', self.host_of(self.server))
        # Both ends; a revert counts at the source.
        with self.boot_meanwhile('_finish_revert_resize') as hosts:
            self.act(self.server, 'revertResize', 'ACTIVE')
        self.assertEqual([None], hosts)
        self.assertEqual('a1', self.host_of(self.server))
        self._migrate_server(self.server)
        self.assertEqual([None], self.hosts(self.group, DIFFERENT, 1))
        self._confirm_resize(self.server)
        self.set_metadata('rack c', {'failure_domain': None})
        # Unshelving counts before nova-compute claims.
        self._shelve_server(self.server)
        with self.boot_meanwhile('_prep_block_device') as hosts:
            self._unshelve_server(self.server)
        self.assertEqual([None], hosts)
        self.assertEqual('a1', self.host_of(self.server))


class EveryMoveTest(test_failure_domain.PairTestCase):
    def start_a2(self):
        self.start_service('compute', host='a2')
        self.add_host('rack a', 'a2')

    def test_moves(self):
        # A rebuild asks nothing.
        for rack in 'ab':
            self.set_metadata(f'rack {rack}', {'failure_domain': None})
        # From 2.100 on the answer has the hint of the group, which nova 31
        # takes for invalid.
        with utils.temporary_mutation(self.api, microversion='2.99'):
            self._rebuild_server(self.server, self.image())
        for rack in 'ab':
            self.set_metadata(f'rack {rack}', {'failure_domain': rack})
        self.flags(allow_resize_to_same_host=True)
        self._resize_server(self.server, self.flavor())
        self._confirm_resize(self.server)
        self.assertEqual('a1', self.host_of(self.server))
        self.start_a2()
        self._migrate_server(self.server)
        self._confirm_resize(self.server)
        self.assertEqual('a2', self.host_of(self.server))
        self._live_migrate(self.server)
        self.assertEqual('a1', self.host_of(self.server))
        self._shelve_server(self.server)
        # Its place in rack a is taken meanwhile.
        self.assertEqual(['a1'], self.hosts(self.group, DIFFERENT, 1))
        self.act(self.server, 'unshelve')
        self.wait_until_idle(self.server)
        self.assertIsNone(self.host_of(self.server))

    def test_evacuate(self):
        self.start_a2()
        self.lose('a1')
        self._evacuate_server(self.server, expected_host='a2')
        self.assertCannotMigrate(self.server)
