# SPDX-License-Identifier: Apache-2.0

import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

import ddt
import nova.conf
from oslo_config import cfg
from oslo_config import fixture as config_fixture
import testtools

from nova_ext_sched import conf
from tests.unit.conf import nova_conf

ROOT = pathlib.Path(__file__).parents[3]
SAMPLE = ROOT / 'etc' / 'nova-ext-sched' / 'nova-ext-sched.conf.sample'

PREFIX = 'placement_req_required_member_prefix'
MULTIPLIER = 'server_group_round_robin_weight_multiplier'
# What is said of a value of another form.
PREFIXES = (
    'expected prefixes of keys, separated by commas, none of them empty (to '
    'have none, leave it empty), got '
)
SOURCES = "expected 'flavor' or 'flavor,image', got "
TRAITS = 'expected names of traits, of A to Z, 0 to 9 and _, got '


class OptionsTestCase(testtools.TestCase):
    def test_every_option_has_help_for_operators(self):
        groups = {group.name: options for group, options in conf.list_opts()}
        self.assertEqual({'nova_ext_sched', 'blazar:physical:host'}, {*groups})
        for options in groups.values():
            for option in options:
                self.assertRegex(option.help, r'^\n\S.*\w', option.name)

    def test_sample_is_current(self):
        with tempfile.NamedTemporaryFile('r') as output:
            subprocess.run(
                [
                    sys.executable,
                    '-m',
                    'oslo_config.generator',
                    '--config-file',
                    'etc/nova-ext-sched/config-generator.conf',
                    '--output-file',
                    output.name,
                ],
                cwd=ROOT,
                check=True,
            )
            difference = difflib.unified_diff(
                SAMPLE.read_text().splitlines(),
                output.read().splitlines(),
                lineterm='',
                n=0,
            )
            self.assertEqual(
                '',
                '\n'.join(difference),
                'etc/nova-ext-sched/nova-ext-sched.conf.sample: run "tox -e '
                'genconfig" and commit it',
            )


@ddt.ddt
class ValuesTestCase(testtools.TestCase):
    """Lines of nova.conf. The sample has the defaults."""

    @ddt.data(
        ('forbid_by_trait', 'CUSTOM_WINDOWS', ['CUSTOM_WINDOWS']),
        ('forbid_by_trait', 'CUSTOM_L_*, HW_0', ['CUSTOM_L_*', 'HW_0']),
        ('forbid_by_trait', '*', ['*']),
        (PREFIX, '', []),
        (PREFIX, '""', []),
        (PREFIX, 'reservation:', ['reservation:']),
        (PREFIX, 'reservation:, own:', ['reservation:', 'own:']),
        (PREFIX, 'r_v%', ['r_v%']),
        ('member_project_keys', '', []),
        ('member_project_keys', 'a, b:owner', ['a', 'b:owner']),
        ('isolation_trait_sources', 'flavor', ['flavor']),
        ('isolation_trait_sources', 'image, flavor', ['image', 'flavor']),
        ('failure_domain_key', 'rack', 'rack'),
        ('max_server_per_failure_domain', '2', 2),
        (MULTIPLIER, '0', 0.0),
        (MULTIPLIER, '-2.5', -2.5),
    )
    @ddt.unpack
    def test_good(self, option, value, expected):
        self.assertEqual(expected, nova_conf.read(option, value))

    @ddt.data(
        ('forbid_by_trait', 'custom_windows', f"{TRAITS}'custom_windows'"),
        ('forbid_by_trait', 'X, CUSTOM-Y', f"{TRAITS}'CUSTOM-Y'"),
        ('forbid_by_trait', 'CUSTOM_*_X', f"{TRAITS}'CUSTOM_*_X'"),
        *(
            (PREFIX, value, PREFIXES)
            for value in (',', 'a,', 'a,,b', 'a, ,b', "a,''")
        ),
        *(
            ('member_project_keys', value, PREFIXES)
            for value in (',', 'a,', "a,''")
        ),
        ('isolation_trait_sources', '', f"{SOURCES}''"),
        ('isolation_trait_sources', 'image', f"{SOURCES}'image'"),
        # What oslo.config says of a choice or a number is its own.
        ('isolation_trait_sources', 'flavors', ''),
        ('failure_domain_key', '', 'expected a metadata key, got'),
        ('failure_domain_key', '""', 'expected a metadata key, got'),
        ('max_server_per_failure_domain', '-1', ''),
        ('max_server_per_failure_domain', 'abc', ''),
        *(
            (MULTIPLIER, value, '')
            for value in ('much', 'nan', 'inf', '-inf', '1e400')
        ),
    )
    @ddt.unpack
    def test_refused(self, option, value, expected):
        error = self.assertRaises(
            cfg.ConfigFileValueError, nova_conf.read, option, value
        )
        self.assertRegex(
            str(error),
            rf'^\[nova_ext_sched\]: Value for option {option} from /\S+\.conf '
            rf'is not valid: {re.escape(expected)}',
        )

    @ddt.data(
        'max_forbidden_aggregates', 'max_server_per_failure_domain', MULTIPLIER
    )
    def test_an_empty_number_is_refused(self, option):
        for value in ('', ' '):
            error = self.assertRaises(
                cfg.ConfigFileValueError, nova_conf.read, option, value
            )
            self.assertIn(f'{option}: expected a number', str(error))


