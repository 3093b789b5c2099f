# SPDX-License-Identifier: Apache-2.0

"""Limits of failure domains where a stage or a cell is missing."""

import contextlib
import threading
from unittest import mock

from nova.compute import manager as compute_manager
from oslo_db import exception as db_exception

from nova_ext_sched.queries import group_members
from tests.functional import test_failure_domain

at_most = test_failure_domain.at_most


class OneRequestTest(test_failure_domain.FailureDomainsTestCase):
    def test_picks_and_members_count_together(self):
        # nova's filter takes the hosts of the picks from the candidates.
        group = self.create_group()
        self.boot_in(group, at_most('2'))
        self.assertEqual(
            ['none'] * 4,
            self.hosts_of_one_request(group, at_most('2'), 4),
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


class BoundTest(test_failure_domain.FailureDomainsTestCase):
    host_filters = ('FailureDomainFilter', 'IsolatedAggregatesFilter')
    options = {
        'enable_isolated_aggregate_filtering': True,
        'max_forbidden_aggregates': 2,
    }

    def test_the_bound_holds_together_with_isolation(self):
        isolated = self.isolate('windows', ['loose'], 'HW_CPU_X86_VMX')
        self.set_metadata('windows', {'failure_domain': 'w'})
        group = self.create_group(9)
        self.assertEqual(
            ['a1', 'b1', None],
            self.hosts(group, test_failure_domain.DIFFERENT, 3),
        )
        # Racks a and b are full, and only one of them goes in.
        (forbidden,) = self.member_of()
        uuids = set(forbidden.removeprefix('!in:').split(','))
        self.assertEqual(2, len(uuids))
        self.assertIn(isolated, uuids)
        self.assertIn(
            'FailureDomainFilter checks the hosts of the other 1: ', self.log
        )
        self.assertRegex(
            self.log,
            'FailureDomainFilter rejected 2 of 2 hosts: 2 because failure '
            f'domain [ab] holds 1 server of server group {group} and the '
            f'limit is 1',
        )


class CellsTest(test_failure_domain.FailureDomainsTestCase):
    """A rack whose hosts are in two cells."""

    NUMBER_OF_CELLS = 2
    started = ('a1', 'a2', 'b1')
    cells = {'a2': 'cell2', 'b1': 'cell2'}

    def test_a_cell_that_does_not_answer(self):
        self.assertEqual(
            ['a1', 'b1', None],
            self.hosts(self.create_group(), test_failure_domain.DIFFERENT, 3),
        )
        group = self.create_group()
        self.boot_in(group, test_failure_domain.DIFFERENT)
        select = group_members._select_places

        def fail_in_first(ctxt, uuids):
            if ctxt.cell_uuid == self.cell_mappings['cell1'].uuid:
                raise db_exception.DBConnectionError('cell1 is away')
            return select(ctxt, uuids)

        with mock.patch.object(group_members, '_select_places', fail_in_first):
            self.assertEqual(
                [None], self.hosts(group, test_failure_domain.DIFFERENT, 1)
            )
        self.assertIn('failure_domains cannot decide', self.log)
        self.assertIn('cell1 is away', self.log)


class OneStageTest(test_failure_domain.FailureDomainsTestCase):
    options = {'request_filters': ['isolate_aggregates']}

    def test_the_host_filter_alone_refuses(self):
        group = self.create_group(9)
        self.assertEqual(
            [None, None], self.hosts(group, test_failure_domain.DIFFERENT, 2)
        )
        self.assertEqual(['loose'], self.hosts(group, {}, 1))
        self.assertEqual(
            1,
            self.log.count(
                'Add failure_domains to [nova_ext_sched] request_filters.'
            )
            # The line at start says it too.
            - self.log.count('does not have failure_domains'),
        )


class OtherStageTest(test_failure_domain.FailureDomainsTestCase):
    host_filters = ()

    def test_the_request_filter_alone_forbids(self):
        group = self.create_group()
        # Nobody refuses the host without a domain.
        self.assertEqual(
            ['loose', 'a1', 'b1', None],
            self.hosts(group, test_failure_domain.DIFFERENT, 4),
        )
        self.assertIn('Add FailureDomainFilter to', self.log)


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
                hosts.extend(
                    self.hosts(self.group, test_failure_domain.DIFFERENT, 1)
                )
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
            self.api.post_server_action(
                self.server['id'], {'revertResize': None}
            )
            self._wait_for_state_change(self.server, 'ACTIVE')
        self.assertEqual([None], hosts)
        self.assertEqual('a1', self.host_of(self.server))
        self._migrate_server(self.server)
        self.assertEqual(
            [None], self.hosts(self.group, test_failure_domain.DIFFERENT, 1)
        )
        self._confirm_resize(self.server)
        self.set_metadata('rack c', {'failure_domain': None})
        # Unshelving counts before nova-compute claims.
        self._shelve_server(self.server)
        with self.boot_meanwhile('_prep_block_device') as hosts:
            self._unshelve_server(self.server)
        self.assertEqual([None], hosts)
        self.assertEqual('a1', self.host_of(self.server))
