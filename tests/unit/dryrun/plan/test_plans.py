# SPDX-License-Identifier: Apache-2.0

from unittest import mock

import ddt
import testtools

from nova_ext_sched.dryrun.plan import planner
from nova_ext_sched.dryrun.plan import plans

GROUP = plans.Group('group', 'web', 1, 2, 1, 1)


def make_leaving(uuid, class_=plans.Leaving, **kwargs):
    return class_(uuid, f'name {uuid}', 'p', 'host1', ['isolation'], **kwargs)


def make_plan():
    return plans.Plan(
        moves=[
            make_leaving(
                uuid, plans.Move, to='host2', expected='host2', method='live'
            )
            for uuid in 'ab'
        ],
        without_place=[
            make_leaving(
                uuid, plans.Stuck, reason='why', cause='state', would_help=''
            )
            for uuid in 'cd'
        ],
        mended_by_others=list(map(make_leaving, 'ef')),
        groups=[GROUP],
        to_be_empty=['host9'],
        room_for_last=4,
    )


@ddt.ddt
class LeaveOutGoneTestCase(testtools.TestCase):
    @ddt.data('', 'a', 'c', 'e', 'bdf', 'abcdef')
    def test_what_is_left(self, gone):
        whole, cloud = make_plan(), mock.Mock()
        cloud.services_of = lambda hosts: dict.fromkeys(hosts, 'uuid')
        with mock.patch.object(
            planner.gone, 'find', return_value=set(gone)
        ) as find:
            made = planner.leave_out_gone(cloud, whole, softly=False)
        find.assert_called_once_with(cloud, mock.ANY, False)
        self.assertEqual([*'abcdef'], sorted(find.call_args[0][1]))
        for name in ('moves', 'without_place', 'mended_by_others'):
            self.assertEqual(
                [
                    one
                    for one in getattr(whole, name)
                    if one.server not in gone
                ],
                getattr(made, name),
            )
        self.assertEqual([GROUP], made.groups)
        self.assertEqual(['host9'], made.to_be_empty)
        self.assertEqual(4, made.room_for_last)
        self.assertEqual(
            {'host9', *['host1', 'host2'] * bool(made.moves)},
            {*made.services},
        )
        self.assertEqual(list(map(make_leaving, gone)), made.deleted_meanwhile)
