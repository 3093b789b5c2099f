# SPDX-License-Identifier: Apache-2.0

import types

import ddt
import testtools

from nova_ext_sched.osc import moves_words
from tests.unit.osc import test_moves_step

OLD, ACTIVATE = '2020-01-01T00:00:00Z', 'openstack server set --state active x'


@ddt.ddt
class WordsTestCase(testtools.TestCase):
    @ddt.data(
        (1, 'Running', f'If its guest runs: {ACTIVATE}'),
        (3, 'Paused', f'If its guest runs: {ACTIVATE}'),
        (4, 'Shutdown', f'It is stopped: {ACTIVATE}, then openstack '
         'server stop x'),
        (6, 'Crashed', f'It is stopped: {ACTIVATE}, then openstack '
         'server stop x'),
        (0, 'NOSTATE', 'To start it again: openstack server reboot --hard x'),
        (99, 'unknown', 'To start it again: openstack server reboot --hard x'),
    )  # fmt: skip
    @ddt.unpack
    def test_a_server_in_error(self, power, shown, helps):
        move = test_moves_step.make_move()
        move.server = 'x'
        server = test_moves_step.make_server(power=power)
        said = moves_words.say_broken(move, server, test_moves_step.FAILED, '')
        self.assertEqual(
            f'it is on a in ERROR, power state {shown}: its live-migration '
            'failed, and nova does not say why. See the nova-compute log of '
            f'a. {helps}',
            said,
        )

    def test_an_evacuation_that_left_a_server_in_error(self):
        move = test_moves_step.make_move(method='evacuate')
        server = test_moves_step.make_server()
        own = test_moves_step.make_migration(migration_type='evacuation')
        self.assertEqual(
            'it is on a in ERROR, power state Running: its evacuation failed '
            '(no room)',
            moves_words.say_broken(move, server, own, 'no room'),
        )

    @ddt.data(
        ('deleting', 'ACTIVE', None, 'wait until it is deleted'),
        ('deleting', 'ACTIVE', OLD, 'openstack server delete x; if that does '
         'nothing, openstack server set --state error x, then delete it'),
        ('soft-deleting', 'ACTIVE', OLD, '--state error x'),
        (None, 'SOFT_DELETED', OLD, 'openstack server delete --force x'),
    )  # fmt: skip
    @ddt.unpack
    def test_a_server_that_is_deleted(self, task, status, updated, said):
        server = test_moves_step.make_server('a', status, task)
        server.id, server.updated_at = 'x', updated
        self.assertIn(said, moves_words.say_deleting(server))
        is_soon = task == 'deleting' and not updated
        self.assertEqual(is_soon, moves_words.may_be_gone_soon(server))

    @ddt.data(
        ({}, ''),
        ({'status': 'disabled', 'disabled_reason': 'disks'},
         'b is disabled (disks)'),
        ({'status': 'disabled'}, 'b is disabled'),
        ({'is_forced_down': True, 'state': 'down'}, 'b is forced down'),
        ({'state': 'down'}, 'nova-compute of b is down'),
        (None, 'nova has no nova-compute of b'),
    )  # fmt: skip
    @ddt.unpack
    def test_a_host_that_nova_does_not_take(self, shown, said):
        fields = {
            'status': 'enabled',
            'state': 'up',
            'is_forced_down': False,
            'disabled_reason': None,
        }
        service = shown
        if shown is not None:
            service = types.SimpleNamespace(**fields | shown)
        self.assertEqual(said, moves_words.name_host('b', service))

    @ddt.data(
        ('live', 'b', '--operation live-migrate --destination b'),
        ('cold', 'b', '--operation migrate --destination b'),
        ('live', None, '--operation live-migrate'),
    )
    @ddt.unpack
    def test_what_explains_a_refusal(self, method, to, said):
        move = test_moves_step.make_move(to, method)
        self.assertEqual(
            f'nova-ext-sched explain --server server 1 {said}',
            moves_words.say_explain(move),
        )
