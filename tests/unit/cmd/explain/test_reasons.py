# SPDX-License-Identifier: Apache-2.0

import collections

import ddt
import nova.conf
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched import conf
from nova_ext_sched.cmd.explain import query
from nova_ext_sched.cmd.explain import reasons

CONF = nova.conf.CONF

Aggregate = collections.namedtuple('Aggregate', 'uuid name hosts metadata')


@ddt.ddt
class ReasonsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.reasons = reasons.Reasons(
            [
                Aggregate('u1', 'windows', ['h1'], {'trait:X': 'required'}),
                Aggregate('u2', 'gpu\n', ['h1', 'h2'], {}),
                Aggregate(
                    'u4', 'lease', ['h4'], {'availability_zone': 'blazar_x'}
                ),
                Aggregate('u5', 'freepool', ['h4', 'h5'], {}),
                Aggregate('u6', 'old', ['h5'], {}),
            ]
        )

    @ddt.data(
        ('resources', 'VCPU:4', 'lack VCPU'),
        ('required', 'T', 'lack the trait T'),
        ('root_required', '!T', 'have the forbidden trait T'),
        (
            'root_required',
            '!COMPUTE_STATUS_DISABLED',
            'are disabled (trait COMPUTE_STATUS_DISABLED)',
        ),
        ('member_of', 'in:u1,u3', 'are in none of the aggregates windows, u3'),
        ('in_tree', 'r1', 'are not the requested host'),
        (
            'group',
            '1: resources=PGPU%3A1',
            'lack a provider for group 1: resources=PGPU:1',
        ),
    )
    @ddt.unpack
    def test_lack(self, key, value, expected):
        self.assertEqual(expected, self.reasons.lack(query.Part(key, value)))

    @ddt.data(
        ('h1', '!in:u1', 'are isolated by aggregate windows (trait X)'),
        ('h2', '!in:u1,u2', "are in the forbidden aggregate 'gpu\\n'"),
        (
            'h3',
            '!in:u1',
            'are in a forbidden aggregate that only placement knows',
        ),
    )
    @ddt.unpack
    def test_forbidding(self, host, value, expected):
        part = query.Part('member_of', value)
        self.assertEqual(expected, self.reasons.forbidding(host, part))

    @ddt.data(
        ('h4', True, 'are managed by Blazar (aggregate freepool, lease)'),
        ('h5', True, 'are in the forbidden aggregate freepool, old'),
        ('h4', False, 'are in the forbidden aggregate freepool, lease'),
    )
    @ddt.unpack
    def test_blazar(self, host, is_on, expected):
        conf.register_opts(CONF)
        self.useFixture(config_fixture.Config(CONF)).config(
            group='filter_scheduler',
            enabled_filters=['BlazarFilter'] if is_on else [],
        )
        part = query.Part('member_of', '!in:u4,u5,u6')
        self.assertEqual(expected, self.reasons.forbidding(host, part))

    @ddt.data(
        ('member_of', '!in:u1,u2', "not in aggregates windows, 'gpu\\n'"),
        ('member_of', 'in:u1', 'in one of aggregates windows'),
        ('resources', 'VCPU:4', 'resources=VCPU:4'),
    )
    @ddt.unpack
    def test_describe(self, key, value, expected):
        part = query.Part(key, value)
        self.assertEqual(expected, self.reasons.describe(part))
