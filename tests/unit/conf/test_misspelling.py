# SPDX-License-Identifier: Apache-2.0

import pathlib

import ddt
import fixtures
import nova.conf
from nova.conf import scheduler
from oslo_config import cfg
from requests_mock.contrib import fixture as requests_mock_fixture
import testtools
import yaml

from nova_ext_sched import conf
from nova_ext_sched import exception
from nova_ext_sched.conf import misspelling

RIGHT = 'enable_isolated_aggregate_filtering'
WRONG = 'enable_isolated_agregate_filtering'
OURS = 'nova_ext_sched'
BLAZAR = 'blazar:physical:host'


def unknown(name, option, section=OURS):
    """Return what is said of an option that nobody registered."""
    return f'[{section}]: expected the option {option}, got {name!r}'


def misplaced(section, name, option=RIGHT, home=OURS):
    """Return what is said of an option in a section that is not its own."""
    return (
        f'[{section}]: expected {option} in the section [{home}], got {name!r}'
    )


def similar(section, ours=OURS):
    """Return what is said of a section whose name is nearly ours."""
    return (
        f'expected the section [{ours}] (if another package reads '
        f"[{section}], add an empty header [{ours}]), got '[{section}]'"
    )


class ConfigurationTestCase(testtools.TestCase):
    """A nova.conf that oslo.config reads as nova's commands do.

    Its lines are written with semicolons between them.
    """

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.config = cfg.ConfigOpts()
        self.config.register_opt(cfg.BoolOpt(RIGHT), group='scheduler')
        self.config.register_opt(cfg.BoolOpt('debug'))
        self.config.register_opts(
            [cfg.StrOpt('x'), cfg.StrOpt('member_sources')], 'nova_ext_shed'
        )
        conf.register_opts(self.config)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text.replace('; ', '\n') + '\n')
        return str(path)

    def check(self, text):
        self.config(['--config-file', self.write('nova.conf', text)])
        conf.check(self.config)


