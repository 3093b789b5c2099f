# SPDX-License-Identifier: Apache-2.0

"""The commands that only look, where nova.conf has no line of ours.

nova.conf is that of nova-scheduler as kolla-ansible writes it; the user of
placement has the role and the rules that the page *Look first* names.
"""

import json
import re

import fixtures
from keystoneauth1 import session
import nova.conf
from oslo_config import fixture as config_fixture
from placement import db_api as placement_db
from placement import policies
from placement.tests.unit import policy_fixture
import sqlalchemy as sa
import yaml

from nova_ext_sched import conf
from nova_ext_sched.cmd import audit
from nova_ext_sched.cmd import capacity
from nova_ext_sched.cmd import drain
from nova_ext_sched.cmd import explain as explain_command
from nova_ext_sched.cmd import mend
from nova_ext_sched.cmd import survive
from tests import documentation
from tests.functional import base
from tests.functional import explain

CONF = nova.conf.CONF

#: What kolla-ansible writes for nova-scheduler, with cells and without Blazar,
#: and a scheduler's decision may depend on; the rest is addresses and logs.
KOLLA = {
    None: {'allow_resize_to_same_host': True},
    'filter_scheduler': {'track_instance_changes': False},
    'scheduler': {'max_attempts': 10, 'discover_hosts_in_cells_interval': -1},
}

PAGE = documentation.ROOT / 'doc' / 'source' / 'install' / 'look-first.rst'

_READS = re.compile(r'\s*(SELECT|PRAGMA|BEGIN)\b')


class NovaConf(fixtures.Fixture):
    """A nova.conf without a line of this package."""

    def __init__(self, host_filters=(), **options):
        super().__init__()
        assert not host_filters and not options

    def _setUp(self):
        # As the commands do, whatever nova.conf has.
        conf.register_opts(CONF)
        config = self.useFixture(config_fixture.Config(CONF))
        for group, options in KOLLA.items():
            config.config(group=group, **options)
        # No service reports while a command looks.
        config.config(report_interval=0, service_down_time=3600)


class Watch(fixtures.Fixture):
    """Records what the databases and placement are asked, from now on.

    :param engines: of the databases; a command also has one of its own, in
        memory, where it supposes a change
    :param endpoint: of placement
    :ivar statements: all, in order
    :ivar asked: of placement: method and path of each request
    """

    def __init__(self, engines, endpoint):
        super().__init__()
        self._engines, self._endpoint = engines, endpoint
        self.statements, self.asked = [], []

    def _setUp(self):
        self.useFixture(
            fixtures.MonkeyPatch(
                'keystoneauth1.session.Session.request', self._make_request()
            )
        )
        for engine in self._engines:
            where = (engine, 'before_cursor_execute', self._record)
            sa.event.listen(*where)
            self.addCleanup(sa.event.remove, *where)

    def _record(self, connection, cursor, statement, *args):
        self.statements.append(statement)

    def _make_request(self):
        request = session.Session.request

        def ask(session, url, method, **kwargs):
            where = kwargs.get('endpoint_override') or ''
            if where.startswith(self._endpoint):
                self.asked.append((method, url))
                # What keystone's middleware would say of the user.
                kwargs['headers'].update(
                    {'x-auth-token': 'looker', 'X_ROLES': 'reader'}
                )
            return request(session, url, method, **kwargs)

        return ask

    @property
    def writes(self):
        """Whatever does more than read."""
        found = [one for one in self.statements if not _READS.match(one)]
        return found + [one for one in self.asked if one[0] != 'GET']


