# SPDX-License-Identifier: Apache-2.0

"""The console blocks of README and documentation do what they say."""

import contextlib

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
    'host7': 'compute4',
    'compute-71': 'compute5',
    'compute-72': 'compute6',
    # What a page's author leaves to the reader.
    '...': '--image linux --flavor m1.small --network private',
    '/etc/nova/nova.conf': '~/.nova/nova.conf',
}
#: What the pages suppose to be there.
FLAVORS = ('m1.small', 'm1.fast', 'm1.plain')
IMAGES = ('linux', 'win2025')
AGGREGATES = {'windows': ('compute1', 'compute2'), 'fast': (), 'gpus': ()}


class DocumentationTestCase(base.CloudTestCase):
    def setUp(self):
        super().setUp()
        self.cloud.nova.start_schedulers(nova.EVERYTHING)
        self.cloud.nova.wait_for_schedulers()
        self.admin = self.cloud.connect()
        self.member = self.cloud.connect('member')

    def test_every_block_works(self):
        pages = [
            path for path in documentation.pages() if list(console.lines(path))
        ]
        self.assertTrue(pages)
        failed = []
        for path in pages:
            with self.supposed() as variables:
                typed = console.Console(self.cloud, NAMES, variables).type(
                    path
                )
            failed += [
                f'{line.block}: {line.user}: {line.line}\n'
                f'exit status {line.status}\n{line.output[-1500:]}'
                for line in typed
                if not line.is_answer()
            ]
        self.assertEqual([], failed, '\n\n'.join(failed))

    @contextlib.contextmanager
    def supposed(self):
        """Make what pages suppose; remove it and what they have made."""
        compute = self.admin.compute
        try:
            for name in FLAVORS:
                compute.create_flavor(name=name, ram=64, vcpus=1, disk=1)
            for name in IMAGES:
                self.admin.create_image(
                    name,
                    data=b'nothing',
                    disk_format='raw',
                    container_format='bare',
                    visibility='public',
                    wait=True,
                )
            network = self.admin.network.create_network(
                name='private', is_shared=True
            )
            self.admin.network.create_subnet(
                network_id=network.id, ip_version=4, cidr='10.1.0.0/16'
            )
            for name, hosts in AGGREGATES.items():
                aggregate = compute.create_aggregate(name=name)
                for host in hosts:
                    compute.add_host_to_aggregate(aggregate, host)
            group = self.member.compute.create_server_group(
                name='supposed', policies=['soft-anti-affinity']
            )
            server = self.member.create_server(
                'supposed',
                image='linux',
                flavor='m1.small',
                network='private',
                wait=True,
                timeout=world.ACTIVE_SECONDS,
            )
            yield {
                'GROUP': group.id,
                'PROJECT_ID': self.member.current_project_id,
                'SERVER': server.id,
            }
        finally:
            world.remove_everything(self.admin)
