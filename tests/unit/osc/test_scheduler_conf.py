# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import tempfile
import unittest
from unittest import mock

import ddt
import nova.conf

from nova_ext_sched import exception
from nova_ext_sched.osc import scheduler_conf


def options(text=None, settings=()):
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as stream:
        stream.write(text or '')
        stream.flush()
        files = [] if text is None else [stream.name]
        return scheduler_conf.load(files, settings)


@ddt.ddt
class SchedulerConfTest(unittest.TestCase):
    def test_without_file(self):
        found, (assumed,) = options()
        self.assertTrue(found.enable_isolated_aggregate_filtering)
        for name in scheduler_conf.OUR_FILTERS:
            self.assertEqual(1, found.enabled_filters.count(name))
        self.assertIn('without --nova-conf', assumed)

    def test_file_is_taken_as_it_is(self):
        found, assumed = options('[DEFAULT]\n')
        self.assertEqual([], assumed)
        self.assertFalse(found.enable_isolated_aggregate_filtering)
        self.assertEqual(
            nova.conf.CONF.filter_scheduler.enabled_filters,
            list(found.enabled_filters),
        )

    def test_defaults_are_novas(self):
        """Of every option of nova's that is declared again."""
        for group, opts in scheduler_conf._NOVA.items():
            theirs = (
                nova.conf.CONF if group == 'DEFAULT' else nova.conf.CONF[group]
            )
            for opt in opts:
                self.assertEqual(theirs[opt.name], opt.default, opt.name)

    @ddt.data(
        ('nova_ext_sched', 'forbid_by_trait', 'CUSTOM_*', ['CUSTOM_*']),
        ('nova_ext_sched', 'request_filters', 'a,b', ['a', 'b']),
        (
            'nova_ext_sched',
            'placement_req_required_member_prefix',
            'reservation:',
            ['reservation:'],
        ),
        (
            'nova_ext_sched',
            'placement_req_default_forbidden_member_prefix',
            'reservation:',
            ['reservation:'],
        ),
        ('nova_ext_sched', 'member_sources', 'hint,image', ['hint', 'image']),
        ('nova_ext_sched', 'member_project_keys', 'owner', ['owner']),
        (
            'nova_ext_sched',
            'force_metadata_check_ignored_keys',
            'a,b',
            ['a', 'b'],
        ),
        (
            'nova_ext_sched',
            'enable_isolated_aggregate_filtering',
            'True',
            True,
        ),
        ('scheduler', 'image_metadata_prefilter', 'True', True),
        ('scheduler', 'limit_tenants_to_placement_aggregate', 'True', True),
        (
            'scheduler',
            'placement_aggregate_required_for_tenants',
            'True',
            True,
        ),
        ('scheduler', 'query_placement_for_image_type_support', 'True', True),
        ('scheduler', 'max_placement_results', '7', 7),
        ('filter_scheduler', 'enabled_filters', 'A,B', ['A', 'B']),
        ('workarounds', 'disable_fallback_pcpu_query', 'True', True),
        ('DEFAULT', 'default_schedule_zone', 'az1', 'az1'),
        ('DEFAULT', 'default_availability_zone', 'x', 'x'),
    )
    @ddt.unpack
    def test_each_option(self, group, name, value, expected):
        text = f'[{group}]\n{name} = {value}\n'
        found, _ = options(text)
        self.assertEqual(expected, getattr(found, name))
        # The same on the command line, over the file.
        found, _ = options('[DEFAULT]\n', [f'{group}.{name}={value}'])
        self.assertEqual(expected, getattr(found, name))
        if group == 'nova_ext_sched':
            found, _ = options('[DEFAULT]\n', [f'{name}={value}'])
            self.assertEqual(expected, getattr(found, name))

    def test_option_of_two_names(self):
        text = '[scheduler]\nenable_isolated_aggregate_filtering = True\n'
        found, _ = options(text)
        self.assertEqual(
            (True, False),
            (found.nova_isolation, found.enable_isolated_aggregate_filtering),
        )

    @ddt.data('none=1', 'x', 'scheduler.none=1', 'max_forbidden_aggregates=x')
    def test_bad_setting(self, setting):
        with self.assertRaisesRegex(exception.InvalidValue, '--option: exp'):
            options(settings=[setting])

    @ddt.data('no section', '[scheduler]\nmax_placement_results = x\n')
    def test_bad_file(self, text):
        with self.assertRaisesRegex(exception.InvalidValue, 'nova-conf'):
            options(text)

    def test_file_that_is_a_directory(self):
        with (
            tempfile.TemporaryDirectory() as path,
            self.assertRaisesRegex(
                exception.InvalidValue,
                f'^--nova-conf: expected a file .* got .*{path}',
            ),
        ):
            scheduler_conf.load([path], [])

    def test_file_that_is_no_text(self):
        with tempfile.NamedTemporaryFile(suffix='.conf') as stream:
            stream.write(b'\xff\xfe')
            stream.flush()
            with self.assertRaisesRegex(
                exception.InvalidValue,
                f'^--nova-conf: expected a file .* got .*{stream.name}: ',
            ):
                scheduler_conf.load([stream.name], [])

    def test_workstation_has_no_say(self):
        """Neither its nova.conf.d nor its environment."""
        with tempfile.TemporaryDirectory() as home:
            path = pathlib.Path(home, '.nova', 'nova.conf.d', 'a.conf')
            path.parent.mkdir(parents=True)
            path.write_text('[scheduler]\nmax_placement_results = 55\n')
            variables = {
                'HOME': home,
                'OS_DEFAULT__DEFAULT_SCHEDULE_ZONE': 'z',
            }
            with mock.patch.dict(os.environ, variables):
                for text in (None, '[DEFAULT]\n'):
                    found, _ = options(text)
                    self.assertEqual(1000, found.max_placement_results)
                    self.assertIsNone(found.default_schedule_zone)

    def test_two_configurations_share_nothing(self):
        scheduler_conf.load([], ['forbid_by_trait=X'])
        self.assertEqual([], options()[0].forbid_by_trait)
