# SPDX-License-Identifier: Apache-2.0

import collections
from unittest import mock

import ddt
import nova.conf
import testtools

from nova_ext_sched import conf
from nova_ext_sched.cmd.explain import causes
from nova_ext_sched.cmd.explain import query
from nova_ext_sched.cmd.explain import reasons
from tests.unit.request_filters import base

Aggregate = collections.namedtuple('Aggregate', 'uuid name hosts metadata')

AGGREGATES = [
    Aggregate('u1', 'windows', ['h1'], {'trait:X': 'required', 'trait:Y': ''}),
    Aggregate('u2', 'gpu\n', ['h1', 'h2'], {'reservation:gpu': 'true'}),
    Aggregate('u3', 'freepool', ['h3'], {}),
]


@ddt.ddt
class ReasonsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        conf.register_opts(nova.conf.CONF)
        scheduler = mock.Mock(aggs_by_id=dict(enumerate(AGGREGATES)))
        scheduler.aggregates_of = lambda host: [
            one for one in AGGREGATES if host in one.hosts
        ]
        self.reasons = reasons.Reasons(scheduler, base.request_spec())

    @ddt.data(
        ('resources', 'VCPU:4', 'lack VCPU', 'VCPU'),
        ('required', 'T', 'lack the trait T', ''),
        ('root_required', '!T', 'have the forbidden trait T', ''),
        (
            'root_required',
            '!COMPUTE_STATUS_DISABLED',
            'are disabled',
            'disabled service',
        ),
        (
            'member_of',
            'in:u1,u9',
            'are in none of the aggregates u9, windows',
            '',
        ),
        ('in_tree', 'r1', 'are not the requested host', 'requested host'),
        (
            'group',
            '1: resources=PGPU%3A1',
            'lack a provider for group 1: resources=PGPU:1',
            '',
        ),
    )
    @ddt.unpack
    def test_lacking(self, key, value, kind, cause):
        found = self.reasons.lacking(query.Part(key, value))
        self.assertEqual((kind, cause), (found.kind, found.cause))

    def test_a_trait_that_only_isolated_hosts_have(self):
        part = query.Part('root_required', '!X')
        found = self.reasons.lacking(part, causes.ISOLATION)
        self.assertEqual('are isolated', found.kind)
        self.assertIn('forbid_by_trait', found.detail)

    @ddt.data(
        # The policy's words, with the trait that is missing alone.
        (
            'h1',
            'isolate_aggregates',
            '!in:u1',
            'are isolated',
            'windows',
            'aggregate windows is isolated and the request does not require X',
        ),
        (
            'h3',
            'blazar_reservations',
            '!in:u3',
            'are managed by Blazar',
            'freepool',
            'aggregate freepool is a pool of Blazar (of free hosts) and the '
            'request names no reservation',
        ),
        # Another filter's aggregate: not isolated, whatever its traits.
        (
            'h1',
            'theirs',
            '!in:u1',
            'are in an aggregate that theirs forbids',
            'windows',
            '',
        ),
        (
            'h1',
            'isolate_aggregates',
            '!in:u9',
            'are isolated',
            '',
            'by an aggregate only placement knows',
        ),
        # The first by name, of those that the part names.
        (
            'h1',
            'theirs',
            '!in:u1,U2',
            'are in an aggregate that theirs forbids',
            "'gpu\\n'",
            '',
        ),
    )
    @ddt.unpack
    def test_forbidding(self, host, name, value, kind, shown, detail):
        part = query.Part('member_of', value)
        cause = causes.OF_REQUEST_FILTERS.get(name, '')
        found = self.reasons.forbidding(name, cause, part)(host)
        self.assertEqual(
            (kind, cause, shown, detail),
            (found.kind, found.cause, found.name, found.detail),
        )

    @ddt.data(
        ('member_of', '!in:u1,u2', "not in aggregates 'gpu\\n', windows"),
        ('member_of', 'in:u1', 'in one of aggregates windows'),
        ('resources', 'VCPU:4', 'resources=VCPU:4'),
    )
    @ddt.unpack
    def test_describe(self, key, value, expected):
        part = query.Part(key, value)
        self.assertEqual(expected, self.reasons.describe(part))
