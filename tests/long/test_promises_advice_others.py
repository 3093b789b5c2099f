# SPDX-License-Identifier: Apache-2.0

"""Further requests that fail: types of devices, and what nova ignores."""

from nova.scheduler import utils

from tests.functional import advice
from tests.functional import base
from tests.functional import explain
from tests.long import test_promises_advice
from tests.long import test_promises_resources

TYPE = 'CUSTOM_NVIDIA_12'


class TypeRowsTestCase(advice.RowsMixin, base.CloudTestCase):
    """vGPUs of one type on three hosts, of another one on two of these."""

    weights = {'host1': 300, 'host2': 200, 'host3': 100}
    driver = test_promises_resources.GpuDriver
    allocation_ratio = 1.0

    def of_type(self, type_=TYPE, number=1):
        """Create a flavor that asks for vGPUs in a group of their own."""
        return self.flavor(
            specs={
                'resources1:VGPU': f'{number}',
                f'trait1:{type_}': 'required',
            }
        )

    def limit_type(self, **fields):
        """Let the providers of the type have other inventories."""
        for host in ('host2', 'host3'):
            for uuid in self._get_all_rp_uuids_in_a_tree(self.providers[host]):
                if TYPE not in self._get_provider_traits(uuid):
                    continue
                before = self._get_provider_inventory(uuid)
                self.undone.append(
                    lambda uuid=uuid, before=before: self.write(uuid, before)
                )
                self.write(uuid, {'VGPU': before['VGPU'] | fields})

    def write(self, uuid, inventories):
        url = f'/resource_providers/{uuid}'
        read = self.placement.get(url, version='1.19').body
        answer = self.placement.put(
            f'{url}/inventories',
            {
                'resource_provider_generation': read['generation'],
                'inventories': inventories,
            },
            version='1.19',
        )
        self.assertEqual(200, answer.status, answer.body)

    def row_type_used_up(self):
        """All devices of the type are used."""
        three = self.of_type(number=3)
        first, _ = (
            self.boot(flavor=three, az=f'nova:{host}')
            for host in ('host2', 'host3')
        )
        self.check(
            f'2 are full (VGPU with {TYPE})',
            'free VGPU on one of host2, host3',
            do=lambda: self._delete_server(first),
            flavor=self.of_type(),
        )

    def row_type_reserved(self):
        """All devices of the type are reserved."""
        # placement takes no inventory that is reserved whole.
        self.limit_type(reserved=2)
        self.check(
            f'2 have VGPU with {TYPE} reserved',
            None,
            flavor=self.of_type(number=2),
        )

    def row_type_too_small(self):
        """No device of the type gives one server as many."""
        self.check(
            f'2 are too small (VGPU with {TYPE})',
            None,
            flavor=self.of_type(number=4),
        )

    def row_no_type(self):
        """No host has the type."""
        self.check(
            '3 have no VGPU with CUSTOM_NVIDIA_13',
            None,
            flavor=self.of_type('CUSTOM_NVIDIA_13'),
        )


class ServerRowsTestCase(
    test_promises_advice.AdvisedCloud, base.CloudTestCase
):
    """Servers that run, and a resize of them that failed."""

    def row_resize(self):
        """No host has room for the new flavor: another one gets some."""
        large = self.flavor(vcpu=6)
        server = self.boot(az='nova:host1')
        [first, *_] = [
            self.boot(az=f'nova:{host}', flavor=self.flavor(vcpu=6))
            for host in ('host2', 'host3')
        ]
        self.option(None, allow_resize_to_same_host=False)
        self.act(server, 'resize', 'ACTIVE', flavorRef=large)
        self.wait_until_idle(server)
        answer = explain.read('--server', server['id'])
        # It runs, and it is not to be created.
        self.assertIn(
            'is on host1 (active)', answer.document['request']['stands']
        )
        text = explain.run('--server', server['id']).out
        self.assertIn('To see where it can go, add --operation', text)
        answer = explain.of_server(server, 'resize', '--flavor', large)
        self.assertEqual(3, answer.status, answer)
        self.assertIn('2 are full (VCPU)', answer.sentence)
        said = answer.document['answer']['advice'][0]
        self.assertEqual(
            ('free 2 VCPU on one of host2, host3', 1),
            (said['act'], said['hosts']),
        )
        self.do(said, {})
        self.act(server, 'resize', 'VERIFY_RESIZE', flavorRef=large)
        self.acts.append(said['hosts'])

    def row_error(self):
        """A server in ERROR that stands on a host is said to."""
        server = self.boot(az='nova:host1')
        self.reset_state(server, 'error')
        answer = explain.read('--server', server['id'])
        self.assertIn(
            'is on host1 (error)', answer.document['request']['stands']
        )
        self.acts.append(None)


class IgnoredTestCase(base.CloudTestCase):
    """What nova ignores, and says nothing of."""

    weights = {'host1': 300, 'host2': 200}

    def test_what_is_ignored(self):
        self.aggregate('z', ['host1'], zone='west')
        hints = {'query': '["=", "$host", "host9"]'}
        answer = explain.read(
            *('--flavor', self.plain_flavor, '--availability-zone', 'nova'),
            *(f'--hint={key}={value}' for key, value in hints.items()),
        )
        self.assertEqual(0, answer.status, answer)
        said = ' '.join(answer.remarks)
        self.assertIn('nova ignores the availability zone nova', said)
        self.assertIn(
            'nova ignores the scheduler hint query: JsonFilter is not in',
            said,
        )
        self.assertBootsOn('host1', az='nova', hints=hints)

    def test_a_policy_without_a_weigher(self):
        hints = {'group': self.create_group(policy='soft-anti-affinity')}
        answer = explain.read(
            '--flavor', self.plain_flavor, '--server-group', hints['group']
        )
        self.assertEqual(3, answer.status, answer)
        self.boot(hints=hints, expected_state='ERROR')
        weigher = 'ServerGroupSoftAntiAffinityWeigher'
        self.assertIn(weigher, answer.out)
        self.flags(
            group='filter_scheduler',
            weight_classes=[
                f'nova.scheduler.weights.affinity.{weigher}',
            ],
        )
        # As a nova-conductor that starts.
        utils.reset_globals()
        self.boot(hints=hints)


class NoHostTestCase(base.CloudTestCase):
    """A cloud in which no nova-compute has registered yet."""

    started = ()
    weights = {'host1': 1}

    def test_no_host(self):
        asked = ('--flavor', self.plain_flavor)
        answer = explain.read(*asked)
        self.assertEqual(3, answer.status, answer)
        self.assertEqual(
            '0 of 0 hosts can take it. No nova-compute has registered. Once '
            'one has started, "nova-manage cell_v2 discover_hosts" maps its '
            'host.',
            answer.sentence,
        )
        self.boot(expected_state='ERROR')
        # nova's test maps its host.
        self._start_compute('host1')
        self.assertEqual(0, explain.read(*asked).status)
        self.boot()