@ddt.ddt
class MisspellingTestCase(ConfigurationTestCase):
    def assertRefused(self, text, *faults):
        error = self.assertRaises(exception.InvalidValues, self.check, text)
        self.assertEqual(
            [f'nova.conf: {fault}' for fault in faults],
            [str(fault) for fault in error.findings],
        )

    @ddt.data(
        '[DEFAULT]; debug = True',
        f'[nova_ext_sched]; {RIGHT} = True',
        # oslo.config reads sections in any case.
        f'[Nova_Ext_Sched]; {RIGHT} = True',
        f'[scheduler]; {RIGHT} = True',
        # Of other packages.
        '[nova_ext_sched_acme]; x = 1',
        '[nova_ext_sched]; [nova_ext_scheduler]; x = 1',
        # Registered by another package, under names that are like ours.
        '[nova_ext_shed]; x = 1; member_sources = 1',
        # The name of an option of [DEFAULT].
        '[debug]; x = 1',
        '[nova_sys_admin]; x = 1',
        '[blazar:physical:host]; aggregate_freepool_name = x',
        '[blazar]; x = 1',
        '[blazar:physical:host]; [physical:host]; x = 1',
        '[nova_ext_sched]; [blazar:physical:host]; blazar_owner = x',
    )
    def test_taken(self, text):
        self.check(text)

    @ddt.data(
        (WRONG, RIGHT),
        # oslo.config reads options as they are registered.
        (RIGHT.upper(), RIGHT),
        (RIGHT.replace('_', '-'), RIGHT),
        ('aggregate_freepol_name', 'aggregate_freepool_name', BLAZAR),
    )
    @ddt.unpack
    def test_option(self, name, option, section=OURS):
        self.assertRefused(
            f'[{section}]; {name} = True', unknown(name, option, section)
        )

    def test_option_like_no_other(self):
        error = self.assertRaises(
            exception.InvalidValues, self.check, '[nova_ext_sched]; zzz = 1'
        )
        self.assertIn('expected one of the options enable_', str(error))
        self.assertIn("weighers, got 'zzz'", str(error))

    @ddt.data(
        ('nova-ext-sched',),
        (' nova_ext_sched ',),
        ('NOVA_EXT_SHCED',),
        # Of another package.
        ('nova_gpu_sched',),
        ('blazar_physical_host', BLAZAR),
        # Of blazar.conf.
        ('physical:host', BLAZAR),
    )
    @ddt.unpack
    def test_similar_section(self, name, ours=OURS):
        """Refused, because no policy of ours would be on."""
        for option in (RIGHT, WRONG, 'blazar_owner', 'x'):
            self.assertRefused(f'[{name}]; {option} = 1', similar(name, ours))
        # Both ways out work.
        self.check(f'[{name}]; x = 1; [{ours}]')
        self.config.register_opt(cfg.StrOpt('x'), group=name)
        self.check(f'[{name}]; x = 1')

    @ddt.data(
        'DEFAULT',
        'scheduler',
        # With a header that is commented out, the section before takes ours.
        'api',
        'debug',
        'acme',
        # Ours with more words.
        'nova_ext_sched_filters',
    )
    def test_option_in_another_section(self, section):
        for text in (
            f'[{section}]; member_sources = flavor',
            f'[nova_ext_sched]; [{section}]; x = 1; member_sources = flavor',
        ):
            self.assertRefused(
                text, misplaced(section, 'member_sources', 'member_sources')
            )

    @ddt.data(
        (BLAZAR, RIGHT),
        # Beside our own.
        ('nova_ext_scheduler', RIGHT),
        ('api', 'Member-Sources', 'member_sources'),
        (OURS, 'blazar_owner', 'blazar_owner', BLAZAR),
        ('DEFAULT', 'blazar_owner', 'blazar_owner', BLAZAR),
    )
    @ddt.unpack
    def test_section_of_others(self, section, name, *home):
        self.assertRefused(
            f'[nova_ext_sched]; [{section}]; {name} = x',
            misplaced(section, name, *home),
        )

    def test_option_that_another_package_registered_in_default(self):
        self.config.register_opt(cfg.StrOpt('member_sources'))
        self.check('[DEFAULT]; member_sources = flavor')

    def test_all_faults_at_once_from_all_files(self):
        folder = self.folder / 'nova.conf.d'
        folder.mkdir()
        files = [
            self.write(name, f'[nova_ext_sched]; {option} = 1')
            for name, option in (
                ('a.conf', 'member_source'),
                ('b.conf', 'max_forbidden_aggregate'),
                ('nova.conf.d/c.conf', WRONG),
            )
        ]
        self.config(
            [
                f'--config-file={files[0]}',
                f'--config-file={files[1]}',
                f'--config-dir={folder}',
            ]
        )
        error = self.assertRaises(
            exception.InvalidValues, conf.check, self.config
        )
        self.assertEqual(
            {'member_source', 'max_forbidden_aggregate', WRONG},
            {fault.got for fault in error.findings},
        )

    @ddt.data(
        (f'OS_NOVA_EXT_SCHED__{RIGHT.upper()}', None),
        ('OS_STDOUT_CAPTURE', None),
        ('OS_DEFAULT__DEBUG', None),
        (f'OS_NOVA_EXT_SCHED__{WRONG.upper()}', unknown(WRONG, RIGHT)),
        (f'OS_DEFAULT__{RIGHT.upper()}', misplaced('DEFAULT', RIGHT)),
        (f'OS_NOVA-EXT-SCHED__{RIGHT.upper()}', similar('nova-ext-sched')),
    )
    @ddt.unpack
    def test_environment(self, name, fault):
        self.useFixture(fixtures.EnvironmentVariable(name, 'True'))
        if fault is None:
            self.check('')
        else:
            self.assertRefused('', fault)

    def test_config_source(self):
        """A file that oslo.config fetches from elsewhere."""
        url = 'http://conf.example.org/nova.conf'
        requests = self.useFixture(requests_mock_fixture.Fixture())
        local = (
            '[DEFAULT]; config_source = remote; [remote]; '
            f'driver = remote_file; uri = {url}'
        )
        requests.get(url, text=f'[nova_ext_sched]\n{RIGHT} = True')
        self.check(local)
        self.assertIs(True, self.config.nova_ext_sched[RIGHT])
        requests.get(url, text=f'[nova_ext_sched]\n{WRONG} = True')
        self.assertRefused(local, unknown(WRONG, RIGHT))


@ddt.ddt
class RepeatedTestCase(ConfigurationTestCase):
    def setUp(self):
        super().setUp()
        self.config = cfg.ConfigOpts()
        scheduler.register_opts(self.config)
        conf.register_opts(self.config)

    def find(self, *texts):
        files = [
            self.write(f'{number}.conf', text)
            for number, text in enumerate(texts)
        ]
        self.config([f'--config-file={one}' for one in files])
        found = conf.contradictions(self.config)
        return [one for one in found if 'in one file' in one]

    @ddt.data(
        (f'[nova_ext_sched]; {RIGHT} = False; {RIGHT} = True', RIGHT, 2),
        # oslo.config joins the sections of a name.
        (
            '[nova_ext_sched]; x = 1; [a]; [nova_ext_sched]; x = 2; x = True',
            'x',
            3,
        ),
    )
    @ddt.unpack
    def test_ours(self, text, name, times):
        [found] = self.find(text)
        self.assertEqual(
            f'[nova_ext_sched] {name} is written {times} times in one file of '
            f"nova.conf. Only the last line counts: 'True'. Keep one line.",
            found,
        )

    def test_what_turns_policies_on(self):
        found = self.find(
            '[filter_scheduler]; enabled_filters = A; enabled_filters = B; '
            'weight_classes = a; weight_classes = b'
        )
        self.assertEqual(
            ['enabled_filters', 'weight_classes'],
            [one.split()[1] for one in found],
        )

    @ddt.data(
        ['[filter_scheduler]; available_filters = a; available_filters = b'],
        ['[filter_scheduler]; x = a; x = b; [other]; x = 1; x = 2'],
        # A later file is there to change the first.
        [f'[nova_ext_sched]; {RIGHT} = {value}' for value in (True, False)],
    )
    def test_others(self, texts):
        self.assertEqual([], self.find(*texts))

    def test_the_environment(self):
        self.useFixture(
            fixtures.EnvironmentVariable('OS_NOVA_EXT_SCHED__X', 'True')
        )
        self.assertEqual([], self.find('[nova_ext_sched]; x = 1'))


