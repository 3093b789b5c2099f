# SPDX-License-Identifier: Apache-2.0

"""The five promises of clouds with policies: nova's and this package's.

See :mod:`tests.functional.promises`.
"""

import fixtures

from tests.functional import audits
from tests.functional import explain
from tests.functional import promises
from tests.functional import reservations

WEIGHERS = 'nova.scheduler.weights.affinity'


class AffinityRow(promises.CloudRow):
    """Affinity: the servers of a group on one host."""

    weigher_classes = (f'{WEIGHERS}.ServerGroupSoftAffinityWeigher',)
    promise_isolation = promises.isolates('host1', 'host2')
    promise_survive = promises.fails('--host', 'host2')

    def build(self):
        self.hints = {'group': self.create_group(policy='affinity')}
        for _ in range(2):
            self.boot(hints=self.hints)
        self.boot(az='nova:host1')
        self.soft = {'group': self.create_group(policy='soft-affinity')}
        self.boot_each_on('host2', 'host3', hints=self.soft)

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(hints=self.hints)
        self.assertExplained(hints=self.soft)
        self.assertRefused(hints=self.hints, flavor=self.flavor(vcpu=9))

    def promise_moves(self):
        plan = self.assertDrained('host1', stuck=['affinity'] * 3)
        for stuck in plan['without_place']:
            self.assertIn('must stay together on host1: nova', stuck['reason'])
            self.assertNotIn('affinity', stuck['would_help'] or '')

    def promise_capacity(self):
        self.assertCounted(hints=self.hints, flavor=self.flavor(vcpu=2))


class AntiAffinityRow(promises.CloudRow):
    """Anti-affinity, with a rule and failure domains."""

    host_filters = ('ServerGroupAntiAffinityFilter', 'FailureDomainFilter')
    options = {'request_filters': ['failure_domains']}
    promise_isolation = promises.isolates('host1', 'host4')
    promise_moves = promises.drains('host1')
    promise_survive = promises.fails('--host', 'host2')

    def build(self):
        for rack, hosts in (('a', ['host1', 'host2']), ('b', ['host3'])):
            self.aggregate(rack, hosts, failure_domain=rack)
        self.hints = {'group': self.create_group(1)}
        self.ruled = {
            'group': self.create_group(2),
            'max_server_per_failure_domain': '2',
        }
        self.boot_each_on('host1', 'host2', hints=self.hints)
        for _ in range(2):
            self.boot(hints=self.ruled)

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(hints=self.hints)
        self.assertExplained(hints=self.ruled)
        full = {
            'group': self.create_group(1),
            'different_failure_domain': 'true',
        }
        for _ in range(2):
            self.boot(hints=full)
        # host4 is in no rack.
        self.assertRefused(hints=full)

    def promise_capacity(self):
        self.assertCounted(hints={'group': self.create_group(2)})


class SoftAntiAffinityRow(promises.CloudRow):
    """Soft anti-affinity."""

    weigher_classes = (f'{WEIGHERS}.ServerGroupSoftAntiAffinityWeigher',)
    promise_isolation = promises.isolates('host1')
    promise_moves = promises.drains('host1')
    promise_survive = promises.fails('--host', 'host2')

    def build(self):
        self.flags(server_group_members=-1, group='quota')
        # So that no two hosts weigh the same.
        self.flags(
            soft_anti_affinity_weight_multiplier=2.0, group='filter_scheduler'
        )
        self.hints = {'group': self.create_group(policy='soft-anti-affinity')}
        for _ in range(5):
            self.boot(hints=self.hints)

    def promise_explain(self):
        self.assertExplained(hints=self.hints)
        self.assertRefused(hints=self.hints, flavor=self.flavor(vcpu=11))

    def promise_capacity(self):
        self.assertCounted(hints=self.hints, flavor=self.flavor(vcpu=4))


