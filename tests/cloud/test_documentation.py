# SPDX-License-Identifier: Apache-2.0

"""The console blocks of README and documentation do what they say."""

import ddt

from tests import documentation
from tests.cloud import base
from tests.cloud import console
from tests.cloud import nova
from tests.cloud import world

#: What pages call things, and what stands for it here.
NAMES = {
    'host1': 'compute1',
    'host2': 'compute2',
    'host3': 'compute3',
    'host4': 'compute5',
    'host6': 'compute6',
    'host7': 'compute4',
    'compute-71': 'compute5',
    'compute-72': 'compute6',
    'SERVER': '$SERVER',
    # What a page's author leaves to the reader.
    '...': '--image linux --flavor m1.small --network private',
    '/etc/nova/nova.conf': '~/.nova/nova.conf',
}
#: What the pages suppose to be there.
FLAVORS = (
    'm1.small',
    'm1.large',
    'db.large',
    'm1.fast',
    'm1.plain',
    'small',
    'medium',
    'large',
    'big',
    'windows',
)
# Of these it is counted how many fit.
COUNTED = ('small', 'big')
IMAGES = ('linux', 'debian', 'win2025')
AGGREGATES = {'windows': ('compute1', 'compute2'), 'fast': (), 'gpus': ()}
#: Pages that suppose that the aggregate windows is isolated already.
ISOLATED = ('doc/source/admin/runbook.rst', 'doc/source/cli/isolation.rst')
TRAIT = 'CUSTOM_LICENSED_WINDOWS'

ISOLATION = documentation.ROOT / 'doc/source/cli/isolation.rst'
PAGES = [path for path in documentation.pages() if list(console.lines(path))]


def name_of(path):
    return str(path.relative_to(documentation.ROOT))


@ddt.ddt
class DocumentationTestCase(base.CloudTestCase):
    """A test for each page; what a page has made is gone after it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cloud = cls.standing()
        cloud.nova.start_schedulers(nova.EVERYTHING)
        cloud.nova.wait_for_schedulers()

    def setUp(self):
        super().setUp()
        self.admin = self.cloud.connect()
        self.member = self.cloud.connect('member')
        self.addCleanup(world.remove_everything, self.admin)
        self.variables = self.suppose()

    def lines(self, path):
        """Return what is typed of a page."""
        # tests.long.test_compare has the two environments that this needs.
        return [
            (block, line)
            for block, line in console.lines(path)
            if ' compare ' not in line
        ]

    @ddt.idata(name_of(path) for path in PAGES)
    def test_page(self, name):
        if name in ISOLATED:
            self.isolate_windows()
        shell = console.Console(self.cloud, NAMES, self.variables)
        failed = [
            f'{line.block}: {line.user}: {line.line}\n'
            f'exit status {line.status}\n{line.output[-1500:]}'
            for line in shell.type(self.lines(documentation.ROOT / name))
            if not line.is_answer()
        ]
        self.assertEqual([], failed, '\n\n'.join(failed))

    def test_placement_knows_what_the_page_says(self):
        """What osc-placement and placement itself answer on that page."""
        self.isolate_windows()
        self.cloud.execute(
            'openstack aggregate isolation sync windows', user='admin'
        )
        shell = console.Console(self.cloud, NAMES, self.variables)
        typed = list(shell.type(console.script_lines(ISOLATION)))
        self.assertEqual([], [line for line in typed if not line.is_answer()])
        # The variables print nothing.
        inside = {*AGGREGATES['windows']}
        outside = {*self.cloud.nova.hosts} - inside
        self.assertEqual(
            [set(), set(), inside, set(), inside, outside, set(), outside],
            [self.providers_in(line.output) for line in typed],
        )

    def isolate_windows(self):
        compute = self.admin.compute
        compute.set_aggregate_metadata(
            compute.find_aggregate('windows'), {f'trait:{TRAIT}': 'required'}
        )

    def providers_in(self, output):
        """Return the names of the resource providers in an output."""
        return {
            provider.name
            for provider in self.admin.placement.resource_providers()
            if provider.id in output
        }

    def suppose(self):
        """Make what pages suppose; return the variables of their shell."""
        self.suppose_hosts()
        for name in IMAGES:
            world.create_image(self.admin, name)
        world.create_network(self.admin, 'private', '10.1.0.0/16')
        group = self.member.compute.create_server_group(
            name='supposed', policies=['soft-anti-affinity']
        )
        server = self.member.create_server(
            'web',
            image='linux',
            flavor='m1.small',
            network='private',
            wait=True,
            timeout=world.ACTIVE_SECONDS,
        )
        return {
            'GROUP': group.id,
            # Blazar is not there: nobody reads the hint.
            'RESERVATION_ID': 'none',
            'PROJECT_ID': self.member.current_project_id,
            'SERVER': server.id,
        }

    def suppose_hosts(self):
        """Make the flavors and aggregates."""
        compute = self.admin.compute
        for name in FLAVORS:
            ram = 32768 if name in COUNTED else 64
            compute.create_flavor(name=name, ram=ram, vcpus=1, disk=1)
        for name, hosts in AGGREGATES.items():
            aggregate = compute.create_aggregate(name=name)
            for host in hosts:
                compute.add_host_to_aggregate(aggregate, host)
