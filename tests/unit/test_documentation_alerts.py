# SPDX-License-Identifier: Apache-2.0

"""The alerting rules speak of what the package really says."""

import contextlib
import logging
import os
import pathlib
import re
import subprocess
from unittest import mock

import ddt
import fixtures
from nova import exception as nova_exception
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids
from prometheus_client import parser
import testtools

from nova_ext_sched import log_once
from nova_ext_sched.cli import metrics
from nova_ext_sched.queries import group_members
from nova_ext_sched.request_filters import base as request_filters
from nova_ext_sched.request_filters import blazar
from nova_ext_sched.request_filters import failure_domain
from nova_ext_sched.request_filters import isolation
from nova_ext_sched.request_filters import reservation
from tests import documentation
from tests.unit import test_documentation_messages as messages
from tests.unit import test_monitoring
from tests.unit.request_filters import base

# |= is a piece of a line of the log, |~ a regular expression, != neither.
FILTER = re.compile(r'([|!])([=~]) "([^"]*)"')
RANGE = re.compile(
    r'sum\(count_over_time\(\{job="nova-scheduler"\}'
    r'( [|!][=~] "[^"]*")+ \[\d+[mh]\]\)\) > \d+'
)
# A line of nova's log, and the one with which nova-scheduler ends.
LINE = '{time} 7 {level} nova_ext_sched.x [req-1 - - -] {text}'
END = '{time} 7 CRITICAL nova [-] Unhandled error: nova_ext_sched: {text}'
TIME = '2026-11-05 01:10:42.123'


def rules(name):
    """Return the rules of a file by the name of the alert."""
    return {rule['alert']: rule for rule in test_monitoring.all_rules(name)}


def matches(rule, line):
    """Return whether the filters of a rule let a line through."""
    return all(
        (sign == '|')
        == bool(text in line if kind == '=' else re.search(text, line))
        for sign, kind, text in FILTER.findall(rule['expr'])
    )


def alerts_on(name):
    """Return the texts of the source on which a rule on the log alerts."""
    rule = rules('alerts-log.yaml')[name]

    def is_on(text):
        return any(
            matches(rule, form.format(time=TIME, level=level, text=text))
            for form in (LINE, END)
            for level in ('INFO', 'WARNING', 'ERROR')
        )

    return [text for text in message_texts() if is_on(text)]


def message_texts():
    return [one.text for one in messages.strings() if one.is_message]


@ddt.ddt
class LogTestCase(testtools.TestCase):
    @ddt.data(*rules('alerts-log.yaml').values())
    def test_form(self, rule):
        self.assertRegex(rule['expr'], f'^{RANGE.pattern}$')
        keys = {'alert', 'expr', 'labels', 'annotations'}
        self.assertEqual(keys, {*rule} - {'for'})

    @ddt.data(
        'NovaSchedulerRefusesAll',
        'NovaSchedulerCellIsSilent',
        'NovaSchedulerCannotReadTraits',
        'NovaSchedulerRefusesMany',
    )
    def test_alert_is_on_one_message(self, name):
        self.assertEqual(1, len(alerts_on(name)), alerts_on(name))

    def test_each_way_not_to_start(self):
        """Every alternative of the rule is a message, and none is missing."""
        name = 'NovaSchedulerDoesNotStart'
        found = alerts_on(name)
        rule = rules('alerts-log.yaml')[name]
        [_, (*_, pattern)] = [
            one for one in FILTER.findall(rule['expr']) if one[1] == '~'
        ]
        source = '\n'.join(string.text for string in messages.strings())
        for piece in pattern.replace('(option|section)', 'option').split('|'):
            self.assertIn(piece, source)
        plugin_faults = {
            text for text in message_texts() if text.startswith('plugin ')
        }
        self.assertEqual(set(), plugin_faults - {*found})

    def test_any_warning(self):
        rule = rules('alerts-log.yaml')['NovaSchedulerFindsFaults']
        for level, expected in (('WARNING', True), ('INFO', False)):
            line = LINE.format(time=TIME, level=level, text='...')
            self.assertEqual(expected, bool(matches(rule, line)))

    @ddt.data(*rules('alerts-log.yaml').values())
    def test_a_member_raises_no_alert(self, rule):
        """Whatever stands in a line about what a member wrote."""
        text = (
            'it could land on any host: because a cell does not answer: '
            'cannot be read from placement: '
            'expected the option'
        )
        for level in ('ERROR', 'WARNING', 'CRITICAL'):
            forged = f'{TIME} 7 {level} nova_ext_sched.x [-] {text}'
            line = LINE.format(time=TIME, level='INFO', text=f'got {forged}')
            self.assertFalse(matches(rule, line), line)

    def test_an_alert_stands_in_one_file_once(self):
        found = [rule['alert'] for rule in test_monitoring.all_rules()]
        self.assertEqual(sorted(set(found)), sorted(found))


