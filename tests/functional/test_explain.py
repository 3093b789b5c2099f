# SPDX-License-Identifier: Apache-2.0

"""explain beside a real nova and placement."""

from tests.functional import base
from tests.functional import explain


class FunnelTestCase(base.CloudTestCase):
    weights = {'host1': 1, 'host2': 2, 'host3': 3}
    host_filters = ('IsolatedAggregatesFilter',)
    options = {
        'enable_isolated_aggregate_filtering': True,
        'request_filters': ['isolate_aggregates'],
    }

    def test_tmp(self):
        self.isolate('windows', ['host2', 'host3'], 'CUSTOM_LICENSED_WINDOWS')
        flavor = self._create_flavor(memory_mb=99999, vcpu=1, disk=0)
        for args in (
            ['--flavor', flavor],
            ['--flavor', self.flavor()],
            ['--flavor', flavor, '--hosts'],
        ):
            r = explain.run(*args)
            print(r.out, r.err, r.status)
        server = self.boot()
        for op in ('boot', 'migrate', 'live-migrate', 'evacuate'):
            r = explain.run('--server', server['id'], '--operation', op)
            print(op, r.out, r.err, r.status)
        r = explain.run(
            '--server',
            server['id'],
            '--operation',
            'resize',
            '--flavor',
            flavor,
        )
        print(r.out, r.err, r.status)
        r = explain.run(
            '--server',
            server['id'],
            '--operation',
            'rebuild',
            '--image-property',
            'trait:CUSTOM_X=required',
        )
        print(r.out, r.err, r.status)
        r = explain.run(
            '--server',
            server['id'],
            '--operation',
            'rebuild',
            '--image-property',
            'a=b',
        )
        print(r.out, r.err, r.status)
