# SPDX-License-Identifier: Apache-2.0

"""``openstack aggregate isolation`` against a real nova and placement."""

import json

from nova.api import auth
from oslo_utils.fixture import uuidsentinel
import webob.exc

from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.osc import isolation_run
from nova_ext_sched.policy import isolation
from tests.functional import base
from tests.functional import openstackclient
from tests.functional import test_status

LIST = ('aggregate', 'isolation', 'list')
SYNC = ('aggregate', 'isolation', 'sync')

WINDOWS = 'CUSTOM_LICENSED_WINDOWS'
GPU = 'CUSTOM_GPU'
SSD = 'STORAGE_DISK_SSD'
VMX = 'HW_CPU_X86_VMX'


def record(trait):
    return isolation.RECORD + trait


class IsolationTestCase(base.CloudTestCase):
    """Three hosts; plain requests prefer the isolated ones."""

    weights = {'host1': 300, 'host2': 200, 'host3': 100}
    host_filters = ('IsolatedAggregatesFilter',)
    options = {'enable_isolated_aggregate_filtering': True}

    def setUp(self):
        super().setUp()
        # SQLite takes one writer at a time.
        for module in (isolation_run, isolation_cloud):
            self.patch(module, 'WORKERS', 1)
        self.openstack = self.use_client()
        self.providers = {
            host: self._get_provider_uuid_by_host(host)
            for host in self.weights
        }

    def require(self, name, hosts, *traits, **metadata):
        """Create an isolated aggregate and do nothing in placement."""
        return self.aggregate(
            name,
            hosts,
            metadata={f'trait:{t}': 'required' for t in traits} | metadata,
        )

    def traits(self, host):
        """Return the custom and the STORAGE_ traits of a host."""
        return {
            trait
            for trait in self._get_provider_traits(self.providers[host])
            if trait.startswith(('CUSTOM_', 'STORAGE_'))
        }

    def aggregates(self, host):
        return set(
            self.placement.get(
                f'/resource_providers/{self.providers[host]}/aggregates',
                version='1.19',
            ).body['aggregates']
        )

    def set_membership(self, host, *aggregates):
        """Let a host be in these aggregates of placement, and no others."""
        url = f'/resource_providers/{self.providers[host]}/aggregates'
        body = self.placement.get(url, version='1.19').body
        response = self.placement.put(
            url, body | {'aggregates': [*aggregates]}, version='1.19'
        )
        self.assertEqual(200, response.status)

    def state(self):
        """Return everything that a sync could change, and generations."""
        providers = self._get_all_providers()
        return (
            sorted(
                self.placement.get('/traits', version='1.6').body['traits']
            ),
            sorted(
                (
                    provider['name'],
                    provider['generation'],
                    sorted(self._get_provider_traits(provider['uuid'])),
                    sorted(self._get_provider_aggregates(provider['uuid'])),
                )
                for provider in providers
            ),
            self.admin_api.api_get('/os-aggregates').body['aggregates'],
        )

    def faults(self, *arguments):
        """Return (kind, hosts) of each fault by aggregate."""
        return {
            row['Name']: [
                (fault['fault'], *fault['hosts']) for fault in row['Faults']
            ]
            for row in self.openstack.json(*LIST, *arguments)
        }

    def check(self):
        """Return what the status check says of the traits."""
        return test_status.ask_placement(self.placement, 'Traits of hosts')

    def sync(self, *arguments, status=0):
        """Run sync; return its rows without the column Provider."""
        got, output, errors = self.openstack.run_apart(
            *SYNC, *arguments, '-f', 'json'
        )
        self.assertEqual(status, got, output + errors)
        # As wide as the terminal.
        self.errors = ' '.join(errors.split())
        return [
            (row['Change'], row['Names'], row['Host'], row['Result'])
            for row in json.loads(output)
        ]


class ListTest(IsolationTestCase):
    def test_what_is_wrong(self):
        fine = self.isolate('fine', ['host1'], WINDOWS)
        self.aggregate('plain', ['host3'], metadata={'ssd': 'true'})
        self.require('gpu', ['host1', 'host2'], GPU, VMX, 'gpu')
        self.require('typo', [], **{'trait:CUSTOM_A': 'forbidden'})
        self.require('forced', ['host3'], SSD, force_metadata_check='yes')
        self.add_traits('host3', WINDOWS, SSD)
        self.set_membership('host3')
        self.set_membership('host2', fine)

        before = self.state()
        self.assertEqual(
            {
                'fine': [('conflict', 'host1'), ('stray-member', 'host2')],
                'forced': [('not-mirrored', 'host3'), ('conflict',)],
                'gpu': [
                    ('unknown-trait',),
                    ('impossible-trait',),
                    ('trait-missing', 'host1', 'host2'),
                    ('not-mirrored', 'host2'),
                    ('conflict', 'host1'),
                ],
                'typo': [('unread-value',)],
            },
            self.faults(),
        )
        self.assertEqual(
            [
                ('conflict', 'host1'),
                ('stray-member', 'host2'),
                ('trait-outside', 'host3'),
            ],
            self.faults('--forbid-by-trait', 'CUSTOM_LICENSED_*')['fine'],
        )
        self.assertEqual(before, self.state())


