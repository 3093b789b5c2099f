# SPDX-License-Identifier: Apache-2.0

import ddt
from nova import objects
import nova.conf
from nova.scheduler import weights
from oslo_config import cfg
from oslo_utils.fixture import uuidsentinel as uuids

from nova_ext_sched import weighers
from nova_ext_sched.weighers import base
from tests.unit.filters import base as filters_base
from tests.unit.request_filters import base as test_base

TURNS = 'ServerGroupRoundRobinWeigher'
OPTION = cfg.FloatOpt('by_name_weight_multiplier', default=10.0)


class ByNameWeigher(base.PolicyWeigher):
    """Prefers the hosts with the higher number; none with a project."""

    minval, maxval = 0.0, 1.0
    group = 'tests'

    def prefer(self, states, spec_obj):
        if 'project_id' in spec_obj:
            return None
        return [int(state.host[1:]) for state in states]


class WithTurnsWeigher(ByNameWeigher):
    yields = False

    def _read_multiplier(self, host_state):
        return 1.0


class AllWeighersTestCase(test_base.RequestFilterTestCase):
    def test_a_name_that_is_there_twice(self):
        self.set(weighers=[TURNS, TURNS])
        found = [one.__name__ for one in weighers.all_weighers()]
        self.assertEqual([TURNS], found)

    def test_an_invalid_value(self):
        self.set(own_hosts_weight_multiplier=None)
        self.enable_loaded()
        self.assertRaises(cfg.ConfigFileValueError, weighers.all_weighers)

    def test_a_weigher_that_its_policy_brings(self):
        self.set(weighers=[], enable_failover_hosts=True)
        found = [one.__name__ for one in weighers.all_weighers()]
        self.assertEqual(['FailoverHostsWeigher'], found)

    def enable_loaded(self):
        self.config(
            available_filters=['nova_ext_sched.filters.all_filters'],
            group='filter_scheduler',
        )


class ByMetadataTestCase(test_base.RequestFilterTestCase):
    def test_each_aggregate_is_read_once(self):
        shared = filters_base.aggregate('x', metadata={'a': '1'})
        states = [
            filters_base.host_state('h', shared),
            filters_base.host_state(
                'i', shared, filters_base.aggregate('y', metadata={})
            ),
        ]
        read = []
        base.by_metadata(states, len, read.append)
        self.assertEqual([{'a': '1'}, {}], read)


@ddt.ddt
class PolicyWeigherTestCase(test_base.RequestFilterTestCase):
    def setUp(self):
        super().setUp()
        nova.conf.CONF.register_opts([OPTION], group='tests')
        self.addCleanup(nova.conf.CONF.unregister_opt, OPTION, 'tests')
        self.states = [filters_base.host_state(f'h{n}') for n in range(3)]

    def weigh(self, spec, weigher=ByNameWeigher):
        weighed = weights.HostWeightHandler().get_weighed_objects(
            [weigher()], self.states, spec
        )
        return {one.obj.host: one.weight for one in weighed}

    def test_weights_are_added_as_they_are(self):
        self.assertEqual(
            {'h0': 0, 'h1': 10, 'h2': 20}, self.weigh(objects.RequestSpec())
        )

    def test_no_preference(self):
        spec = objects.RequestSpec(project_id='p')
        self.assertEqual({'h0': 0, 'h1': 0, 'h2': 0}, self.weigh(spec))

    def test_multiplier_of_an_aggregate(self):
        item = {OPTION.name: '-1'}
        self.states[1].aggregates = [filters_base.aggregate('x', **item)]
        self.assertEqual(
            {'h0': 0, 'h1': -1, 'h2': 20}, self.weigh(objects.RequestSpec())
        )

    def test_malformed_multiplier_of_an_aggregate(self):
        item = {OPTION.name: 'nan'}
        self.states[1].aggregates = [filters_base.aggregate('x', **item)]
        for _ in range(2):
            self.assertEqual(10, self.weigh(objects.RequestSpec())['h1'])
        self.assertEqual(
            1, self.output.output.count(f'{OPTION.name} in the metadata')
        )

    @ddt.data(
        ('anti-affinity', {}, 0),
        ('affinity', {}, 20),
        ('anti-affinity', {'weighers': ['ByNameWeigher']}, 20),
        ('anti-affinity',
         {'server_group_round_robin_weight_multiplier': 0.0}, 20),
    )  # fmt: skip
    @ddt.unpack
    def test_the_turns_of_a_group_come_first(self, policy, options, weight):
        self.set(**options)
        group = objects.InstanceGroup(
            uuid=uuids.group, policy=policy, members=[], _rules={}
        )
        spec = objects.RequestSpec(scheduler_hints={}, instance_group=group)
        self.assertEqual(weight, self.weigh(spec)['h2'])
        self.assertEqual(2, self.weigh(spec, WithTurnsWeigher)['h2'])
