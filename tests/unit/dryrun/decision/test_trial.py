# SPDX-License-Identifier: Apache-2.0

import types

import ddt
from nova import objects
import testtools

from nova_ext_sched.dryrun.decision import trial
from nova_ext_sched.policy import act

# By name, the zone of aggregates.
ZONES = {'west': 'west', 'west2': 'west', 'east': 'east', 'plain': None}


@ddt.ddt
class AllowsTestCase(testtools.TestCase):
    @ddt.data(
        # In which aggregates the host is, whether it has servers, what is
        # done, and whether nova-api takes that.
        ('', False, act.JOINS, 'west', True),
        ('', True, act.JOINS, 'west', False),
        ('', True, act.JOINS, 'plain', True),
        ('east', False, act.JOINS, 'west', False),
        ('east', True, act.JOINS, 'plain', True),
        ('west', True, act.JOINS, 'west2', True),
        ('west', True, act.LEAVES, 'west', False),
        ('west', False, act.LEAVES, 'west', True),
        ('west west2', True, act.LEAVES, 'west', True),
        ('west plain', True, act.LEAVES, 'plain', True),
        ('east', True, act.MAPPED, 'west', True),
    )
    @ddt.unpack
    def test_allows(self, mine, has_servers, supposes, named, expected):
        known = {
            name: types.SimpleNamespace(name=name, availability_zone=zone)
            for name, zone in ZONES.items()
        }
        instances = {'server': 'x'} if has_servers else {}
        cloud = types.SimpleNamespace(
            aggs_by_id=known,
            hosts={'uuid': types.SimpleNamespace(host='host1')},
            states={'uuid': types.SimpleNamespace(instances=instances)},
            aggregates_of=lambda host: [known[one] for one in mine.split()],
        )
        trials = object.__new__(trial.Trials)
        trials.cloud = cloud
        made = act.Act(act.POLICY, 'do', supposes, (named,))
        self.assertEqual(expected, trials.allows(made, 'uuid'))

    def test_a_host_that_is_forced_down(self):
        for forced, hosts, expected in (
            (True, {'host1', 'host2'}, False),
            (True, {'host2', 'host3'}, True),
            # Its nova-compute is down by itself.
            (False, {'host1', 'host2'}, True),
        ):
            state = types.SimpleNamespace(
                host='host1', service={'forced_down': forced}
            )
            trials = object.__new__(trial.Trials)
            trials.cloud = types.SimpleNamespace(
                states={'uuid': state}, under_way={'server': hosts}
            )
            made = act.Act(act.POLICY, 'start', act.RUNS)
            self.assertEqual(expected, trials.allows(made, 'uuid'))


class LeaveOutTestCase(testtools.TestCase):
    def test_leave_out(self):
        spec = objects.RequestSpec(
            availability_zone='west',
            force_hosts=['host1'],
            force_nodes=['node1'],
            scheduler_hints={'query': ['x'], 'group': ['y']},
            requested_destination=objects.Destination(
                host='host1', node='node1', allow_cross_cell_move=True
            ),
        )
        trial.leave_out(spec, ['query'])
        self.assertEqual({'group': ['y']}, spec.scheduler_hints)
        self.assertEqual('west', spec.availability_zone)
        trial.leave_out(spec, ['availability_zone', 'host'])
        self.assertIsNone(spec.availability_zone)
        self.assertEqual((None, None), (spec.force_hosts, spec.force_nodes))
        destination = spec.requested_destination
        self.assertNotIn('host', destination)
        self.assertNotIn('node', destination)
        self.assertTrue(destination.allow_cross_cell_move)
