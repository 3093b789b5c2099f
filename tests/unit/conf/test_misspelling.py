# SPDX-License-Identifier: Apache-2.0

import pathlib

import ddt
import fixtures
from oslo_config import cfg
import testtools

from nova_ext_sched import conf
from nova_ext_sched import exception

RIGHT = 'enable_isolated_aggregate_filtering'
WRONG = 'enable_isolated_agregate_filtering'


@ddt.ddt
class MisspellingTestCase(testtools.TestCase):
    """Slips in a nova.conf that oslo.config reads as nova's commands do."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.config = cfg.ConfigOpts()
        self.config.register_opt(cfg.BoolOpt(RIGHT), group='scheduler')
        self.config.register_opt(cfg.BoolOpt('debug'))
        self.config.register_opt(cfg.StrOpt('x'), group='nova_ext_shed')
        conf.register_opts(self.config)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def check(self, text):
        self.config(['--config-file', self.write('nova.conf', text)])
        conf.check(self.config)

    def assertRefused(self, text, *faults):
        error = self.assertRaises(
            exception.InvalidValues, self.check, text.replace('; ', '\n')
        )
        self.assertEqual(
            [f'nova.conf: {fault}' for fault in faults],
            [str(fault) for fault in error.faults],
        )
        return error

    @ddt.data(
        '[DEFAULT]; debug = True',
        f'[nova_ext_sched]; {RIGHT} = True',
        # oslo.config reads sections in any case.
        f'[Nova_Ext_Sched]; {RIGHT} = True',
        f'[scheduler]; {RIGHT} = True',
        # Of other packages.
        '[nova_ext_sched_acme]; x = 1',
        '[acme]; request_filters = 1',
        '[nova_ext_sched]; [nova_ext_scheduler]; x = 1',
        '[nova_ext_shed]; x = 1',
        '[nova]; x = 1',
        '[nova_sys_admin]; x = 1',
        '[ext]; x = 1',
    )
    def test_taken(self, text):
        self.check(text.replace('; ', '\n'))

    @ddt.data(
        (WRONG, f'the option {RIGHT}'),
        # oslo.config reads options as they are registered.
        (RIGHT.upper(), f'the option {RIGHT}'),
        (RIGHT.replace('_', '-'), f'the option {RIGHT}'),
        ('forbid_by_traits', 'the option forbid_by_trait'),
        ('member_source', 'the option member_sources'),
    )
    @ddt.unpack
    def test_option(self, name, expected):
        self.assertRefused(
            f'[nova_ext_sched]; {name} = True',
            f'[nova_ext_sched]: expected {expected}, got {name!r}',
        )

    def test_option_like_no_other(self):
        error = self.assertRaises(
            exception.InvalidValues, self.check, '[nova_ext_sched]\nzzz = 1'
        )
        self.assertIn('expected one of the options enable_iso', str(error))
        self.assertIn(' request_filters, got', str(error))

    @ddt.data(
        'nova-ext-sched',
        'nova.ext.sched',
        'NOVA-EXT-SCHED',
        ' nova_ext_sched ',
        'nova_ext_scheduler',
        'nova_ext_shced',
        'novaext_sched',
        'ext_sched',
        'nova_sched',
    )
    def test_section(self, name):
        self.assertRefused(
            f'[{name}]; {RIGHT} = True',
            f"expected the section [nova_ext_sched], got '[{name}]'",
        )

    @ddt.data(
        (
            '[blazar:physical:host]; aggregate_freepol_name = x',
            '[blazar:physical:host]: expected the option '
            "aggregate_freepool_name, got 'aggregate_freepol_name'",
        ),
        (
            f'[blazar:physical:host]; {RIGHT} = x',
            f'[blazar:physical:host]: expected {RIGHT} in the section '
            f"[nova_ext_sched], got '{RIGHT}'",
        ),
        (
            '[nova_ext_sched]; blazar_owner = x',
            '[nova_ext_sched]: expected blazar_owner in the section '
            "[blazar:physical:host], got 'blazar_owner'",
        ),
        (
            '[DEFAULT]; blazar_owner = x',
            '[DEFAULT]: expected blazar_owner in the section '
            "[blazar:physical:host], got 'blazar_owner'",
        ),
        *(
            (
                f'[{section}]; blazar_owner = x',
                f'expected the section [blazar:physical:host], got '
                f"'[{section}]'",
            )
            for section in (
                'blazar_physical_host',
                'blazar-physical-host',
                # blazar.conf's.
                'physical:host',
            )
        ),
    )
    @ddt.unpack
    def test_blazar(self, text, fault):
        self.assertRefused(text, fault.replace('nova.conf: ', ''))

    @ddt.data(
        '[blazar:physical:host]; aggregate_freepool_name = x',
        '[Blazar:Physical:Host]; aggregate_freepool_name = x',
        '[blazar]; x = 1',
        '[blazar:physical:host]; [physical:host]; x = 1',
        '[nova_ext_sched]; [blazar:physical:host]; blazar_owner = x',
    )
    def test_blazar_taken(self, text):
        self.check(text.replace('; ', '\n'))

    def test_section_beside_ours(self):
        self.assertRefused(
            '[nova_ext_sched]; [nova-ext-sched]; x = 1',
            "expected the section [nova_ext_sched], got '[nova-ext-sched]'",
        )

    @ddt.data('DEFAULT', 'scheduler', 'filter_scheduler')
    def test_option_in_a_section_beside(self, section):
        self.assertRefused(
            f'[{section}]; member_sources = flavor',
            f'[{section}]: expected member_sources in the section '
            "[nova_ext_sched], got 'member_sources'",
        )

    def test_all_faults_at_once_from_all_files(self):
        folder = self.folder / 'nova.conf.d'
        folder.mkdir()
        files = [
            self.write(name, f'[nova_ext_sched]\n{option} = 1\n')
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
            {fault.got for fault in error.faults},
        )

    @ddt.data(
        (f'OS_NOVA_EXT_SCHED__{RIGHT.upper()}', None),
        ('OS_STDOUT_CAPTURE', None),
        ('OS_NEUTRON__URL', None),
        (
            f'OS_NOVA_EXT_SCHED__{WRONG.upper()}',
            f'[nova_ext_sched]: expected the option {RIGHT}, got {WRONG!r}',
        ),
        (
            f'OS_NOVAEXT_SCHED__{RIGHT.upper()}',
            "expected the section [nova_ext_sched], got '[novaext_sched]'",
        ),
    )
    @ddt.unpack
    def test_environment(self, name, fault):
        self.useFixture(fixtures.EnvironmentVariable(name, 'True'))
        if fault is None:
            self.check('')
        else:
            self.assertRefused('', fault)
