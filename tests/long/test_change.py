# SPDX-License-Identifier: Apache-2.0

"""A change before it is made, beside a real nova and placement.

nova's own request filters read aggregates too. Each case names a change that
the databases do not have: an answer of theirs would contradict our stage 2.
"""

import re

import nova.conf
from nova.tests import fixtures as nova_fixtures

from nova_ext_sched.cmd import audit
from nova_ext_sched.cmd import capacity
from nova_ext_sched.cmd import drain
from nova_ext_sched.cmd import explain as explain_command
from nova_ext_sched.cmd import mend
from nova_ext_sched.cmd import survive
from tests.functional import base
from tests.functional import capacity as capacity_run
from tests.functional import explain

CONF = nova.conf.CONF
TRAIT = 'CUSTOM_WINDOWS'
ISOLATING = f'trait:{TRAIT}'


class ChangeTestCase(base.CloudTestCase):
    weights = {'host1': 300, 'host2': 200, 'host3': 100}
    host_filters = (
        'IsolatedAggregatesFilter',
        'AggregateMultiTenancyIsolation',
    )
    options = {
        'enable_isolated_aggregate_filtering': True,
        'request_filters': [],
    }

    def setUp(self):
        super().setUp()
        self._create_trait(TRAIT)
        self.uuid = self.aggregate('special', ['host1'])

    def order(self, *args, project=None):
        """Return the hosts that are left, the best first."""
        answer = explain.read(
            '--flavor',
            self.flavor(),
            '--project',
            project or self.api.project_id,
            *args,
        )
        # nova.conf of the test may have nova-scheduler warn at start.
        self.assertRegex(
            answer.err, r"\A(nova-scheduler logs [^']*'[^']*'\.\n)?\Z"
        )
        self.answer = answer
        return answer.order

    def assertStage1(self, request_filter, *hosts):
        """Check which hosts nova's request filter alone refuses."""
        names = [row['constraint'] for row in self.answer.rows]
        number = names.index(request_filter)
        self.assertEqual(
            {*hosts},
            {
                one['host']
                for one in self.answer.document['hosts']
                for verdict in one['verdicts']
                if verdict['constraint'] == number
                and verdict['verdict'] == 'refused'
            },
        )

    def set(self, item):
        return ('--aggregate-property', 'special', item)

    def unset(self, key):
        return ('--no-aggregate-property', self.uuid, key)


class TruthTestCase(ChangeTestCase):
    """The answer before a change is the answer after it."""

    options = {'enable_isolated_aggregate_filtering': True}

    def setUp(self):
        super().setUp()
        self.flags(enable_isolated_aggregate_filtering=True, group='scheduler')
        self.aggregate('west', ['host1', 'host2'], zone='west')
        self.aggregate('other', zone='west')
        self.isolate('windows', ['host2'], TRAIT)
        self.set_metadata('special', {'zone': 'x'})

    def ask(self, *args):
        """Return all that explain and capacity say, and when."""
        request = ('--flavor', self.small, '--hosts', '-f', 'json', *args)
        answers = explain.run(*request), capacity_run.run(*request)
        for one in answers:
            self.assertEqual('', one.err)
        documents = [one.document for one in answers]
        for one in documents:
            # What is said of the question, and not of the cloud.
            for key in ('time', 'command', 'supposed'):
                del one[key]
            if answer := one.get('answer'):
                answer['sentence'] = re.sub(
                    '^If .+?: (?=[0-9A-Z])', '', answer['sentence']
                )
        return documents

    def test_changes(self):
        self.the_query_s_limit()
        self.what_does_not_exist()
        self.before_is_after()

    def before_is_after(self):
        """One change after the other."""
        self.small = self.flavor()
        for args, changes in (
            (
                ('--availability-zone', 'west'),
                (
                    ('--aggregate-host', 'other', 'host3'),
                    ('--no-aggregate-host', 'west', 'host1'),
                    (
                        *('--aggregate-property', 'special'),
                        'availability_zone=west',
                    ),
                ),
            ),
            (
                (),
                (
                    ('--aggregate-host', 'windows', 'host3'),
                    ('--no-aggregate-host', 'windows', 'host2'),
                    (
                        *('--aggregate-property', 'special'),
                        f'{ISOLATING}=required',
                    ),
                    ('--no-aggregate-property', 'windows', ISOLATING),
                ),
            ),
        ):
            unchanged = self.ask(*args)
            for change in changes:
                before = self.ask(*change, *args)
                self.make(*change)
                after = self.ask(*args)
                self.assertNotEqual(unchanged, after, change)
                self.assertEqual(after, before, change)
                unchanged = after

    def make(self, option, name, item):
        """Make a change that a command was told of."""
        match option.split('-')[2:]:
            case 'aggregate', 'host':
                self.add_host(name, item)
            case 'no', *_, 'host':
                self.remove_host(name, item)
            case _:
                key, _, value = item.partition('=')
                self.set_metadata(name, {key: value or None})

    def the_query_s_limit(self):
        """The change counts before placement's answer ends."""
        west = ('--availability-zone', 'west')
        leaving = ('--no-aggregate-host', 'west', 'host1')
        opened = ('--no-aggregate-host', 'windows', 'host2')
        with nova_fixtures.ConfPatcher(
            max_placement_results=1, group='scheduler'
        ):
            self.assertEqual(['host1'], self.order(*west))
            self.assertEqual(['host2'], self.order(*west, *leaving, *opened))
            self.assertEqual([], self.order(*west, *leaving))

    def what_does_not_exist(self):
        """The error names what does."""
        for class_, name, *args in (
            (explain_command.Explain, 'explain', '--flavor', '1'),
            (audit.Audit, 'audit'),
            (mend.Mend, 'mend'),
            (drain.Drain, 'drain', 'host1'),
            (survive.Survive, 'survive'),
            (capacity.Capacity, 'capacity'),
        ):
            out, err, status = explain.call(
                class_, name, *args, '--aggregate-host', 'specal', 'host1'
            )
            self.assertEqual(('', 2), (out, status))
            self.assertIn('Did you mean special?', err)