@ddt.ddt
class ContradictionsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        conf.register_opts(nova.conf.CONF)
        self.config = self.useFixture(
            config_fixture.Config(nova.conf.CONF)
        ).config
        self.enable('ComputeFilter')
        self.config(
            group='filter_scheduler',
            weight_classes=['nova_ext_sched.weighers.all_weighers'],
        )

    def enable(self, *names):
        self.config(group='filter_scheduler', enabled_filters=list(names))

    def contradictions(self):
        return conf.contradictions(nova.conf.CONF)

    def test_defaults_contradict_nothing(self):
        self.assertEqual([], self.contradictions())

    def test_nothing_to_judge(self):
        self.enable('IsolatedAggregatesFilter')
        (found,) = self.contradictions()
        self.assertIn('IsolatedAggregatesFilter is in', found)
        self.assertIn('so it checks nothing', found)

    def test_isolation_well_set_up(self):
        self.enable('IsolatedAggregatesFilter')
        self.config(
            group='nova_ext_sched', enable_isolated_aggregate_filtering=True
        )
        self.assertEqual([], self.contradictions())

    def test_isolation_contradicted(self):
        self.config(
            group='scheduler', enable_isolated_aggregate_filtering=True
        )
        self.assertEqual([], self.contradictions())
        self.enable('IsolatedAggregatesFilter')
        self.config(
            group='nova_ext_sched', enable_isolated_aggregate_filtering=True
        )
        (found,) = self.contradictions()
        self.assertIn(
            'Both [scheduler] enable_isolated_aggregate_filtering', found
        )

    def reserve(self, required, forbidden):
        self.enable('IsolatedAggregatesFilter')
        self.config(
            group='nova_ext_sched',
            placement_req_required_member_prefix=required,
            placement_req_default_forbidden_member_prefix=forbidden,
        )

    @ddt.data(
        (['r:', 's:'], ['s:', 'r:'], []),
        # Every key of one side is a key of the other.
        (['r:', 'r:gold:'], ['r:'], []),
        (['r:'], ['r:', 'r:gold:'], []),
        (['r:'], [], ['required_member_prefix has r:, .*no other is kept']),
        ([], ['r:'], ['forbidden_member_prefix has r:, .*can use every']),
        (['r:gold:'], ['r:'],
         ['forbidden_member_prefix has r:, .*can use every']),
        (['r:'], ['s:'],
         ['required_member_prefix has r:', 'forbidden_member_prefix has s']),
    )  # fmt: skip
    @ddt.unpack
    def test_prefixes(self, required, forbidden, expected):
        self.reserve(required, forbidden)
        found = self.contradictions()
        self.assertEqual(len(expected), len(found), found)
        for regex, sentence in zip(expected, found, strict=True):
            self.assertRegex(sentence, regex)

    @ddt.data(
        ({'member_sources': []}, 'member_sources is empty'),
        (
            {'member_sources': ['hint'], 'member_project_keys': []},
            'every project can use every reserved',
        ),
    )
    @ddt.unpack
    def test_reservation_contradicted(self, options, expected):
        self.config(group='nova_ext_sched', **options)
        self.assertEqual([], self.contradictions())
        self.reserve(['r:'], ['r:'])
        (found,) = self.contradictions()
        self.assertIn(expected, found)
