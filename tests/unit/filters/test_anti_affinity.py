# SPDX-License-Identifier: Apache-2.0

"""Tests of the anti-affinity filter, with nova's as the oracle."""

import logging
import unittest

import ddt
import fixtures
import hypothesis
from hypothesis import strategies
from nova import objects
import nova.conf
from nova.scheduler import host_manager
from nova.scheduler.filters import affinity_filter
from nova.tests.unit.scheduler.filters import test_affinity_filters
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched.filters import anti_affinity

CONF = nova.conf.CONF

objects.register_all()


def host_state(name, *instances):
    state = host_manager.HostState(name, name, uuids.cell)
    state.instances = dict.fromkeys(instances)
    return state


def request_spec(group, instance_uuid=uuids.instance, **fields):
    fields.setdefault('scheduler_hints', {})
    return objects.RequestSpec(
        instance_group=group, instance_uuid=instance_uuid, **fields
    )


def group(**fields):
    fields.setdefault('policy', 'anti-affinity')
    fields.setdefault('members', [uuids.a, uuids.b, uuids.c])
    return objects.InstanceGroup(**fields)


HOSTS = [
    host_state('empty'),
    host_state('stranger', uuids.s),
    host_state('one', uuids.a),
    host_state('two', uuids.a, uuids.b, uuids.s),
    host_state('its own', uuids.a, uuids.b, uuids.c, uuids.instance),
]
ALL = [state.host for state in HOSTS]


@ddt.ddt
class ServerGroupAntiAffinityFilterTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.filter = anti_affinity.ServerGroupAntiAffinityFilter()
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))

    def passing(self, spec):
        return [s.host for s in self.filter.filter_all(HOSTS, spec)]

    # Where nova's raises: the host of the instance itself alone.
    @ddt.data(
        ({'rules': {'max_server_per_host': 'x'}}, "got 'x'"),
        ({'rules': {'max_server_per_rack': '2'}}, 'max_server_per_host'),
        ({'members': None}, 'expected a list of UUIDs'),
    )
    @ddt.unpack
    def test_bad_data_opens_no_host(self, fields, fault):
        uuid = getattr(uuids, fault)
        spec = request_spec(group(uuid=uuid, **fields))
        for _ in range(2):
            self.assertEqual(['its own'], self.passing(spec))
        self.assertEqual(1, self.log.output.count(uuid))
        self.assertIn(fault, self.log.output)

    def test_fields_that_are_not_set(self):
        members = [uuids.a]
        whole = {'instance_group': group(members=members)}
        without_policy = objects.InstanceGroup(members=members)
        without_members = objects.InstanceGroup(policy='anti-affinity')
        no_hints = {'scheduler_hints': {}}
        for spec, expected in (
            (objects.RequestSpec(**no_hints), ALL),
            (objects.RequestSpec(**whole, **no_hints), ['empty', 'stranger']),
            (request_spec(without_policy), ['empty', 'stranger', 'its own']),
            (request_spec(without_members), ['its own']),
        ):
            self.assertEqual(expected, self.passing(spec))


UUIDS = [getattr(uuids, f'u{i}') for i in range(12)]


class NovaIsTheOracleTest(unittest.TestCase):
    @hypothesis.given(
        hosts=strategies.lists(
            strategies.sets(strategies.sampled_from(UUIDS)), max_size=8
        ),
        members=strategies.sets(strategies.sampled_from(UUIDS)),
        policy=strategies.sampled_from(
            ['anti-affinity', 'affinity', 'soft-anti-affinity', None]
        ),
        limit=strategies.none() | strategies.integers(-1, 5).map(str),
        instance=strategies.sampled_from(UUIDS),
    )
    def test_same_answers(self, hosts, members, policy, limit, instance):
        states = [host_state(str(i), *on) for i, on in enumerate(hosts)]
        rules = {} if limit is None else {'max_server_per_host': limit}
        group = objects.InstanceGroup(
            policy=policy, members=sorted(members), rules=rules
        )
        spec = request_spec(group, instance_uuid=instance)
        ours = anti_affinity.ServerGroupAntiAffinityFilter()
        nova = affinity_filter.ServerGroupAntiAffinityFilter()
        expected = [*nova.filter_all(states, spec)]
        self.assertEqual(expected, ours.filter_all(states, spec))


class NovasTest(test_affinity_filters.TestGroupAffinityFilter):
    """nova's own unit tests of its filter, with ours in its place."""

    def setUp(self):
        # nova's fixture parses arguments, once: an earlier test may have.
        CONF.clear()
        super().setUp()
        ours = anti_affinity.ServerGroupAntiAffinityFilter
        path = f'{affinity_filter.__name__}.{ours.__name__}'
        self.useFixture(fixtures.MonkeyPatch(path, ours))

    def _clear_attrs(self):
        # nova empties the instance to save memory; pytest then misses the
        # test method that it had bound there.
        pass