class ProvidersTest(IsolationTestCase):
    """A trait of a device or of storage serves requests that take from it."""

    def provide(self, name, resource, *traits, parent=None):
        """Create a provider with one of a resource class."""
        body = {'name': name, 'parent_provider_uuid': parent}
        provider = self.placement.post(
            '/resource_providers', body, version='1.20'
        ).body['uuid']
        self._set_inventory(provider, {'resource_class': resource, 'total': 1})
        self._set_provider_traits(provider, list(traits))
        return provider

    def test_traits_elsewhere(self):
        self._create_trait(GPU)
        parent = self.providers['host1']
        device = self.provide('gpu_a', 'VGPU', GPU, parent=parent)
        self.provide('gpu_b', 'VGPU', parent=parent)
        storage = self.provide(
            'pool', 'DISK_GB', SSD, 'MISC_SHARES_VIA_AGGREGATE'
        )
        self.require('gpu', ['host1'], GPU)
        ssd = self.require('ssd', ['host2'], SSD)
        self._set_aggregate(storage, uuidsentinel.pool)
        self.set_membership('host2', ssd, uuidsentinel.pool)

        self.assertEqual({'gpu': [], 'ssd': []}, self.faults())
        self.assertEqual(
            [
                [{'trait': GPU, 'providers': ['gpu_a'], 'hosts': ['host1']}],
                [{'trait': SSD, 'providers': ['pool'], 'hosts': ['host2']}],
            ],
            [row['Elsewhere'] for row in self.openstack.json(*LIST)],
        )
        # A device is neither in forbid_by_trait's query nor outside of it.
        self.aggregate('plain', ['host1'], metadata={f'trait:{GPU}': 'x'})
        self.assertEqual(
            [], self.faults('--forbid-by-trait', f'{GPU},{SSD}')['gpu']
        )
        before = self.state()
        self.assertEqual([], self.sync('--prune'))
        self.assertEqual(before, self.state())

        wants_gpu = self.flavor(
            specs={'resources:VGPU': '1', f'trait:{GPU}': 'required'}
        )
        server = self.assertBootsOn('host1', flavor=wants_gpu)
        self.assertEqual(
            {'VGPU': 1},
            self._get_allocations_by_server_uuid(server['id'])[device][
                'resources'
            ],
        )
        # Not the other device, which has not the trait.
        self.assertNoValidHost(flavor=wants_gpu)
        wants_ssd = self.flavor(disk=1, specs={f'trait:{SSD}': 'required'})
        server = self.assertBootsOn('host2', flavor=wants_ssd)
        self.assertIn(
            storage, self._get_allocations_by_server_uuid(server['id'])
        )


