# SPDX-License-Identifier: Apache-2.0

"""Request specs in bulk, beside what nova itself loads."""

from nova import context as nova_context
from nova import objects

from nova_ext_sched.cmd.cloud import servers
from tests.functional import audits

# nova.objects.RequestSpec._from_db_object leaves them out or empties them.
NOT_STORED = {
    'id',
    'retry',
    'ignore_hosts',
    'requested_destination',
    'requested_resources',
    'network_metadata',
    'request_level_params',
    'requested_networks',
}


class RequestSpecsTestCase(audits.AuditTestCase):
    def test_equal_to_what_nova_loads(self):
        group = self.api.post_server_groups(
            {'name': 'test', 'policy': 'anti-affinity'}
        )
        uuids = [
            self.boot(hints={'group': group['id']})['id'],
            self.boot(flavor=self.flavor(ssd='true'), az='nova:host2')['id'],
        ]
        ctxt = nova_context.get_admin_context()
        stored = servers._select_specs(ctxt, uuids)
        self.assertEqual(set(uuids), set(stored))
        loader = servers.Loader(ctxt)
        for uuid, text in stored.items():
            spec = loader.load(uuid, text)
            loaded = objects.RequestSpec.get_by_instance_uuid(ctxt, uuid)
            for field in spec.fields:
                # What is not stored is of one request alone.
                if field not in NOT_STORED:
                    self.assertEqual(
                        *(describe(one, field) for one in (loaded, spec))
                    )


def describe(spec, field):
    """Return what a request spec has in a field, and whether it has it."""
    value = getattr(spec, field) if field in spec else None
    if hasattr(value, 'obj_to_primitive'):
        value.obj_reset_changes(recursive=True)
        value = value.obj_to_primitive()
    return field, field in spec, value
