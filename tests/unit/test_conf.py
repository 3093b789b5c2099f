#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

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

ROOT = pathlib.Path(__file__).parents[2]
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
        for group, options in conf.list_opts():
            self.assertEqual('nova_ext_sched', group.name)
            for option in options:
                self.assertIn('Possible values:', option.help, option.name)
                self.assertIn('Related options:', option.help, option.name)

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
            self.assertEqual(
                output.read(),
                SAMPLE.read_text(),
                'run "tox -e genconfig" and commit the sample',
            )


@ddt.ddt
class ContradictionsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        conf.register_opts(nova.conf.CONF)
        self.config = self.useFixture(
            config_fixture.Config(nova.conf.CONF)
        ).config
        self.config(
            group='filter_scheduler',
            enabled_filters=['IsolatedAggregatesFilter'],
        )

    def contradictions(self):
        return conf.contradictions(nova.conf.CONF)

    def test_defaults_contradict_nothing(self):
        self.assertEqual([], self.contradictions())

    def test_isolation_well_set_up(self):
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
        (
            'nova_ext_sched',
            {'request_filters': []},
            'request_filters does not name isolate_aggregates',
        ),
        (
            'filter_scheduler',
            {'enabled_filters': ['ComputeFilter']},
            'IsolatedAggregatesFilter is not in',
        ),
    )
    @ddt.unpack
    def test_isolation_contradicted(self, group, options, expected):
        self.config(group=group, **options)
        self.assertEqual([], self.contradictions())
        self.config(
            group='nova_ext_sched', enable_isolated_aggregate_filtering=True
        )
        (found,) = self.contradictions()
        self.assertRegex(found, expected)