class SyncTest(IsolationTestCase):
    def test_sets_up_what_the_scheduler_needs(self):
        uuid = self.require('windows', ['host1', 'host2'], WINDOWS, SSD)
        for host in self.weights:
            self.set_membership(host)
        windows = self.flavor(
            specs={f'trait:{trait}': 'required' for trait in (WINDOWS, SSD)}
        )
        # Nothing is isolated yet: the scheduler's first choice.
        self.assertNoValidHost(flavor=windows)
        before = self.state()
        planned = self.sync('--dry-run', status=3)
        self.assertEqual(before, self.state())
        given = sorted([WINDOWS, record(WINDOWS), SSD, record(SSD)])
        expected = [
            ('create trait', [WINDOWS], ''),
            ('create trait', [record(WINDOWS)], ''),
            ('create trait', [record(SSD)], ''),
            ('add to aggregates', ['windows'], 'host1'),
            ('add to aggregates', ['windows'], 'host2'),
            ('add traits', given, 'host1'),
            ('add traits', given, 'host2'),
        ]
        self.assertEqual([(*row, 'planned') for row in expected], planned)
        done = self.sync()
        self.assertEqual([(*row, 'done') for row in expected], done)
        self.assertIn(
            'Done: create trait (3), add to aggregates (2), add traits (2).',
            self.errors,
        )
        self.assertEqual({'windows': []}, self.faults())
        self.assertBootsOn('host3')
        self.assertBootsOn('host1', flavor=windows)
        # nova leaves traits and records alone.
        self.restart_compute_service(self.computes['host1'])
        self._run_periodics()
        for host in ('host1', 'host2'):
            self.assertEqual({*given}, self.traits(host))
            self.assertEqual({uuid}, self.aggregates(host))
        self.assertEqual(set(), self.traits('host3'))
        after = self.state()
        for prune in ([], ['--prune']):
            self.assertEqual([], self.sync(*prune))
            self.assertIn('Nothing to change.', self.errors)
        self.assertEqual(after, self.state())

    def test_prune_takes_back_what_sync_gave_and_nothing_else(self):
        self.require('windows', ['host1', 'host2', 'host3'], WINDOWS, GPU)
        # The operator's own.
        self.add_traits('host2', WINDOWS, 'CUSTOM_MINE')
        self.sync()
        self.assertEqual(
            {WINDOWS, GPU, record(GPU), 'CUSTOM_MINE'}, self.traits('host2')
        )
        for host in ('host1', 'host2'):
            self.remove_host('windows', host)
        self.assertEqual([], self.sync())
        self.assertEqual(
            [
                ('leftover-trait', 'host1', 'host2'),
                ('leftover-trait', 'host1'),
            ],
            self.faults()['windows'],
        )
        self.assertEqual([], self.sync('--prune', 'windows'))
        self.assertIn('Traits of hosts outside these aggregates', self.errors)
        sentence = (
            '{} {}, which sync gave, and no aggregate there requires it: a '
            'server that requires it can land there. Run openstack aggregate '
            'isolation sync --prune.'
        )
        kept = (
            sentence.format('host1, host2 have', GPU),
            sentence.format('host1 has', WINDOWS),
        )
        self.assertEqual((test_status.WARNING, ' '.join(kept)), self.check())
        with base.table_away(self.cell_engine(), 'compute_nodes'):
            self.assertEqual(
                (
                    test_status.WARNING,
                    '1 cell did not answer, and what hosts have there is not '
                    'known.',
                ),
                self.check(),
            )
        before = self.state()
        expected = [
            (
                'remove traits',
                sorted([GPU, record(GPU), WINDOWS, record(WINDOWS)]),
                'host1',
            ),
            ('remove traits', [GPU, record(GPU)], 'host2'),
        ]
        self.assertEqual(
            [(*row, 'planned') for row in expected],
            self.sync('--prune', '--dry-run', status=3),
        )
        self.assertEqual(before, self.state())
        self.assertEqual(
            [(*row, 'done') for row in expected], self.sync('--prune')
        )
        self.assertEqual(set(), self.traits('host1'))
        self.assertEqual({WINDOWS, 'CUSTOM_MINE'}, self.traits('host2'))
        self.assertEqual(
            {WINDOWS, record(WINDOWS), GPU, record(GPU)}, self.traits('host3')
        )
        self.assertEqual([], self.sync('--prune'))
        self.assertEqual((test_status.SUCCESS, None), self.check())

        # The aggregate is gone, the record is not.
        self.remove_host('windows', 'host3')
        self.admin_api.delete_aggregate(self.aggregate_ids['windows'])
        self.assertEqual({'': [('leftover-trait', 'host3')]}, self.faults())
        self.assertIn(sentence.format('host3 has', GPU), self.check()[1])
        self.flags(
            enable_isolated_aggregate_filtering=False, group='nova_ext_sched'
        )
        self.assertEqual((test_status.SUCCESS, None), self.check())
        self.sync('--prune')
        self.assertEqual(set(), self.traits('host3'))


class RefusedTest(IsolationTestCase):
    """Who may not, and what does not answer: an error and no change."""

    def setUp(self):
        super().setUp()
        self.require('windows', ['host1'], WINDOWS)
        self.before = self.state()

    def assertRefused(self, user, *problems):
        for command in (LIST, SYNC):
            self.openstack.user = user
            status, output, errors = self.openstack.run_apart(*command)
            self.assertEqual(1, status, output)
            for problem in problems:
                self.assertIn(problem, errors)
            self.assertNotIn('Traceback', errors)
        self.openstack.user = openstackclient.ADMIN
        self.assertEqual(self.before, self.state())

    def test_refusals(self):
        self.expired_token()
        self.users_who_may_not()
        self.placement_is_down()

    def users_who_may_not(self):
        forbidden = 'ForbiddenException: 403: Client Error for url: '
        self.assertRefused(openstackclient.READER, forbidden)
        self.assertRefused(openstackclient.MEMBER, forbidden, 'os-aggregates')
        # In nova alone.
        self.policy.set_rules(
            {
                'os_compute_api:os-aggregates:index': '',
                'os_compute_api:os-hypervisors:list-detail': '',
            },
            overwrite=False,
        )
        self.assertRefused(
            openstackclient.READER,
            'placement does not allow this with the credentials of cloud '
            'functional',
        )

    def expired_token(self):
        create_context = auth.NovaKeystoneContext._create_context

        def refusing(env, **kwargs):
            # As keystonemiddleware answers, which nova's fixture replaces.
            if self.openstack.user is openstackclient.EXPIRED:
                raise webob.exc.HTTPUnauthorized()
            return create_context(env, **kwargs)

        self.patch(
            auth.NovaKeystoneContext, '_create_context', staticmethod(refusing)
        )
        self.assertRefused(
            openstackclient.EXPIRED, 'HttpException: 401: Client Error for url'
        )

    def placement_is_down(self):
        self.useFixture(
            openstackclient.OpenStackClient(
                self.api_fixture.api.base_url,
                {'placement': 'http://127.0.0.1:1/placement'},
            )
        )
        self.assertRefused(self.openstack.user, 'no connection to placement')
