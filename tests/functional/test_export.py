# SPDX-License-Identifier: Apache-2.0

"""A cloud and the simulator on its export say the same."""

import pathlib
import shutil
import tempfile
import unittest

from oslo_utils import uuidutils
import yaml

from nova_ext_sched.cmd.export import anonymous
from nova_ext_sched.cmd.export import unsaid
from nova_ext_sched.cmd.simulate import scenario
from tests import round_trips
from tests import samples
from tests.functional import explain
from tests.functional import export

SCENARIOS = pathlib.Path(scenario.__file__).with_name('scenarios')
TRAIT = 'CUSTOM_LICENSED_WINDOWS'
PROJECTS = (
    '6f70656e737461636b20342065766572',
    'c0ffee00c0ffee00c0ffee00c0ffee00',
)


class ExportTestCase(explain.ExplainTestCase):
    """Eight hosts of which no two are alike."""

    maxDiff = None
    microversion = '2.90'
    hosts = tuple(f'compute-{name}' for name in 'abcdefgh')
    host_filters = (
        'IsolatedAggregatesFilter',
        'AggregateInstanceTypeFilter',
        'SameHostFilter',
        'DifferentHostFilter',
    )
    options = explain.OPTIONS

    def setUp(self):
        export.forget_tests_before()
        super().setUp()
        self.flags(
            limit_tenants_to_placement_aggregate=True, group='scheduler'
        )
        self.flags(cores=-1, instances=-1, ram=-1, group='quota')
        for host in self.hosts:
            self._start_compute(host)
        a, b, c, d, e, f, g, h = self.hosts
        self.aggregate('rack-one', [a, b, c], zone='zone-one')
        self.small = self.named('small')
        self.make_flavors()
        for number, host in enumerate((a, b, c, d, e, f)):
            for _ in range(number % 4 + 1):
                self.boot(flavor=self.small, host=host)
        self.group = self.api.post_server_groups(
            {'name': 'web tier', 'policy': 'anti-affinity'}
        )['id']
        self.members = [
            self.boot(
                flavor=self.small,
                host=host,
                hints={'group': self.group},
                name='web',
            )['id']
            for host in (c, d)
        ]
        self.isolate('windows-licences', [a, b], TRAIT)
        self.aggregate(
            'fast-disks', [c, d], metadata={'storage': 'fast', 'tier': '4'}
        )
        self.aggregate(
            'customer', [e], metadata={'filter_tenant_id': PROJECTS[1]}
        )
        self.aggregate('gpus', [f], metadata={'reservation:gpu-pool': 'true'})
        self.set_service(g, status='disabled')
        self.set_service(h, forced_down=True)

    def boot(self, host=None, **kwargs):
        """Boot a server on a host, whatever filters say."""
        if host is not None:
            kwargs['az'] = f'nova:{host}'
            if host in self.hosts[:3] and 'rack-one' in self.aggregate_ids:
                kwargs['az'] = f'zone-one:{host}'
        return super().boot(**kwargs)

    def make_flavors(self):
        self.named('licensed', **{f'trait:{TRAIT}': 'required'})
        self.named('reserved', **{'reservation:gpu-pool': 'true'})
        self.named('unknown', **{'reservation:nothing': 'true'})
        self.named('fast', storage='fast')
        self.named('tiered', tier='>= 4', storage='<or> slow <or> fast')
        self.named('wide', vcpu=1000)

    def requests(self):
        """Return requests: what explain is asked, and the step."""
        group = ['--server-group', self.group]
        yield 'small', [], {}
        yield 'licensed', [], {}
        yield 'reserved', [], {}
        yield 'unknown', [], {}
        yield 'fast', [], {}
        yield 'tiered', [], {}
        yield 'wide', [], {}
        yield (
            'small',
            ['--availability-zone', 'zone-one'],
            {'availability_zone': 'zone-one'},
        )
        yield (
            'small',
            ['--project', PROJECTS[1]],
            {'project': PROJECTS[1]},
        )
        yield 'small', group, {'group': 'web tier'}
        for hint in ('same_host', 'different_host'):
            member = self.members[0]
            yield (
                'small',
                ['--hint', f'{hint}={member}'],
                {'hints': {hint: member}},
            )
        forced = f'nova:{self.hosts[7]}'
        yield (
            'small',
            ['--availability-zone', forced],
            {'availability_zone': forced},
        )

    def explain(self, flavor, args):
        args = ['--project', PROJECTS[0], *args]
        answer = explain.run('--flavor', flavor, *args, '-f', 'json')
        self.assertEqual('', answer.err)
        return answer.document