class UnmirroredRow(promises.CloudRow):
    """Aggregates whose hosts placement does not know, or knows still."""

    options = explain.OPTIONS
    promise_isolation = promises.isolates('host1', 'host2')
    promise_moves = promises.drains('host1', stuck=['availability zone'])
    promise_survive = promises.fails('--host', 'host2')

    def setUp(self):
        super().setUp()
        self.flags(
            limit_tenants_to_placement_aggregate=True, group='scheduler'
        )

    def build(self):
        self.aggregate('rack', ['host1', 'host2'], zone='az1')
        self.aggregate('theirs', ['host3'], filter_tenant_id='other')
        self.aggregate('lab', ['host4'], metadata={'reservation:lab': 'true'})
        for host in ('host2', 'host3', 'host4'):
            self.set_aggregates(host)
        left = self.aggregate('left', metadata={'trait:X': 'required'})
        self.set_aggregates('host3', left)
        self.boot_each_on('host1', 'host2')

    def set_aggregates(self, host, *uuids):
        """Let placement know other aggregates of a host than nova does."""
        provider = self._get_provider_uuid_by_host(host)
        url = f'/resource_providers/{provider}'
        found = self.placement.get(url).body['generation']
        self.placement.put(
            f'{url}/aggregates',
            {'aggregates': [*uuids], 'resource_provider_generation': found},
            version='1.19',
        )

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(az='az1')
        lab = self.flavor(specs={'reservation:lab': 'true'})
        self.assertRefused(flavor=lab)
        sync = 'in nova, but not in placement: run nova-manage placement sync'
        for args, expected in (
            ((),
             '1 is isolated in placement, but in no such aggregate in '
             'nova: use openstack resource provider aggregate set'),
            (('--availability-zone', 'az1'),
             f'1 is in availability zone az1 {sync}'),
            (('--project', 'other'), f'1 is in aggregate theirs {sync}'),
            (('--flavor', lab), f'1 is in aggregate lab {sync}'),
        ):  # fmt: skip
            answer = explain.read(*self.arguments(), *args)
            self.assertIn(expected, answer.sentence)

    def promise_capacity(self):
        self.assertCounted(flavor=self.flavor(vcpu=4), az='az1')


class PoliciesRow(promises.CloudRow):
    """Isolation, reservations and the language, with force together."""

    weights = {**promises.CloudRow.weights, 'host5': 50, 'host6': 10}

    host_filters = ('IsolatedAggregatesFilter', 'AggregateInstanceTypeFilter')
    options = {
        **audits.AuditTestCase.options,
        'request_filters': ['isolate_aggregates', 'reserved_aggregates'],
    }
    promise_isolation = promises.isolates('host1', 'host3')
    promise_survive = promises.fails('--host', 'host1')
    promise_capacity = promises.counts(vcpu=4, ssd='1')

    def build(self):
        wrong = self.flavor(vcpu=1)
        self.boot(flavor=wrong, az='nova:host1')
        self.boot(flavor=wrong, az='nova:host2')
        self.isolate('windows', ['host1', 'host3', 'host5'], 'CUSTOM_WINDOWS')
        self.aggregate(
            'lease', ['host2', 'host3'], metadata={'reservation:lease': 'true'}
        )
        self.aggregate(
            'ssd',
            ['host2', 'host4'],
            force_metadata_check='true',
            ssd='<or> 1 <or> ~',
        )
        self.windows = self.flavor(specs={'trait:CUSTOM_WINDOWS': 'required'})
        self.lease = self.flavor(specs={'reservation:lease': 'true'})
        self.both = self.flavor(
            specs={
                'trait:CUSTOM_WINDOWS': 'required',
                'reservation:lease': 'true',
            }
        )

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(flavor=self.windows)
        self.assertExplained(flavor=self.lease)
        self.assertExplained(flavor=self.both)
        self.assertExplained(flavor=self.flavor(ssd='1'))
        self.assertRefused(flavor=self.flavor(ssd='2'))
        self.assertRefused(
            flavor=self.flavor(specs={'reservation:gone': 'true'})
        )

    def promise_moves(self):
        self.assertMended()
        # Of the hosts that it wants, the other is leased.
        self.assertDrained('host4', stuck=['aggregate-instance-type'])


