# SPDX-License-Identifier: Apache-2.0

"""What a saved cloud has; the list names nothing that nova lacks."""

import ddt
from nova import objects
import nova.conf
from nova.db.api import models as api_models
from nova.db.main import models
import testtools

from nova_ext_sched import conf
from nova_ext_sched.saved import listed
from tests import releases

objects.register_all()

#: Columns of the tables that stay out, with those of nova 31 to 34.
OUT = {
    'aggregate_hosts': 'updated_at',
    'block_device_mapping': 'attachment_id connection_info '
    'encryption_format encryption_options encryption_secret_uuid',
    'build_requests': 'block_device_mappings tags updated_at',
    'compute_nodes': 'extra_resources host_ip',
    'flavor_extra_specs': 'created_at updated_at',
    'flavor_projects': 'created_at updated_at',
    'flavors': 'description',
    'host_mappings': 'created_at updated_at',
    'instance_actions': 'message project_id request_id user_id',
    'instance_actions_events': 'details traceback',
    'instance_extra': 'device_metadata keypairs resources trusted_certs',
    'instance_faults': 'details',
    'instance_group_member': 'created_at updated_at',
    'instance_group_policy': 'created_at updated_at',
    'instance_mappings': 'created_at updated_at',
    'instances': 'access_ip_v4 access_ip_v6 cell_name '
    'default_ephemeral_device default_swap_device disable_terminate '
    'display_description ephemeral_key_uuid hostname kernel_id key_data '
    'key_name ramdisk_id reservation_id shutdown_terminate user_data',
    'migrations': 'dest_host disk_processed disk_remaining disk_total '
    'memory_processed memory_remaining memory_total project_id user_id',
    'request_specs': 'created_at updated_at',
    'share_mapping': 'export_location share_proto',
}


@ddt.ddt
class TablesTestCase(testtools.TestCase):
    @ddt.data((api_models, listed.API), (models, listed.CELL))
    @ddt.unpack
    def test_every_column_is_in_or_out(self, module, tables):
        """A column that a later nova adds is out until somebody says so."""
        for name, columns in tables.items():
            known = set(module.BASE.metadata.tables[name].columns.keys())
            out = set(OUT.get(name, '').split())
            there = set(columns.split())
            self.assertEqual(set(), there & out, name)
            self.assertEqual(set(), known - there - out, name)

    def test_what_objects_cannot_be_without(self):
        """Else nova cannot read the rows: a field of its object is None."""
        for model, cls in (
            (models.BlockDeviceMapping, 'BlockDeviceMapping'),
            (models.ComputeNode, 'ComputeNode'),
            (models.Instance, 'Instance'),
            (models.Migration, 'Migration'),
            (models.PciDevice, 'PciDevice'),
            (models.Service, 'Service'),
            (models.ShareMapping, 'ShareMapping'),
        ):
            name = model.__tablename__
            there = {*listed.CELL[name].split(), *listed.FILLED.get(name, ())}
            for column in model.__table__.c.keys():
                field = getattr(objects, cls).fields.get(column)
                if field is not None and column not in there:
                    # With a default, it takes None all the same.
                    field.coerce(None, column, None)

    def test_json_is_of_listed_columns(self):
        for path in listed.JSON:
            table, _, column = path.partition('.')
            columns = {**listed.API, **listed.CELL}[table].split()
            self.assertIn(column, columns)

    @ddt.data(
        ('nova_ext_sched', set()),
        ('blazar:physical:host', set()),
        ('filter_scheduler', set()),
        ('metrics', set()),
        ('scheduler', {'discover_hosts_in_cells_interval', 'workers'}),
    )
    @ddt.unpack
    def test_every_option_is_in_or_out(self, group, out):
        conf.register_opts(nova.conf.CONF)
        known = set(nova.conf.CONF[group])
        self.assertEqual(
            set(), known - set(listed.OPTIONS[group].split()) - out
        )

    @ddt.data(*listed.OBJECTS)
    def test_objects_are_nova_s(self, name):
        """Older releases lack some of their fields."""
        if releases.NOVA < releases.NEWEST:
            self.skipTest('the list is of the newest nova')
        fields = set(listed.OBJECTS[name].split())
        self.assertEqual(set(), fields - set(getattr(objects, name).fields))


def made(kind, **data):
    return {
        'nova_object.name': kind,
        'nova_object.version': '1.0',
        'nova_object.namespace': 'nova',
        'nova_object.changes': [*data],
        'nova_object.data': data,
    }


@ddt.ddt
class PruneTestCase(testtools.TestCase):
    @ddt.data(
        # A key that the form has, and another.
        ({'a': listed.ANY}, {'a': 1, 'b': 2}, {'a': 1}),
        ({'a': {'b': listed.ANY}}, {'a': {'c': 2}}, {'a': {}}),
        # Any key, unless it is called a secret.
        ({'*': listed.ANY}, {'b': 2, 'os_password': 'x'}, {'b': 2}),
        (listed.ANY, {'b': {'auth_token': 'x'}}, {'b': {}}),
        (listed.ANY, [{'b': 1, 'Secret': 2}], [{'b': 1}]),
        # No list where one is, and the other way.
        ([listed.ANY], {'a': 1}, None),
        ({'a': listed.ANY}, ['a'], None),
        ([{'a': listed.ANY}], [{'a': 1, 'b': 1}, {}], [{'a': 1}, {}]),
        # Objects.
        (
            listed.NOVA,
            made('Instance', uuid='u', user_data='x'),
            made('Instance', uuid='u') | {'nova_object.changes': ['uuid']},
        ),
        (listed.NOVA, made('KeyPair', name='k'), None),
        (
            listed.NOVA,
            made('Instance', uuid='u', flavor=made('KeyPair', name='k')),
            made('Instance', uuid='u'),
        ),
        (
            listed.NOVA,
            {'cur': made('Flavor', name='f', description='x')},
            {'cur': made('Flavor', name='f')},
        ),
        (
            listed.NOVA,
            made('Instance', host=None),
            made('Instance', host=None),
        ),
        # One that only seems to be an object.
        (listed.NOVA, {'nova_object.name': 'Instance'}, None),
    )
    @ddt.unpack
    def test_what_is_left(self, form, value, left):
        found = listed.prune(form, value)
        self.assertEqual(left, found)
        self.assertEqual(found, listed.prune(form, found))

    @ddt.data(listed.ANY, listed.NOVA, [listed.ANY], {'*': listed.ANY})
    def test_too_deep(self, form):
        deep = value = {}
        for _ in range(100):
            value['a'] = [{}]
            [value] = value['a']
        deep = [deep] if isinstance(form, list) else deep
        self.assertRaises(listed.TooDeep, listed.prune, form, deep)

    @ddt.data(
        ('aggregate_metadata', 'trait:CUSTOM_A', True),
        ('flavor_extra_specs', 'db_password', False),
        ('instance_system_metadata', 'image_hw_disk_bus', True),
        ('instance_system_metadata', 'password_0', False),
        ('instance_system_metadata', 'boot_roles', False),
        ('instance_system_metadata', 'image_secret', False),
        ('aggregate_metadata', None, True),
    )
    @ddt.unpack
    def test_rows_with_keys(self, table, key, keeps):
        self.assertEqual(keeps, listed.keeps_key(table, key))