class RoundTripTest(ExportTestCase):
    """One cloud for all, because each simulator starts another."""

    def test_round_trips(self):
        self.same_hosts_and_first_choice()
        self.no_name_in_an_anonymous_file()
        self.hostile_tenant()

    def add_steps(self, data):
        """Put the requests into a scenario; return what explain says."""
        requests = [*self.requests()]
        round_trips.add_steps(
            data,
            [
                {'flavor': name, 'project': PROJECTS[0], **step}
                for name, _, step in requests
            ],
        )
        return [self.explain(name, args) for name, args, _ in requests]

    def same_hosts_and_first_choice(self):
        text = export.run(self)
        data = round_trips.read(self, text)
        expected = self.add_steps(data)
        round_trips.compare(self, expected, data, {})

        missing = unsaid.Unsaid()
        renamed, words = anonymous.rename(data, missing)
        self.assertEqual(
            [
                '1 server group whose members are dealt to hosts in another '
                'order'
            ],
            [*missing],
        )
        written = yaml.dump(renamed)
        round_trips.compare(
            self, expected, round_trips.read(self, written), words
        )

    def no_name_in_an_anonymous_file(self):
        text = export.run(self, '--requests', '100', '--anonymous')
        data = round_trips.read(self, text)
        self.assertEqual(len(self.hosts), len(data['hosts']))
        self.assertEqual(
            len(data['steps']), len(self.api.get_servers(detail=False))
        )
        for name in (
            *self.hosts,
            *PROJECTS,
            *self.aggregate_ids,
            'zone-one',
            'web tier',
            TRAIT,
            'gpu-pool',
            'storage',
            'tier:',
            'fast',
            'small',
            'licensed',
            '192.168',
        ):
            self.assertNotIn(name, text)
        self.assertNotRegex(text, '[0-9a-f]{8}(-[0-9a-f]{4}){3}')

    def hostile_tenant(self):
        nasty = "!!python/object:os.system ['x'] \"& *id001 {1..3}: #"
        secret = 'nothing-of-a-guest'
        self.flags(metadata_items=-1, group='quota')
        group = self.api.post_server_groups(
            {
                'name': nasty,
                'policy': 'anti-affinity',
                'rules': {'max_server_per_host': 2},
            }
        )['id']
        image = self.glance.create(
            None,
            {
                **self.glance.image1,
                'id': uuidutils.generate_uuid(),
                'name': 'a\x07\n\U0001f4a9\u202e' * 40,
                'properties': {
                    'hw_machine_type': nasty + '\x1b[2J',
                    'os_distro': '%s' % ('x' * 300),
                    secret: secret,
                },
            },
        )['id']
        server = self.boot(
            flavor=self.small,
            image=image,
            host=self.hosts[3],
            hints={
                'group': group,
                nasty: nasty,
                'long': secret * 5000,
                'many': [str(number) for number in range(300)],
                'reservation': "=HYPERLINK('x')",
            },
            name=nasty,
        )['id']
        for start in range(0, 400, 100):
            self.api.post_server_metadata(
                server,
                {
                    f'{secret}-{start + number}': secret * 14
                    for number in range(100)
                },
            )
        # Nothing is left out of requests that nobody asked for.
        self.assertNotIn('scheduler hint', export.run(self))
        text = export.run(self, '--requests', '1')
        self.assertNotIn(secret, text)
        self.assertTrue(all(c.isprintable() or c == '\n' for c in text))
        data = round_trips.read(self, text)
        [step] = data['steps']
        self.assertEqual(server, step['boot'])
        self.assertEqual(group, step['group'])
        self.assertEqual(nasty, step['hints'][nasty])
        self.assertIn(
            '#   1 scheduler hint of more than 255 characters\n', text
        )
        self.assertIn('of images, which the simulator refuses', text)
        round_trips.read(
            self, export.run(self, '--requests', '1', '--anonymous')
        )

        expected = self.explain('small', ['--server-group', group])
        data['steps'] = [
            step,
            {
                'boot': 'new',
                'flavor': 'small',
                'group': group,
                'project': PROJECTS[0],
            },
        ]
        round_trips.compare(self, [None, expected], data, {})


class PageTestCase(unittest.TestCase):
    """The scenario that the package ships; tests/cloud made it."""

    maxDiff = None

    @samples.compares('tools/export/simulate.txt')
    def test_the_page(self):
        command = (
            'nova-ext-sched simulate cloud.yaml \\\n    --option '
            'nova_ext_sched.enable_isolated_aggregate_filtering=true'
        )
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        shutil.copy(SCENARIOS / 'exported_cloud.yaml', folder / 'cloud.yaml')
        samples.check(
            self,
            'tools/export/simulate.txt',
            samples.run(self, command, folder, columns='80', status=3),
        )
