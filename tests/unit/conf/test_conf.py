# SPDX-License-Identifier: Apache-2.0

import difflib
import pathlib
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


class OptionsTestCase(testtools.TestCase):
    def test_registering_twice_is_harmless(self):
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        conf.register_opts(config)
        config([])
        self.assertIs(
            False, config.nova_ext_sched.enable_isolated_aggregate_filtering
        )

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
class ForbidByTraitTestCase(testtools.TestCase):
    @ddt.data(
        ('', []),
        ('CUSTOM_WINDOWS', ['CUSTOM_WINDOWS']),
        ('CUSTOM_L_*, HW_GPU_0', ['CUSTOM_L_*', 'HW_GPU_0']),
        ('*', ['*']),
    )
    @ddt.unpack
    def test_good(self, value, expected):
        found = nova_conf.read(f'forbid_by_trait = {value}', 'forbid_by_trait')
        self.assertEqual(expected, found)

    @ddt.data(
        'custom_windows', 'X, CUSTOM-Y', 'CUSTOM_*_X', 'X, trait:Y', '!X'
    )
    def test_no_name_of_a_trait(self, value):
        error = self.assertRaises(
            cfg.ConfigFileValueError,
            nova_conf.read,
            f'forbid_by_trait = {value}',
            'forbid_by_trait',
        )
        self.assertIn(
            'expected names of traits, of A to Z, 0 to 9 and _, got '
            f'{value.removeprefix("X, ")!r}',
            str(error),
        )


@ddt.ddt
class PrefixesTestCase(testtools.TestCase):
    """The prefixes, as lines of nova.conf."""

    OPTION = 'placement_req_required_member_prefix'

    def read(self, lines, option=OPTION):
        return nova_conf.read(lines, option)

    @ddt.data(
        ('', []),
        ('{} =', []),
        ('{} = ""', []),
        ('{} = reservation:', ['reservation:']),
        ('{} = reservation:, own:', ['reservation:', 'own:']),
        ('{} = r_v%', ['r_v%']),
    )
    @ddt.unpack
    def test_good(self, line, expected):
        self.assertEqual(expected, self.read(line.format(self.OPTION)))

    @ddt.data(',', 'a,', ',a', 'a,,b', 'a, ,b', "a,''")
    def test_empty_one_is_refused(self, value):
        error = self.assertRaises(
            cfg.ConfigFileValueError, self.read, f'{self.OPTION} = {value}'
        )
        for part in (
            self.OPTION,
            '.conf',
            'expected prefixes of keys, separated by commas, none of '
            'them empty',
            'got ',
        ):
            self.assertIn(part, str(error))
        self.assertRegex(
            str(error),
            rf'^\[nova_ext_sched\]: Value for option {self.OPTION} from '
            r'/\S+\.conf is not valid: ',
        )

    @ddt.data(
        ('', ['filter_tenant_id']),
        ('{} =', []),
        ('{} = a, b:owner', ['a', 'b:owner']),
    )
    @ddt.unpack
    def test_project_keys_may_be_empty(self, line, expected):
        option = 'member_project_keys'
        self.assertEqual(expected, self.read(line.format(option), option))

    @ddt.data(',', 'a,', "a,''")
    def test_empty_project_key_is_refused(self, value):
        option = 'member_project_keys'
        error = self.assertRaises(
            cfg.ConfigFileValueError, self.read, f'{option} = {value}', option
        )
        self.assertIn('to have none, leave it empty', str(error))


@ddt.ddt
class TraitSourcesTestCase(testtools.TestCase):
    """Lines of nova.conf."""

    OPTION = 'isolation_trait_sources'

    @ddt.data(
        ('', ['flavor', 'image']),
        ('{} = flavor', ['flavor']),
        ('{} = image, flavor', ['image', 'flavor']),
    )
    @ddt.unpack
    def test_good(self, line, expected):
        found = nova_conf.read(line.format(self.OPTION), self.OPTION)
        self.assertEqual(expected, found)

    @ddt.data('', 'image', 'flavors', 'flavor,hint')
    def test_other_sources_are_refused(self, value):
        error = self.assertRaises(
            cfg.ConfigFileValueError,
            nova_conf.read,
            f'{self.OPTION} = {value}',
            self.OPTION,
        )
        self.assertIn(self.OPTION, str(error))
        if value in ('', 'image'):
            self.assertIn(
                f"expected 'flavor' or 'flavor,image', got '{value}'",
                str(error),
            )


