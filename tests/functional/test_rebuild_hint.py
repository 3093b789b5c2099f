# SPDX-License-Identifier: Apache-2.0

"""Requests that have the hint of a rebuild and are none.

nova then runs no request filter, asks placement nothing and skips the host
filters that do not run on rebuild. The scheduler prefers the wrong host of
each policy to the hosts a and b, so that a host says by its name which one
did not hold.
"""

import fixtures
from nova.compute import api
from nova.scheduler import utils

from tests.functional import base
from tests.functional import explain

HINT = {'_nova_check_type': 'rebuild'}
WINDOWS = 'CUSTOM_LICENSED_WINDOWS'
LICENSED = {f'trait:{WINDOWS}': 'required'}
FORCE = {'force_metadata_check': 'true'}


class UnmendedApi(fixtures.Fixture):
    """nova-api keeps hints that begin with ``_nova``.

    As 31.0.0 to 31.3.0, 32.0.0 to 32.2.0, 33.0.0 and 33.0.1 do.
    """

    def _setUp(self):
        create = api.API.create
        build = utils.build_filter_properties
        written = {}

        def keep(self, *args, **kwargs):
            written.clear()
            written.update(kwargs['scheduler_hints'])
            return create(self, *args, **kwargs)

        for name, replacement in (
            ('nova.compute.api.API.create', keep),
            (
                'nova.scheduler.utils.build_filter_properties',
                lambda hints, *args, **kwargs: build(
                    {**(hints or {}), **written}, *args, **kwargs
                ),
            ),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, replacement))


class RebuildHintTestCase(base.CloudTestCase):
    """A wrong host for each policy of one host, then two racks."""

    host_filters = (
        'IsolatedAggregatesFilter',
        'AggregateInstanceTypeFilter',
        'BlazarFilter',
        'FailureDomainFilter',
    )
    options = {'enable_isolated_aggregate_filtering': True}
    weights = {'windows': 500, 'freepool': 400, 'forced': 300, 'a': 9, 'b': 8}

    def setUp(self):
        super().setUp()
        # nova-compute's own check would hide what the scheduler decided.
        self.flags(group='workarounds', disable_group_policy_check_upcall=True)
        self.isolate('windows', ['windows'], WINDOWS)
        self.aggregate('freepool', ['freepool'])
        self.aggregate('forced', ['forced'], ssd='1', **FORCE)
        for rack in 'ab':
            self.aggregate(f'rack {rack}', [rack], failure_domain=rack)
        self.plain = self.image()
        self.licensed = self.image(props=LICENSED)


class BootTestCase(RebuildHintTestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(UnmendedApi())

    def test_boots(self):
        self.assertBootsOn('a', hints=HINT)
        # Nobody has found out which image a server runs.
        self.assertBootsOn('a', hints=HINT, image=self.licensed)
        self.assertBootsOn(
            'windows', hints=HINT, flavor=self.flavor(specs=LICENSED)
        )
        self.assertBootsOn('forced', hints=HINT, flavor=self.flavor(ssd='1'))
        # Not even an administrator's choice, which nova takes for a rebuild.
        for wrong in ('windows', 'freepool', 'forced'):
            self.assertNoValidHost(hints=HINT, az=f'nova:{wrong}:{wrong}')
        self.assertNoValidHost(hints=HINT, host='windows')
        # nova asked nobody, and the log says it once.
        self.assertEqual([], self.queries)
        self.assertEqual(1, self.log.count('which only nova may write'))
        self.explain_says_what_a_boot_would_meet()
        self.server_groups()

    def explain_says_what_a_boot_would_meet(self):
        hint = '_nova_check_type=rebuild'
        # BlazarFilter does not judge a rebuild.
        for zone, status in (('freepool', 3), ('windows', 3), ('a', 0)):
            answer = explain.read('--flavor', self.flavor(), '--hint', hint,
                '--availability-zone', f'nova:{zone}:{zone}')  # fmt: skip
            self.assertEqual(status, answer.status, (zone, answer))
            self.assertIn('and is no rebuild', answer.sentence)

    def server_groups(self):
        hints = {**HINT, 'group': self.create_group()}
        self.assertNoValidHost(
            hints={**hints, 'different_failure_domain': 'true'}
        )
        self.assertIn(
            'failure_domains did not run, because the server has the '
            'scheduler hint',
            self.log,
        )
        self.assertBootsOn('a', hints=hints)
        self.assertBootsOn('b', hints=hints)
        self.assertNoValidHost(hints=hints)
        # Two servers of one request.
        hints['group'] = self.create_group()
        self.post(hints, min_count=2)
        group = self.api.api_get(f'/os-server-groups/{hints["group"]}').body
        both = [
            self._wait_for_state_change({'id': one}, 'ACTIVE')
            for one in group['server_group']['members']
        ]
        self.assertEqual(['a', 'b'], sorted(map(self.host_of, both)))
