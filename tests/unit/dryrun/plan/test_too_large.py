# SPDX-License-Identifier: Apache-2.0

"""Servers that no empty host would take."""

import ddt
import testtools

from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import query
from nova_ext_sched.dryrun.plan import too_large
from tests.unit.dryrun.cloud import clouds


@ddt.ddt
class TooLargeTestCase(testtools.TestCase):
    @ddt.data(
        # CPUs, 64 MiB each, limits of a; what is said.
        (8, 8, {}, {}, ''),
        (9, 1, {}, {}, 'the largest host gives one server 8 vCPUs'),
        (1, 90, {}, {}, 'the largest host gives one server 5,120 MB'),
        # One has the CPUs, the other the memory.
        (8, 80, {}, {},
         'no host gives one server 8 vCPUs, 5,120 MB together'),
        (8, 8, {'max_unit': 4}, {},
         'the largest host gives one server 4 vCPUs'),
        (8, 8, {'allocation_ratio': 0.5}, {},
         'the largest host gives one server 4 vCPUs'),
        (4, 8, {}, {'where': 'b'}, ''),
        (5, 8, {}, {'where': 'b'},
         'the largest host gives one server 4 vCPUs'),
        # A numbered group is not asked.
        (1, 1, {}, {'resources1:CUSTOM_A': '9'}, ''),
        (1, 1, {}, {'resources:CUSTOM_A': '1'},
         'the largest host gives one server 0 of CUSTOM_A'),
    )  # fmt: skip
    @ddt.unpack
    def test_what_is_said(self, cpus, units, limits, specs, said):
        cloud = clouds.Cloud('')
        where = specs.get('where', 'ab')
        for host, most, memory in (('a', 8, 40), ('b', 4, 80)):
            cloud.add_node(host, host, VCPU=most, MEMORY_MB=64 * memory)
        # They hold for its memory, too, of which b has more.
        cloud.server.providers['a'].limits = limits
        spec = clouds.make_spec(cpus)
        spec.flavor.memory_mb = 64 * units
        spec.flavor.extra_specs = {
            key: value for key, value in specs.items() if ':' in key
        }
        forms = query.forms(process.context(), spec, cloud)
        elsewhere = frozenset('ab') - frozenset(where)
        self.assertEqual(said, too_large.say(cloud, forms, elsewhere))