class RequestFiltersTestCase(ChangeTestCase):
    def test_require_tenant_aggregate(self):
        self.flags(
            limit_tenants_to_placement_aggregate=True,
            placement_aggregate_required_for_tenants=True,
            group='scheduler',
        )
        mine, other = self.api.project_id, 'f00d' * 8
        self.assertEqual([], self.order())
        self.assertEqual(
            ['host1'], self.order(*self.set(f'filter_tenant_id={mine}'))
        )
        self.assertStage1('require_tenant_aggregate', 'host2', 'host3')
        self.set_metadata('special', {'filter_tenant_id': mine})
        self.assertEqual(['host1'], self.order())
        self.assertEqual([], self.order(project=other))
        change = self.set(f'filter_tenant_id={other}')
        self.assertEqual(['host1'], self.order(*change, project=other))
        self.assertEqual([], self.order(*change))
        self.assertEqual([], self.order(*self.unset('filter_tenant_id')))


class OptionsTestCase(ChangeTestCase):
    options = {'request_filters': ['isolate_aggregates']}

    isolation = (
        '--option',
        'nova_ext_sched.enable_isolated_aggregate_filtering=true',
    )

    def test_of_a_policy_that_is_off(self):
        self.assertEqual(3, len(self.order()))
        self.assertEqual(
            ['host2', 'host3'],
            self.order(*self.isolation, *self.set(f'{ISOLATING}=required')),
        )
        # Nothing of the option is left.
        self.assertEqual(3, len(self.order()))
        flavor = ('--flavor', self.flavor(vcpu=4), '--hosts', '-f', 'json')

        def count(*args):
            answer = capacity_run.run(*flavor, *args)
            # The filter is enabled, and has nothing to do by nova.conf.
            self.assertRegex(
                answer.err,
                r'\A(nova-scheduler logs . warnings? at start (.+\n)+)?\Z',
            )
            return {*answer.rooms}

        hosts = {'host1', 'host2', 'host3'}
        change = self.set(f'{ISOLATING}=required')
        self.assertEqual(hosts, count(*change))
        self.assertEqual(hosts - {'host1'}, count(*self.isolation, *change))
        self.set_metadata('special', {ISOLATING: 'required'})
        self.assertEqual(hosts, count())
        self.assertEqual(hosts - {'host1'}, count(*self.isolation))
        change = self.unset(ISOLATING)
        self.assertEqual(hosts, count(*self.isolation, *change))