class BlazarRow(promises.CloudRow):
    """Hosts that Blazar leases."""

    host_filters = ('BlazarFilter',)
    options = {'request_filters': ['blazar_reservations']}
    promise_isolation = promises.isolates('host1', 'host5')
    promise_moves = promises.drains('host2')
    promise_survive = promises.fails('--host', 'host5')

    def build(self):
        self.aggregate('freepool', ['host1'])
        for name, host, owner in (
            ('a', ['host2', 'host3'], self.api.project_id),
            ('b', ['host4'], reservations.OTHER_PROJECT),
        ):
            self.aggregate(
                name,
                host,
                zone=f'blazar_{name}',
                metadata={'blazar:owner': owner},
            )
        self._start_compute('host5')
        self._start_compute('host6')
        self.leased = {'reservation': 'a'}
        for _ in range(2):
            self.boot(hints=self.leased)
            self.boot()

    weights = {**promises.CloudRow.weights, 'host5': 50, 'host6': 10}
    started = tuple(promises.CloudRow.weights)

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(hints=self.leased)
        self.assertRefused(hints={'reservation': 'b'})
        self.assertRefused(hints={'reservation': 'gone'})

    def promise_capacity(self):
        self.assertCounted(hints=self.leased, flavor=self.flavor(vcpu=4))


class TenantsRow(promises.CloudRow):
    """Tenants that are isolated by nova's filter."""

    host_filters = ('AggregateMultiTenancyIsolation',)
    promise_isolation = promises.isolates('host1', 'host2')
    promise_survive = promises.fails('--host', 'host3')
    promise_capacity = promises.counts(vcpu=4)

    def build(self):
        self.boot(az='nova:host1')
        self.aggregate(
            'others', ['host1'], filter_tenant_id=reservations.OTHER_PROJECT
        )
        self.aggregate('ours', ['host2'], filter_tenant_id=self.api.project_id)
        self.boot()

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(flavor=self.flavor(vcpu=4))
        self.assertRefused(host='host1')

    def promise_moves(self):
        self.assertDrained('host1')
        self.assertDrained('host2')


class ZonesRow(promises.CloudRow):
    """Servers that are pinned to a zone, and to one that is gone."""

    promise_isolation = promises.isolates('host1', 'host3')
    promise_moves = promises.drains('host3')
    promise_survive = promises.fails('--host', 'host1')

    def build(self):
        self.aggregate('one', ['host1', 'host2'], zone='one')
        self.aggregate('old', ['host3'], zone='old')
        self.pinned = self.boot(az='one')
        self.free = self.boot(az='nova:host1')
        self.lost = self.boot(az='old')
        # nova's older releases let it happen.
        with fixtures.MonkeyPatch(
            'nova.compute.api.AggregateAPI'
            '.ensure_no_instances_need_to_move_az_when_host_removed',
            lambda *_: None,
        ):
            self.remove_host('old', 'host3')
        self.admin_api.delete_aggregate(self.aggregate_ids['old'])

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(az='one')
        self.assertEqual([], self.assertMoveExplained(self.pinned).remarks)
        # host1 and host2 are in another zone.
        answer = self.assertMoveExplained(self.lost)
        self.assertEqual(['host1', 'host2', 'host4'], answer.order)
        self.assertIn(
            'No aggregate has the availability zone old that the request is '
            'for: nova ignores it',
            answer.remarks,
        )
        _, refused = self.explain(az='one', flavor=self.flavor(vcpu=11))
        answer = explain.read('--server', refused['id'])
        self.assertIn(
            ('are not in the availability zone one', 'availability zone', 2),
            [
                (one['reason'], one['cause'], one['hosts'])
                for row in answer.rows
                for one in row['reasons']
            ],
        )

    def promise_capacity(self):
        self.assertCounted(az='one', flavor=self.flavor(vcpu=4))


class ImagesRow(promises.CloudRow):
    """Image properties that bind servers to hosts."""

    host_filters = ('AggregateImagePropertiesIsolation',)
    promise_isolation = promises.isolates('host1', 'host3')
    promise_moves = promises.drains('host3')
    promise_survive = promises.fails('--host', 'host1')

    def build(self):
        self.aggregate('debian', ['host1', 'host2'], os_distro='debian')
        self.debian = self.image(os_distro='debian')
        self.fedora = self.image(os_distro='fedora')
        for image in (self.debian, self.debian, self.fedora):
            self.boot(image=image)
        self.aggregate('later', ['host3'], os_distro='debian')

    def promise_explain(self):
        self.assertExplained()
        self.assertExplained(image=self.debian)
        self.assertExplained(image=self.fedora)
        self.assertRefused(image=self.image(hw_architecture='aarch64'))
        self.assertRefused(image=self.fedora, flavor=self.flavor(vcpu=10))

    def promise_capacity(self):
        self.assertCounted(image=self.fedora, flavor=self.flavor(vcpu=2))