@ddt.ddt
class MovedTestCase(ConfigurationTestCase):
    @ddt.data(
        # What stands in the file; the option that nova ignores, and today's.
        ('[DEFAULT]; scheduler_default_filters = ComputeFilter',
         ['scheduler_default_filters', 'enabled_filters']),
        ('[DEFAULT]; scheduler-weight-classes = a; x = 1',
         ['scheduler_weight_classes', 'weight_classes']),
        ('[DEFAULT]; ram_weight_multiplier = 1',
         ['ram_weight_multiplier', 'ram_weight_multiplier']),
        ('[other]; scheduler_weight_classes = a', []),
        ('[filter_scheduler]; ram_weight_multiplier = 1', []),
        # Of another service in the same file, or of a package of today.
        ('[DEFAULT]; shuffle_best_same_weighed_hosts = 1', []),
        ('[DEFAULT]; max_io_ops_per_host = 1', []),
    )  # fmt: skip
    @ddt.unpack
    def test_what_nova_ignores(self, text, expected):
        config = cfg.ConfigOpts()
        scheduler.register_opts(config)
        conf.register_opts(config)
        config.register_opt(cfg.IntOpt('max_io_ops_per_host'))
        config([f'--config-file={self.write("nova.conf", text)}'])
        found = [
            one for one in conf.contradictions(config) if 'ignored' in one
        ]
        if expected:
            old, new = expected
            expected = [
                f'nova has ignored [DEFAULT] {old} since release 24 (Xena). '
                f'Use [filter_scheduler] {new} instead.'
            ]
        self.assertEqual(expected, found)

    def test_nova_has_what_is_named(self):
        """And reads none of the old names."""
        config = cfg.ConfigOpts()
        scheduler.register_opts(config)
        for old, new in misspelling._MOVED.items():
            self.assertIn(new, config.filter_scheduler)
            self.assertNotIn(old, config)


class UnknownTestCase(ConfigurationTestCase):
    def setUp(self):
        super().setUp()
        self.config.register_opts(
            [
                cfg.IntOpt('host_subset_size'),
                cfg.IntOpt(
                    'new',
                    deprecated_opts=[
                        cfg.DeprecatedOpt('old', 'metrics'),
                        cfg.DeprecatedOpt('older'),
                    ],
                ),
            ],
            'filter_scheduler',
        )
        self.config.register_opts([cfg.IntOpt('required')], 'metrics')

    def test_what_nova_does_not_have(self):
        for text, key, meant in (
            ('[filter_scheduler];host_subset_sizes = 1', 'host_subset_sizes',
             'host_subset_size'),
            ('[metrics];other = 1', 'other', ''),
            ('[filter_scheduler];host-subset-size = 1', '', ''),
            ('[filter_scheduler];older = 1', '', ''),
            ('[metrics];old = 1', '', ''),
            # Perhaps of a package that is loaded later.
            ('[others];x = 1', '', ''),
        ):  # fmt: skip
            text = text.replace(';', '; ')
            self.check(text)
            found = [*misspelling.find_unknown(self.config)]
            self.assertEqual(bool(key), bool(found), text)
            for one in found:
                self.assertIn(f'] {key} is no option of this nova', one)
                self.assertEqual(bool(meant), f'Is {meant} meant' in one)


class PublicConfigurationsTestCase(ConfigurationTestCase):
    """What others write into nova.conf is never taken for a slip of ours."""

    def test_nothing_clashes(self):
        path = pathlib.Path(__file__).parent / 'public_nova_conf.yaml'
        sources = yaml.safe_load(path.read_text())
        for source, sections in sources.items():
            with self.subTest(source):
                text = ''.join(
                    f'[{section}]\n'
                    + ''.join(f'{option} = 1\n' for option in options or ())
                    for section, options in sections.items()
                )
                self.check(text)

    def test_nova_has_no_other_option_of_a_name_of_ours(self):
        config = nova.conf.CONF
        conf.register_opts(config)
        ours = set(config.nova_ext_sched)
        self.assertEqual(
            {('scheduler', RIGHT)},
            {
                (section, option)
                for section, options in config.items()
                if isinstance(options, cfg.ConfigOpts.GroupAttr)
                and section != 'nova_ext_sched'
                for option in ours.intersection(options)
            },
        )