@ddt.ddt
class MembersTestCase(base.RequestFilterTestCase):
    """Which rules count the line about a request that has no host."""

    level = logging.INFO

    def setUp(self):
        super().setUp()
        form = '%(asctime)s 7 %(levelname)s %(name)s [req-1 - - -] %(message)s'
        logger = fixtures.FakeLogger(level=self.level, format=form)
        self.output = self.useFixture(logger)
        self.image = base.image()
        self.items = [('A', 'agg-a', 'reservation:a', 'true')]
        self.replace('queries.aggregates.get_metadata', lambda *_: self.items)
        self.replace('queries.aggregates.get_by_name_or_value', lambda *_: [])
        self.replace_members({})
        logged = log_once.LogOnce('nova_ext_sched')
        self.replace('request_filters.failure_domain.LOG_HINTS', logged)
        self.set(
            placement_req_required_member_prefix=['reservation:'],
            placement_req_default_forbidden_member_prefix=['reservation:'],
            member_sources=['flavor', 'hint'],
        )

    def replace_members(self, places):
        members = group_members.Members(places, {})
        self.replace('queries.group_members.get_members', lambda *_: members)

    def assertCounted(self, expected, fn, hints, extra_specs=(), enabled=()):
        """Run a request filter; check which rules count its lines."""
        self.enable('Other', *enabled)
        spec = base.request_spec(
            image=self.image,
            flavor=base.flavor(extra_specs=dict(extra_specs)),
            scheduler_hints=hints,
            instance_uuid=uuids.me,
            instance_group=base.group(uuids.me, uuids.other),
        )
        with contextlib.suppress(nova_exception.RequestFilterFailed):
            fn(self.ctxt, spec)
        lines = self.output.output.splitlines()
        self.assertNotEqual([], lines)
        counting = {
            name
            for name, rule in rules('alerts-log.yaml').items()
            if any(matches(rule, line) for line in lines)
        }
        self.assertEqual({*expected}, counting)

    @ddt.data(
        (failure_domain.failure_domains, 'different_failure_domain', 'x'),
        (failure_domain.failure_domains, 'max_server_per_failure_domain', '0'),
        (blazar.blazar_reservations, 'reservation', 'x'),
        (blazar.blazar_reservations, 'reservation', 'x\n'),
        (reservation.reserved_aggregates, 'reservation', 'x'),
        (reservation.reserved_aggregates, 'reservation', 'x\n'),
        (blazar.blazar_reservations, 'reservation', *map(str, range(101))),
        (reservation.reserved_aggregates, 'reservation',
         *map(str, range(101))),
    )  # fmt: skip
    def test_a_bad_hint(self, row):
        fn, hint, *values = row
        expected = ['UserRequestsAlwaysFail']
        hints = {hint: values}
        self.assertCounted(expected, fn, hints, enabled=['BlazarFilter'])

    @ddt.data({}, {'reservation': ['a']}, {'reservation': ['x']})
    def test_a_flavor_that_names_what_is_not(self, hints):
        self.assertCounted(
            ['NovaSchedulerRefusesMany'],
            reservation.reserved_aggregates,
            hints,
            {'reservation:gone': 'true'},
        )

    @ddt.data(
        # nova's own conflict of flavor and image
        ({'os:secure_boot': 'required'}, {'os_secure_boot': 'disabled'},
         'UserRequestsAlwaysFail'),
        # the flavor alone cannot be read
        ({'hw:maxphysaddr_mode': 'x'}, {}, 'NovaSchedulerRefusesMany'),
    )  # fmt: skip
    @ddt.unpack
    def test_what_nova_cannot_read(self, extra_specs, properties, expected):
        self.set(enable_isolated_aggregate_filtering=True)
        self.items = [('A', 'agg-a', 'trait:X', 'required')]
        self.image.properties = objects.ImageMetaProps(**properties)
        self.assertCounted(
            [expected], isolation.isolate_aggregates, {}, extra_specs
        )

    def test_an_image_that_names_what_is_not(self):
        self.set(member_sources=['image'])
        for path, found in (
            ('queries.reservation.running_image.image_id', 'x'),
            ('request_filters.reservation.running_image.restore', None),
            ('queries.reservation.read_image_keys', {'reservation:x'}),
        ):
            self.replace(path, lambda *_, found=found: found)
        self.assertCounted(
            ['UserRequestsAlwaysFail'], reservation.reserved_aggregates, {}
        )

    @ddt.data(
        (nova_exception.CellTimeout('silent'), 'NovaSchedulerCellIsSilent'),
        (OSError('gone'), 'NovaSchedulerRefusesAll'),
    )
    @ddt.unpack
    def test_what_does_not_answer(self, fault, expected):
        """A silent cell refuses some requests; it pages nobody."""
        ask = mock.Mock(side_effect=fault)
        self.replace('queries.group_members.get_members', ask)
        outages = {'failure_domains': request_filters.Outage('nova_ext_sched')}
        self.replace('request_filters.base.OUTAGES', outages)
        self.assertCounted(
            [expected, 'NovaSchedulerFindsFaults'],
            failure_domain.failure_domains,
            {'different_failure_domain': ['true']},
        )

    def test_a_hint_where_there_are_no_failure_domains(self):
        self.replace_members({uuids.other: frozenset(['h'])})
        self.replace('queries.aggregates.get_values', lambda *_: [])
        fn = failure_domain.failure_domains
        self.assertCounted([], fn, {'different_failure_domain': ['true']})
        self.assertIn('are on hosts without a', self.output.output)
        self.assertIn('Add FailureDomainFilter to', self.output.output)
        # The operator asks for it.
        self.set(max_server_per_failure_domain=1)
        self.assertCounted(['NovaSchedulerFindsFaults'], fn, {})


