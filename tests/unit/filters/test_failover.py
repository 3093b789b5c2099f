# SPDX-License-Identifier: Apache-2.0

import ddt

from nova_ext_sched import fields
from nova_ext_sched import request_state
from nova_ext_sched.filters import failover
from nova_ext_sched.policy import verdict
from tests.unit.filters import base as filters_base
from tests.unit.request_filters import base as test_base


@ddt.ddt
class FailoverHostsFilterTestCase(test_base.RequestFilterTestCase):
    def setUp(self):
        super().setUp()
        self.set(enable_failover_hosts=True)
        self.filter = failover.FailoverHostsFilter()
        self.hosts = [
            filters_base.host_state(
                name, filters_base.aggregate(name, metadata=metadata)
            )
            for name, metadata in (
                ('held', {'failover': 'true'}),
                ('open', {'failover': 'no'}),
                ('plain', {}),
            )
        ]

    def passing(self, move='', **request):
        spec = test_base.request_spec(**request)
        request_state.of(spec).move = move
        return filters_base.names(self.filter.filter_all(self.hosts, spec))

    @ddt.data(
        ('', [], False),
        ('evacuation', [], True),
        ('live-migration', [], False),
        ('live-migration', ['live-migrations'], True),
    )
    @ddt.unpack
    def test_requests(self, move, takes, taken):
        self.set(failover_takes=takes)
        expected = ['held'] * taken + ['open', 'plain']
        self.assertEqual(expected, self.passing(move))

    def test_off(self):
        self.set(enable_failover_hosts=False)
        self.assertEqual(['held', 'open', 'plain'], self.passing())

    def test_a_rebuild_passes_and_a_pretended_one_does_not(self):
        hints = {fields.CHECK_TYPE: ['rebuild']}
        there = {'force_hosts': ['held'], 'force_nodes': ['held']}
        found = self.passing(scheduler_hints=hints, **there)
        self.assertIn('held', found)
        self.assertNotIn('held', self.passing(scheduler_hints=hints))

    def test_what_stage_1_left(self):
        spec = test_base.request_spec()
        request_state.of(spec).left_out['failover'] = request_state.LeftOut(
            forbidden={'plain': 'spare'}
        )
        self.assertEqual(
            ['open'],
            filters_base.names(self.filter.filter_all(self.hosts, spec)),
        )

    @ddt.data(True, False)
    def test_a_server_where_it_is(self, stays):
        asked = []
        self.replace(
            'queries.failover.judge_standing',
            lambda ctxt, spec, host, refused: (
                asked.append(host) or (verdict.PASS if stays else refused)
            ),
        )
        spec = test_base.request_spec()
        self.filter.prepare(self.ctxt, spec)
        [(policy, judge)] = self.filter.decisions(spec)
        self.assertEqual('failover', policy.name)
        self.assertEqual(
            [stays, True, True], [judge(one).passes for one in self.hosts]
        )
        self.assertEqual(['held'], asked)
