# SPDX-License-Identifier: Apache-2.0

"""A cloud of many kinds of hosts, and what its scheduler really decided."""

import copy

from nova.tests.fixtures import neutron
from oslo_utils import uuidutils

from tests import distributions
from tests.functional import base
from tests.functional import decisions
from tests.functional import explain
from tests.functional import explain_driver


class RandomCloudTestCase(base.CloudTestCase):
    """Seven hosts in two cells, most filters of nova and a third party's."""

    NUMBER_OF_CELLS = 2
    # Later ones show scheduler hints, and refuse to show a query.
    microversion = '2.90'
    driver = explain_driver.Driver
    weights = {
        'host1': 10,
        'host2': 30,
        'host3': 20,
        'host4': 50,
        'host5': 40,
        'host6': 60,
        'host7': 70,
    }
    cells = dict.fromkeys(('host4', 'host5', 'host7'), 'cell2')
    host_filters = (
        'NUMATopologyFilter',
        'PciPassthroughFilter',
        'AggregateMultiTenancyIsolation',
        'JsonFilter',
        'AggregateImagePropertiesIsolation',
        'SameHostFilter',
        'DifferentHostFilter',
        'AggregateInstanceTypeFilter',
        'IsolatedAggregatesFilter',
        'ThirdPartyFilter',
    )
    options = explain.OPTIONS

    def setUp(self):
        package = distributions.PACKAGES / 'third_party'
        self.useFixture(distributions.Distributions()).declare(
            'third_party_sched',
            'nova_ext_sched.host_filters',
            ['ThirdPartyFilter = third_party_sched:ThirdPartyFilter'],
            (package / 'third_party_sched.py').read_text(),
        )
        explain_driver.name_devices(self)
        self.flags(
            initial_cpu_allocation_ratio=1.0,
            initial_disk_allocation_ratio=1.0,
            shelved_offload_time=0,
        )
        self.decisions = decisions.record(self)
        super().setUp()

    def network_providers(self, host):
        """Create what neutron's agent reports for a host: bandwidth."""
        traits = ('CUSTOM_PHYSNET2', 'CUSTOM_VNIC_TYPE_NORMAL')
        for trait in traits:
            self._create_trait(trait)
        parent = self._get_provider_uuid_by_host(host)
        for name in ('agent', 'bridge'):
            uuid = uuidutils.generate_uuid()
            self.placement.post(
                '/resource_providers',
                {
                    'uuid': uuid,
                    'name': f'{host}:{name}',
                    'parent_provider_uuid': parent,
                },
                version='1.20',
            )
            parent = uuid
        answer = self.placement.put(
            f'/resource_providers/{parent}/inventories',
            {
                'resource_provider_generation': 0,
                'inventories': {
                    'NET_BW_IGR_KILOBIT_PER_SEC': {'total': 2000},
                    'NET_BW_EGR_KILOBIT_PER_SEC': {'total': 2000},
                },
            },
        )
        self.assertEqual(200, answer.status, answer.body)
        self._set_provider_traits(parent, list(traits))

    def port(self):
        """Create a port of neutron that asks for bandwidth; return its ID."""
        port = copy.deepcopy(neutron.NeutronFixture.port_with_resource_request)
        number = len(self.neutron._ports)
        port['id'] = uuidutils.generate_uuid()
        port['mac_address'] = f'52:54:00:1e:5a:{number:02x}'
        port['fixed_ips'][0]['ip_address'] = f'192.168.1.{100 + number}'
        self.neutron._ports[port['id']] = port
        return port['id']
