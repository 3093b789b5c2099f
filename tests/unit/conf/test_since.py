# SPDX-License-Identifier: Apache-2.0

"""Each option says since which release there is it.

The page of the options says that all are of the first release. The others say
it in their help: ``New in release <number>.``
"""

import pathlib
import re

import testtools

from nova_ext_sched import conf

ROOT = pathlib.Path(__file__).parents[3]

FIRST = set(
    'aggregate_freepool_name allow_preemptibles blazar_az_prefix '
    'blazar_owner enable_isolated_aggregate_filtering failure_domain_key '
    'forbid_by_trait force_metadata_check_ignored_keys '
    'isolation_trait_sources max_forbidden_aggregates '
    'max_server_per_failure_domain member_project_keys member_sources '
    'placement_req_default_forbidden_member_prefix '
    'placement_req_required_member_prefix preemptible_aggregate '
    'project_id_key request_filters '
    'server_group_round_robin_weight_multiplier weighers '
    'relative_room_weight_multiplier preference_key '
    'preferred_aggregates_weight_multiplier own_hosts_weight_multiplier '
    'special_hosts_key special_hosts_weight_multiplier '
    'licence_traits licence_os_types licences_weight_multiplier '
    'enable_failover_hosts failover_key failover_takes '
    'failover_hosts_weight_multiplier restart_priority_key '
    'restart_priority_sources left_out_flavors left_out_images '
    'left_out_projects left_out_property'.split()
)

SINCE = re.compile(r'^New in release (\d+\.\d+\.\d+)\.$', re.MULTILINE)


class SinceTestCase(testtools.TestCase):
    def test_each_later_option_says_it(self):
        options = {
            option.name: option.help or ''
            for _, listed in conf.list_opts()
            for option in listed
        }
        self.assertEqual(set(), FIRST - {*options})
        notes = ''.join(
            path.read_text()
            for path in (ROOT / 'releasenotes').rglob('*.yaml')
        )
        for name in {*options} - FIRST:
            self.assertTrue(
                SINCE.search(options[name]),
                f'nova_ext_sched/conf: the help of {name} lacks "New in '
                f'release <number>."',
            )
            self.assertTrue(
                name in notes, f'releasenotes/notes: no note names {name}'
            )
