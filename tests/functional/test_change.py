# SPDX-License-Identifier: Apache-2.0

"""A change before it is made, beside a real nova and placement.

nova's own request filters read aggregates too. Each case names a change that
the databases do not have: an answer of theirs would contradict our stage 2.
"""

import ddt
import nova.conf

from nova_ext_sched.cmd.audit import command as audit
from nova_ext_sched.cmd.capacity import command as capacity
from nova_ext_sched.cmd.explain import command as explain_command
from nova_ext_sched.cmd.moves import command as moves
from tests.functional import capacity as capacity_run
from tests.functional import explain

CONF = nova.conf.CONF
TRAIT = 'CUSTOM_WINDOWS'
ISOLATING = f'trait:{TRAIT}'


class ChangeTestCase(explain.ExplainTestCase):
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
        answer = explain.run(
            '--flavor',
            self.flavor(),
            '--project',
            project or self.api.project_id,
            *args,
            '-f',
            'json',
        )
        self.assertEqual('', answer.err)
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


class RequestFiltersTestCase(ChangeTestCase):
    def test_isolate_aggregates(self):
        self.flags(enable_isolated_aggregate_filtering=True, group='scheduler')
        open_, closed = ['host1', 'host2', 'host3'], ['host2', 'host3']
        self.assertEqual(
            closed, self.order(*self.set(f'{ISOLATING}=required'))
        )
        self.assertStage1('isolate_aggregates', 'host1')
        self.assertEqual(open_, self.order())
        self.assertStage1('isolate_aggregates')
        self.set_metadata('special', {ISOLATING: 'required'})
        self.assertEqual(closed, self.order())
        self.assertEqual(open_, self.order(*self.unset(ISOLATING)))
        self.assertStage1('isolate_aggregates')

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

    def test_map_az_to_placement_aggregate(self):
        west = ('--availability-zone', 'west')
        change = self.set('availability_zone=west')
        self.assertEqual(['host1'], self.order(*west, *change))
        self.assertStage1('map_az_to_placement_aggregate', 'host2', 'host3')
        self.set_metadata('special', {'availability_zone': 'east'})
        east = ('--availability-zone', 'east')
        self.assertEqual(['host1'], self.order(*east))
        self.assertEqual(['host1'], self.order(*west, *change))
        self.aggregate('more', ['host3'], zone='west')
        self.assertEqual(['host1', 'host3'], self.order(*west, *change))
        self.assertEqual(['host3'], self.order(*west))


@ddt.ddt
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
            del one['time']
        return documents

    @ddt.data(
        ('--aggregate-host', 'west', 'host3'),
        ('--aggregate-host', 'other', 'host3'),
        ('--no-aggregate-host', 'west', 'host1'),
        ('--no-aggregate-host', 'west', 'host2'),
        ('--aggregate-host', 'windows', 'host1'),
        ('--no-aggregate-host', 'windows', 'host2'),
        ('--aggregate-property', 'special', f'{ISOLATING}=required'),
        ('--no-aggregate-property', 'windows', ISOLATING),
    )
    def test_before_is_after(self, change):
        self.small = self.flavor()
        option, name, item = change
        number = self.aggregate_ids[name]
        cases = ((), ('--availability-zone', 'west'))
        before = [self.ask(*change, *args) for args in cases]
        unchanged = [self.ask(*args) for args in cases]
        match option.split('-')[2:]:
            case 'aggregate', 'host':
                self.admin_api.add_host_to_aggregate(number, item)
            case 'no', *_, 'host':
                self.admin_api.post_aggregate_action(
                    number, {'remove_host': {'host': item}}
                )
            case _:
                key, _, value = item.partition('=')
                self.set_metadata(name, {key: value or None})
        after = [self.ask(*args) for args in cases]
        self.assertNotEqual(unchanged, after)
        self.assertEqual(after, before)

    def test_limit(self):
        """The change counts before placement's answer ends."""
        self.flags(max_placement_results=1, group='scheduler')
        west = ('--availability-zone', 'west')
        self.assertEqual(['host1'], self.order(*west))
        leaving = ('--no-aggregate-host', 'west', 'host1')
        opened = ('--no-aggregate-host', 'windows', 'host2')
        self.assertEqual(['host2'], self.order(*west, *leaving, *opened))
        self.assertEqual([], self.order(*west, *leaving))


class OptionsTestCase(ChangeTestCase):
    options = {'request_filters': ['isolate_aggregates']}

    def setUp(self):
        super().setUp()
        # An option of a command stays set in its process.
        self.addCleanup(
            CONF.clear_override,
            'enable_isolated_aggregate_filtering',
            'nova_ext_sched',
        )

    isolation = (
        '--option',
        'nova_ext_sched.enable_isolated_aggregate_filtering=true',
    )

    def test_explain(self):
        self.assertEqual(3, len(self.order()))
        self.assertEqual(
            ['host2', 'host3'],
            self.order(*self.isolation, *self.set(f'{ISOLATING}=required')),
        )
        self.assertEqual(3, len(self.order()))

    def test_capacity(self):
        flavor = ('--flavor', self.named('large', 4), '--hosts', '-f', 'json')

        def count(*args):
            answer = capacity_run.run(*flavor, *args)
            self.assertEqual('', answer.err)
            return {*answer.rooms}

        hosts = {'host1', 'host2', 'host3'}
        change = self.set(f'{ISOLATING}=required')
        self.assertEqual(hosts, count(*change))
        self.assertEqual(hosts - {'host1'}, count(*self.isolation, *change))
        self.set_metadata('special', {ISOLATING: 'required'})
        self.assertEqual(hosts - {'host1'}, count())
        self.assertEqual(hosts, count(*self.unset(ISOLATING)))


@ddt.ddt
class WhatDoesNotExistTestCase(ChangeTestCase):
    @ddt.data(
        (explain_command.Explain, 'explain', '--flavor', '1'),
        (audit.Audit, 'audit'),
        (moves.Mend, 'mend'),
        (capacity.Capacity, 'capacity'),
    )
    def test_what_there_is(self, command):
        class_, name, *args = command
        self.set_metadata('special', {'rack': 'r1'})
        for argv, known in (
            (('--option', 'nova_ext_sched.nothing=1'), 'option of nova.conf'),
            (('--aggregate-property', 'specal', 'a=b'), ': special'),
            (('--aggregate-property', 'special', 'a'), 'KEY=VALUE'),
            (('--no-aggregate-property', 'specal', 'a'), ': special'),
            (('--no-aggregate-property', 'special', 'a'), 'special: rack'),
            (('--aggregate-host', 'specal', 'host1'), ': special'),
            (('--aggregate-host', 'special', 'host4'), ': host1, host2'),
            (('--no-aggregate-host', 'specal', 'host1'), ': special'),
            (('--no-aggregate-host', 'special', 'host2'), ': host1'),
        ):
            out, err, status = explain.call(class_, name, *args, *argv)
            self.assertEqual(('', 2), (out, status), argv)
            self.assertIn(known, err)