class ExitStatusTestCase(testtools.TestCase):
    """The rules are on what the script of the page writes."""

    def run_script(self):
        [script] = [
            block.text
            for block in documentation.blocks('bash')
            if 'nova_ext_sched_exit_status' in block.text
        ]
        folder = self.useFixture(fixtures.TempDir()).path
        script = script.replace('/var/lib/prometheus/node-exporter', folder)
        # The commands have tests of their own; here only the statuses count.
        functions = """
            openstack() { return 3; }
            nova-ext-sched-status() { return 2; }
        """
        subprocess.run(['bash', '-c', functions + script], check=True)
        self.assertEqual(['nova-ext-sched.prom'], os.listdir(folder))
        return self.read(pathlib.Path(folder, 'nova-ext-sched.prom'))

    @staticmethod
    def read(path):
        with path.open() as stream:
            return list(parser.text_fd_to_metric_families(stream))

    def test_script_and_rules(self):
        name = 'nova_ext_sched_exit_status'
        [family] = self.run_script()
        self.assertEqual(
            {'isolation': 3, 'status': 2},
            {one.labels['command']: one.value for one in family.samples},
        )
        expected = {
            'IsolatedHostsHaveFaults': '{command="isolation"} == 3',
            'NovaSchedulerIsMisconfigured': '{command="status"} >= 2',
            'NovaExtSchedCannotRead': (
                '{command=~"audit|capacity|survive|isolation"} == 1'
            ),
        }
        found = rules('alerts-exit-status.yaml')
        self.assertEqual(
            {alert: name + text for alert, text in expected.items()},
            {alert: rule['expr'] for alert, rule in found.items()},
        )

    def test_the_same_metric_as_that_of_a_run(self):
        """The node exporter takes no two types and texts of one name."""
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'a.prom')
        metrics.write(path, 'x', 1, list)
        [family], [of_a_run] = self.run_script(), self.read(path)
        for name in ('name', 'type', 'documentation'):
            self.assertEqual(getattr(of_a_run, name), getattr(family, name))