class LookFirstTestCase(base.CloudTestCase):
    NUMBER_OF_CELLS = 2
    plugin = NovaConf
    weights = {'host1': 300, 'host2': 200, 'host3': 100}
    cells = {'host3': 'cell2'}

    @property
    def engines(self):
        return {
            'api': self.api_engine(),
            'placement': (
                placement_db.placement_context_manager.writer.get_engine()
            ),
            **{name: self.cell_engine(name) for name in self.cell_mappings},
        }

    def rows(self):
        """Return all rows of all databases."""
        found = {}
        for name, engine in self.engines.items():
            with engine.connect() as connection:
                for table in sa.inspect(engine).get_table_names():
                    rows = connection.execute(
                        sa.text(f'SELECT * FROM "{table}"')
                    )
                    found[name, table] = [tuple(row) for row in rows]
        return found

    def watch(self):
        return Watch(self.engines.values(), self.placement.fixture.endpoint)

    def look(self, class_, name, *argv, status=0):
        """Run a command; it reads, and changes nothing.

        :returns: its document
        """
        before = self.rows()
        with self.watch() as watch:
            out, err, got = explain.ask(class_, name, *argv)
        self.assertEqual([], watch.writes)
        self.assertNotEqual([], watch.statements)
        self.assertEqual(before, self.rows())
        self.assertEqual(status, got, err)
        return json.loads(out)

    def test_commands(self):
        # nova-compute would refuse what the forced host brings.
        self.flags(disable_group_policy_check_upcall=True, group='workarounds')
        hints = {'group': self.create_group()}
        for _ in range(2):
            self.boot(hints=hints, az='nova:host1')
        self.boot(az='nova:host3')
        self.flavor(name='small')
        refused = self.assertNoValidHost(flavor=self.flavor(vcpu=1000))
        self.refused_by_default()
        policy_fixture.PolicyFixture.set_rules(
            self.rules_of_the_page(), overwrite=False
        )
        asked = ('--server', refused['id'])
        found = self.look(explain_command.Explain, 'explain', *asked, status=3)
        self.assertIn('too small', found['answer']['sentence'])
        # By nova's own group rules.
        found = self.look(audit.Audit, 'audit', status=3)
        self.assertEqual({'anti-affinity': 2}, found['answer']['policies'])
        self.before_it_is_turned_on()
        [flavor] = self.look(
            capacity.Capacity, 'capacity', '--flavor', 'small'
        )['flavors']
        self.assertEqual(117, flavor['servers'])
        [move] = self.look(mend.Mend, 'mend')['moves']
        self.assertEqual('host2', move['to'])
        # The other cell's host is no place for the second.
        plan = self.look(drain.Drain, 'drain', 'host1', status=3)
        self.assertEqual(1, len(plan['moves']))
        failures = self.look(survive.Survive, 'survive', status=3)
        self.assertEqual(
            ['host1', 'host3'],
            sorted(one['failure'] for one in failures['failures']),
        )
        self.each_operation()

    def each_operation(self):
        server = self.boot()
        asked = ('explain', '--server', server['id'], '--operation')
        for operation in (
            ('migrate',),
            ('live-migrate',),
            ('evacuate',),
            ('resize', '--flavor', self.plain_flavor),
            ('rebuild', '--image-property', 'hw_vif_model=virtio'),
        ):
            self.look(explain_command.Explain, *asked, *operation)
        self.flags(shelved_offload_time=0)
        self._shelve_server(server)
        self.look(explain_command.Explain, *asked, 'unshelve')

    def refused_by_default(self):
        """Placement's default rules let readers see nothing of this."""
        with self.watch():
            _, err, status = explain.call(
                explain_command.Explain, 'explain', '--flavor', 'small'
            )
        self.assertEqual(1, status)
        self.assertIn('placement:allocation_candidates:list', err)

    def rules_of_the_page(self):
        """Return the rules; by none of them may readers write."""
        [block] = [
            one for one in documentation.read(PAGE) if one.language == 'yaml'
        ]
        rules = yaml.safe_load(block.text)
        methods = {
            operation['method']
            for rule in policies.list_rules()
            if rule.name in rules
            for operation in rule.operations
        }
        self.assertEqual({'GET'}, methods)
        return rules

    def before_it_is_turned_on(self):
        """Audit judges by a policy that no line of nova.conf loads yet."""
        self.isolate('windows', ['host3'], 'CUSTOM_WINDOWS')
        option = 'nova_ext_sched.enable_isolated_aggregate_filtering=True'
        found = self.look(audit.Audit, 'audit', '--option', option, status=3)
        self.assertEqual(
            {'anti-affinity': 2, 'failure-domain': 0, 'isolation': 1},
            found['answer']['policies'],
        )
        enabled = 'filter_scheduler.enabled_filters='
        for names, policies_on in (
            ('ComputeFilter', {}),
            (
                'IsolatedAggregatesFilter,ServerGroupAntiAffinityFilter',
                {'anti-affinity': 2, 'failure-domain': 0},
            ),
        ):
            found = self.look(
                audit.Audit,
                'audit',
                *('--option', enabled + names),
                status=3 if policies_on else 0,
            )
            self.assertEqual(policies_on, found['answer']['policies'])
