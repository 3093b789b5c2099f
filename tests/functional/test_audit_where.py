# SPDX-License-Identifier: Apache-2.0

"""Where the servers found could go."""

import fixtures
from nova import context as nova_context
from nova import objects

from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.audit import request_specs
from nova_ext_sched.cmd.explain import query
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


class WhereTestCase(audits.AuditTestCase):
    """Isolation is on; host1 is the one that the scheduler prefers."""

    def where(self, *argv):
        status, rows = self.audit('--where', *argv)
        self.assertEqual(3, status)
        return {row['server']: row['where'] for row in rows}

    def test_hosts_in_the_order_of_the_scheduler(self):
        server = self.boot(host='host2')
        self.isolate('windows', ['host2'], 'CUSTOM_WINDOWS')
        self.assertEqual({server['id']: ['host1', 'host3']}, self.where())

    def test_no_host(self):
        server = self.boot()
        self.isolate('windows', list(self.weights), 'CUSTOM_WINDOWS')
        self.assertEqual({server['id']: []}, self.where())

    def test_as_the_scheduler_places_it(self):
        """Each server goes to the first host that was said."""
        servers = [self.boot(host='host2') for _ in range(2)]
        self.isolate('windows', ['host2'], 'CUSTOM_WINDOWS')
        where = self.where()
        for server in servers:
            self.api = self.admin_api
            self.api.post_server_action(server['id'], {'migrate': None})
            self._wait_for_state_change(server, 'VERIFY_RESIZE')
            self.assertEqual(where[server['id']][0], self.host_of(server))

    def test_equal_requests_are_asked_once(self):
        """One query for each flavor, and the hosts read once."""
        flavor = self.flavor(specs={'trait:COMPUTE_NODE': 'required'})
        for host in ('host2', 'host3'):
            for kind in (None, None, flavor):
                self.boot(flavor=kind, host=host)
        self.isolate('windows', ['host2', 'host3'], 'CUSTOM_WINDOWS')
        asked, read = [], []
        candidates = query.Candidates
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.cmd.explain.query.Candidates',
                lambda *args: asked.append(args) or candidates(*args),
            )
        )
        states = nova_scheduler.ReadOnlyHostManager._get_host_states
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_ext_sched.cmd.nova_scheduler.ReadOnlyHostManager.'
                '_get_host_states',
                lambda *args: read.append(args) or states(*args),
            )
        )
        self.assertEqual([['host1']] * 6, list(self.where().values()))
        self.assertEqual((2, 1), (len(asked), len(read)))

    def test_property_of_the_arguments(self):
        """Stage 1 obeys it too: the database has it otherwise."""
        self._create_trait('CUSTOM_WINDOWS')
        server = self.boot(host='host2')
        required = {'trait:CUSTOM_WINDOWS': 'required'}
        self.aggregate('windows', ['host2'])
        self.aggregate('licensed', ['host1'], metadata=required)
        changed = (
            '--aggregate-property',
            'windows',
            'trait:CUSTOM_WINDOWS=required',
        )
        self.assertEqual({server['id']: ['host3']}, self.where(*changed))
        self.assertEqual(
            {server['id']: ['host1', 'host3']},
            self.where(
                *changed,
                '--no-aggregate-property',
                'licensed',
                'trait:CUSTOM_WINDOWS',
            ),
        )
        # Nothing of it is left in the process.
        self.assertNoValidHost(host='host1')


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
        stored = request_specs.select(ctxt, uuids)
        self.assertEqual(set(uuids), set(stored))
        loader = request_specs.Loader(ctxt)
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
