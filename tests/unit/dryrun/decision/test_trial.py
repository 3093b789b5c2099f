# SPDX-License-Identifier: Apache-2.0

import types

import ddt
from nova import objects
from nova.objects import image_meta
from nova.objects import instance_group
import testtools

from nova_ext_sched.dryrun.decision import trial
from nova_ext_sched.policy import act
from tests.unit.dryrun.cloud import clouds

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
        cloud = clouds.stub(
            {'uuid': 'host1'},
            aggs_by_id=known,
            states={'uuid': types.SimpleNamespace(instances=instances)},
            aggregates_of=lambda host: [known[one] for one in mine.split()],
        )
        trials = object.__new__(trial.Trials)
        trials.cloud = cloud
        made = act.Act(act.POLICY, 'do', supposes, (named,))
        self.assertEqual(expected, trials.allows(made, 'uuid'))

    def test_what_may_be_asked_otherwise(self):
        together = instance_group.InstanceGroup(policy='affinity')
        apart = instance_group.InstanceGroup(policy='anti-affinity')
        for supposes, names, more, expected in (
            (act.REQUEST, ('group',), {'is_new': True}, True),
            # A server that there is keeps its hints, and its image.
            (act.REQUEST, ('group',), {'is_new': False}, False),
            (act.REQUEST, ('host',), {'is_new': False}, True),
            (act.IMAGE, ('os_distro',), {'is_new': False}, False),
            (act.FLAVOR, (), {'smaller': ''}, False),
            (act.FLAVOR, (), {'smaller': 'm1.tiny'}, True),
            (act.UNHELD, (), {'unheld': {'uuid': ['x']}}, True),
            (act.UNHELD, (), {'unheld': {'other': ['x']}}, False),
            (act.ANOTHER, (), {'group': None}, True),
            (act.ANOTHER, (), {'group': apart}, True),
            (act.ANOTHER, (), {'group': together}, False),
        ):
            trials = object.__new__(trial.Trials)
            vars(trials).update(more)
            made = act.Act(act.REPAIR, 'do', supposes, names)
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


class ChangeRequestTestCase(testtools.TestCase):
    def change(self, spec, *names, supposes=act.REQUEST):
        made = act.Act(act.REPAIR, 'ask', supposes, names)
        trial.change_request(spec, [made])

    def test_what_it_is_for(self):
        spec = objects.RequestSpec(
            availability_zone='west',
            force_hosts=['host1'],
            force_nodes=['node1'],
            scheduler_hints={'query': ['x'], 'group': ['y']},
            instance_group=instance_group.InstanceGroup(),
            requested_destination=objects.Destination(
                host='host1', node='node1', allow_cross_cell_move=True
            ),
        )
        self.change(spec, 'query')
        self.assertEqual({'group': ['y']}, spec.scheduler_hints)
        self.assertEqual('west', spec.availability_zone)
        self.change(spec, 'availability_zone', 'host', 'group')
        self.assertIsNone(spec.availability_zone)
        self.assertIsNone(spec.instance_group)
        self.assertEqual((None, None), (spec.force_hosts, spec.force_nodes))
        destination = spec.requested_destination
        self.assertNotIn('host', destination)
        self.assertNotIn('node', destination)
        self.assertTrue(destination.allow_cross_cell_move)

    def test_the_image(self):
        properties = image_meta.ImageMetaProps(
            hw_architecture='x86_64', os_distro='linux'
        )
        spec = objects.RequestSpec(
            image=image_meta.ImageMeta(
                disk_format='raw', properties=properties
            )
        )
        self.change(spec, 'os_distro', 'disk_format', supposes=act.IMAGE)
        self.assertEqual('x86_64', properties.get('hw_architecture'))
        self.assertIsNone(properties.get('os_distro'))
        self.assertEqual('another', spec.image.disk_format)