@ddt.ddt
class FailureDomainOptionsTestCase(testtools.TestCase):
    """Lines of nova.conf."""

    @ddt.data(('', 'failure_domain'), ('{} = rack', 'rack'))
    @ddt.unpack
    def test_failure_domain_key(self, line, expected):
        option = 'failure_domain_key'
        self.assertEqual(expected, nova_conf.read(line.format(option), option))

    @ddt.data('', '""')
    def test_empty_key_is_refused(self, value):
        error = self.assertRaises(
            cfg.ConfigFileValueError,
            nova_conf.read,
            f'failure_domain_key = {value}',
            'failure_domain_key',
        )
        self.assertIn('expected a metadata key', str(error))

    @ddt.data(('', 0), ('{} = 0', 0), ('{} = 2', 2))
    @ddt.unpack
    def test_max_server_per_failure_domain(self, line, expected):
        option = 'max_server_per_failure_domain'
        self.assertEqual(expected, nova_conf.read(line.format(option), option))

    @ddt.data('', ' ')
    def test_an_empty_number_is_refused(self, value):
        for option in (
            'max_forbidden_aggregates',
            'max_server_per_failure_domain',
        ):
            error = self.assertRaises(
                cfg.ConfigFileValueError,
                nova_conf.read,
                f'{option} = {value}',
                option,
            )
            self.assertIn(f'{option}: expected a number', str(error))

    @ddt.data('-1', 'abc')
    def test_limit_in_another_form_is_refused(self, value):
        option = 'max_server_per_failure_domain'
        self.assertRaises(
            cfg.ConfigFileValueError,
            nova_conf.read,
            f'{option} = {value}',
            option,
        )


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

    @ddt.data(
        (
            'scheduler',
            {'enable_isolated_aggregate_filtering': True},
            r'Both \[scheduler\] enable_isolated_aggregate_filtering',
        ),
    )
    @ddt.unpack
    def test_isolation_contradicted(self, group, options, expected):
        self.config(group=group, **options)
        self.assertEqual([], self.contradictions())
        if group != 'filter_scheduler':
            self.enable('IsolatedAggregatesFilter')
        self.config(
            group='nova_ext_sched', enable_isolated_aggregate_filtering=True
        )
        (found,) = self.contradictions()
        self.assertRegex(found, expected)

    def reserve(self, required, forbidden, **options):
        if options.pop('judged', True):
            self.enable('IsolatedAggregatesFilter')
        self.config(
            group='nova_ext_sched',
            placement_req_required_member_prefix=required,
            placement_req_default_forbidden_member_prefix=forbidden,
            **options,
        )

    @ddt.data(
        (['r:'], ['r:']),
        (['r:', 's:'], ['s:', 'r:']),
        # Every key of one side is a key of the other.
        (['r:', 'r:gold:'], ['r:']),
        (['r:'], ['r:', 'r:gold:']),
    )
    @ddt.unpack
    def test_reservation_well_set_up(self, required, forbidden):
        self.reserve(required, forbidden)
        self.assertEqual([], self.contradictions())

    @ddt.data(
        (
            ['r:'],
            [],
            ['required_member_prefix has r:, .*no other is kept'],
        ),
        ([], ['r:'], ['forbidden_member_prefix has r:, .*may use every']),
        (
            ['r:gold:'],
            ['r:'],
            ['forbidden_member_prefix has r:, .*may use every'],
        ),
        (
            ['r:'],
            ['s:'],
            ['required_member_prefix has r:', 'forbidden_member_prefix has s'],
        ),
    )
    @ddt.unpack
    def test_prefix_on_one_side(self, required, forbidden, expected):
        self.reserve(required, forbidden)
        found = self.contradictions()
        self.assertEqual(len(expected), len(found), found)
        for regex, sentence in zip(expected, found, strict=True):
            self.assertRegex(sentence, regex)

    @ddt.data(
        (
            'nova_ext_sched',
            {'member_sources': []},
            'member_sources is empty',
        ),
        (
            'nova_ext_sched',
            {'member_sources': ['hint'], 'member_project_keys': []},
            'every project may use every reserved',
        ),
    )
    @ddt.unpack
    def test_reservation_contradicted(self, group, options, expected):
        self.config(group=group, **options)
        self.assertEqual([], self.contradictions())
        self.reserve(['r:'], ['r:'], judged=group != 'filter_scheduler')
        (found,) = self.contradictions()
        self.assertRegex(found, expected)
