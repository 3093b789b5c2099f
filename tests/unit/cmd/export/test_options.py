# SPDX-License-Identifier: Apache-2.0

import pathlib

import fixtures
from oslo_config import cfg
import testtools

from nova_ext_sched import conf
from nova_ext_sched.cmd.export import options

OTHERS = (
    (
        'filter_scheduler',
        cfg.MultiStrOpt('available_filters', default=['all']),
    ),
    ('filter_scheduler', cfg.ListOpt('enabled_filters', default=['A', 'B'])),
    ('filter_scheduler', cfg.ListOpt('weight_classes', default=['w'])),
    ('filter_scheduler', cfg.FloatOpt('ram_weight_multiplier', default=1.0)),
    ('scheduler', cfg.IntOpt('workers')),
    ('scheduler', cfg.IntOpt('discover_hosts_in_cells_interval', default=-1)),
    ('scheduler', cfg.IntOpt('max_attempts', default=3)),
    ('scheduler', cfg.StrOpt('nothing')),
    ('metrics', cfg.BoolOpt('required', default=True)),
    ('placement', cfg.StrOpt('password')),
    (None, cfg.StrOpt('default_availability_zone', default='nova')),
    (None, cfg.StrOpt('default_schedule_zone')),
    (None, cfg.StrOpt('transport_url')),
)
ALWAYS = {
    'available_filters': ['all'],
    'enabled_filters': ['A', 'B'],
    'weight_classes': ['w'],
}


class ReadTestCase(testtools.TestCase):
    def read(self, text):
        """Return what is read of a nova.conf."""
        file = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'x.conf')
        file.write_text(text)
        config = cfg.ConfigOpts()
        for group, option in OTHERS:
            config.register_opt(option, group)
        for group, declared in conf.list_opts():
            # By its name: the group itself knows what others have set.
            config.register_opts(declared, group.name)
        config(['--config-file', str(file)], project='nova')
        self.useFixture(
            fixtures.MonkeyPatch(f'{options.__name__}.CONF', config)
        )
        return options.read()

    def test_what_the_simulator_would_have_otherwise(self):
        self.assertEqual({'filter_scheduler': ALWAYS}, self.read(''))

    def test_what_is_set(self):
        """Texts, even where they are the default; and no secret."""
        self.assertEqual(
            {
                'DEFAULT': {
                    'default_availability_zone': 'nova',
                    'default_schedule_zone': 'z',
                },
                'scheduler': {'max_attempts': '7'},
                'filter_scheduler': {
                    **ALWAYS,
                    'available_filters': ['all', 'ours'],
                    'enabled_filters': [],
                    'ram_weight_multiplier': '0.5',
                },
                'metrics': {'required': 'False'},
                'nova_ext_sched': {
                    'placement_req_required_member_prefix': ['a:', 'b:'],
                },
            },
            self.read(
                '[DEFAULT]\ndefault_availability_zone = nova\n'
                'default_schedule_zone = z\ntransport_url = rabbit://u:p@h\n'
                '[scheduler]\nmax_attempts = 7\nworkers = 4\n'
                'discover_hosts_in_cells_interval = 5\n'
                '[filter_scheduler]\navailable_filters = all\n'
                'available_filters = ours\nenabled_filters =\n'
                'ram_weight_multiplier = 0.5\n'
                '[metrics]\nrequired = no\n'
                '[placement]\npassword = secret\n'
                '[nova_ext_sched]\n'
                'placement_req_required_member_prefix = a:,b:\n'
            ),
        )
