# SPDX-License-Identifier: Apache-2.0

import datetime

import ddt
from nova.db.api import models as api_models
from nova.db.main import models
import sqlalchemy as sa
import testtools

from nova_ext_sched import conf
from nova_ext_sched import exception
from nova_ext_sched.saved import supposed
from nova_ext_sched.saved import trees

UUID = '0000-0000-0000-000000000000'
AMOUNTS = (
    'vcpus memory_mb local_gb vcpus_used memory_mb_used local_gb_used '
    'hypervisor_version'
).split()
NODE, OTHER, *RACKS = (f'{n:08}-{UUID}' for n in range(4))


@ddt.ddt
class AmountTestCase(testtools.TestCase):
    """What an option's value must be, before any table is changed."""

    def suppose(self, name, value):
        wanted = supposed.Supposed(options={name: value})
        time = datetime.datetime(2026, 1, 1)
        supposed.Supposing({}, trees.Trees(None), wanted, time).suppose()

    @ddt.data(
        ('cpu_allocation_ratio', '0', 'a number above 0'),
        ('ram_allocation_ratio', '-1', 'a number above 0'),
        ('disk_allocation_ratio', 'nan', 'a number above 0'),
        ('initial_cpu_allocation_ratio', 'inf', 'a number above 0'),
        ('cpu_allocation_ratio', 'much', 'a number above 0'),
        ('reserved_host_cpus', '1.5', 'a whole number'),
        ('reserved_host_memory_mb', '-1', 'a whole number'),
        ('reserved_host_disk_mb', '', 'a whole number'),
    )
    @ddt.unpack
    def test_refused(self, name, value, expected):
        refused = self.assertRaises(
            exception.InvalidValue, self.suppose, name, value
        )
        for part in (name, expected, repr(value)):
            self.assertIn(part, str(refused))

    @ddt.data(
        ('cpu_allocation_ratio', '0.5'),
        ('initial_ram_allocation_ratio', '1'),
        ('reserved_host_cpus', '0'),
    )
    @ddt.unpack
    def test_taken(self, name, value):
        self.suppose(name, value)


class AddedTestCase(testtools.TestCase):
    """A host whose compute node has another name, as nova's often have."""

    def connect(self, base):
        engine = sa.create_engine(
            'sqlite://', poolclass=sa.pool.StaticPool, future=True
        )
        self.addCleanup(engine.dispose)
        base.metadata.create_all(engine)
        connection = engine.connect()
        self.addCleanup(connection.close)
        return connection

    def add(self, *known):
        """Add a host like cmp1; return its node's UUID, and all providers.

        :param known: what placement knows of cmp1
        """
        conf.register_opts(supposed.CONF)
        api, cell = map(self.connect, (api_models.BASE, models.BASE))
        cell.execute(
            sa.insert(models.Service.__table__).values(
                id=1, host='cmp1', binary='nova-compute', deleted=0
            )
        )
        cell.execute(
            sa.insert(models.ComputeNode.__table__).values(
                id=1,
                deleted=0,
                host='cmp1',
                hypervisor_hostname='cmp1.example.net',
                uuid=NODE,
                **dict.fromkeys(AMOUNTS, 1),
                **dict.fromkeys(('hypervisor_type', 'cpu_info'), ''),
            )
        )
        for id_, uuid in enumerate(RACKS, 1):
            api.execute(
                sa.insert(api_models.Aggregate.__table__).values(
                    id=id_, uuid=uuid, name=uuid
                )
            )
            api.execute(
                sa.insert(api_models.AggregateMetadata.__table__).values(
                    aggregate_id=id_, key='failure_domain', value=f'r{id_}'
                )
            )
        api.execute(
            sa.insert(api_models.AggregateHost.__table__).values(
                aggregate_id=1, host='cmp1'
            )
        )
        providers = trees.Trees(None)
        for provider in known:
            providers.add(provider)
        supposing = supposed.Supposing(
            {'': api, 'cell': cell},
            providers,
            supposed.Supposed([supposed.Added('cmp1', 1, 'r2')]),
            datetime.datetime(2026, 1, 1),
        )
        supposing.suppose()
        [added] = supposing._new
        hosts = cell.scalars(sa.select(models.ComputeNode.host))
        self.assertEqual(['cmp1', 'cmp1-new1'], sorted(hosts))
        return added, providers

    def test_placement_has_the_aggregates_of_nova(self):
        added, providers = self.add(
            {
                **dict.fromkeys(('uuid', 'root'), NODE),
                'name': 'cmp1.example.net',
                'generation': 1,
                'parent': None,
                'aggregates': [RACKS[0], OTHER],
                'traits': [],
                **{name: {} for name in ('inventories', 'allocations')},
            }
        )
        self.assertEqual(
            ('cmp1-new1.example.net', sorted([RACKS[1], OTHER])),
            (
                providers.get(added)['name'],
                providers.get(added)['aggregates'],
            ),
        )

    def test_one_like_a_host_that_placement_lacks(self):
        """Placement lacks it, too."""
        added, providers = self.add()
        self.assertIsNone(providers.get(added))
