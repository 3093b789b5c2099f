import random
from tests.functional import test_explain, explain, base
from tests.benchmarks import test_explain as bench

bench.HOSTS = 299


class T(bench.ManyHostsTestCase):
    weights = {'host0': 1}
    host_filters = ('IsolatedAggregatesFilter', 'AggregateInstanceTypeFilter')
    options = {
        'enable_isolated_aggregate_filtering': True,
        'request_filters': ['isolate_aggregates', 'reserved_aggregates'],
        'placement_req_required_member_prefix': ['reservation:'],
        'placement_req_default_forbidden_member_prefix': ['reservation:'],
    }
    test_many_hosts = None

    def _aggregate(self, name, hosts):
        n = int(name[4:])
        if n >= 76:
            return
        if n < 64:
            hosts = range(n * 3, n * 3 + (n % 4) + 1)
            name = f'isolated{n}'
        else:
            hosts = range(195 + (n - 64) * 2, 197 + (n - 64) * 2)
            name = f'reserved{n}'
        super()._aggregate(name, hosts)
        self.set_metadata(
            name,
            {f'trait:CUSTOM_LICENSE_{n % 7}': 'required'}
            if n < 64
            else {
                f'reservation:lease-{n}': 'true',
                'filter_tenant_id': 'abc%d' % n,
            },
        )

    def test_it(self):
        import os

        self.set_service('copy250', forced_down=True) if False else None
        huge = self._create_flavor(name='huge', vcpu=1, memory_mb=9999, disk=0)
        big = self._create_flavor(name='big', vcpu=8, memory_mb=7900, disk=600)
        lease = self._create_flavor(
            name='lease',
            vcpu=1,
            memory_mb=64,
            disk=0,
            extra_spec={'reservation:lease-70': 'true'},
        )
        fine = self._create_flavor(name='fine', vcpu=1, memory_mb=64, disk=0)
        self.flags(driver='nova.quota.NoopQuotaDriver', group='quota')
        server = self.assertNoValidHost(flavor=huge, name='web-1')
        for width in ('80', '160'):
            os.environ['COLUMNS'] = width
            for args in (
                ['--server', server['id']],
                ['--flavor', big],
                ['--flavor', lease],
                ['--flavor', lease, '--project', 'abc70'],
                ['--flavor', fine],
                ['--flavor', fine, '--all'],
                ['--server', server['id'], '--host', 'copy5'],
                ['--flavor', fine, '--destination', 'copy5'],
                ['--flavor', fine, '--availability-zone', 'nova:copy5'],
            ):
                a = explain.run(*args)
                print('$', width, *args)
                print(a.out)
                print(a.err, a.status)
                a = explain.run(*args, '-f', 'json')
                a.document
                a = explain.run(*args, '-f', 'csv')
                print(a.err)
        self.fail('x')
