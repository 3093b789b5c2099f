# SPDX-License-Identifier: Apache-2.0

"""The cloud, as the document of a scenario."""

from collections.abc import Callable
import typing

from nova import objects

from nova_ext_sched import messages
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.export import hosts
from nova_ext_sched.cmd.export import options
from nova_ext_sched.cmd.export import parts
from nova_ext_sched.cmd.export import requests
from nova_ext_sched.cmd.export import servers
from nova_ext_sched.cmd.export import unsaid

Document = dict[str, typing.Any]

# Requests whose images are described where no step needs one.
_IMAGES_OF = 200


class Cloud:
    """Reads a cloud.

    :param ctxt: a nova RequestContext of an administrator
    :param scheduler: what nova-scheduler has in memory
    :ivar unsaid: what a scenario cannot say of it
    """

    def __init__(
        self,
        ctxt: typing.Any,
        scheduler: nova_scheduler.ReadOnlyHostManager,
    ) -> None:
        self._ctxt = ctxt
        self._scheduler = scheduler
        self.unsaid = unsaid.Unsaid()
        self._flavors = parts.Flavors()
        self._images = parts.Images(self.unsaid)
        self._groups = parts.ServerGroups(ctxt)

    def describe(
        self, most: int, advance: Callable[[], None] = lambda: None
    ) -> Document:
        """Return the document.

        :param most: how many of the last requests become steps
        :param advance: called after each host
        """
        for flavor in objects.FlavorList.get_all(self._ctxt, sort_key='name'):
            self._flavors.name(flavor)
        # A document without requests leaves nothing of them out.
        missing = self.unsaid if most else unsaid.Unsaid()
        asked = requests.read(
            self._ctxt, self._scheduler, most or _IMAGES_OF, missing
        )
        steps = [self._step(*one, missing) for one in asked]
        standing = self._read_servers(steps if most else [])
        using: dict[str, list[dict[str, int]]] = {}
        for server in standing.values():
            using.setdefault(server.host, []).append(server.uses)
        found = hosts.read(self._scheduler, self.unsaid, using, advance)
        names = {host['name'] for host in found}
        described = {
            uuid: self._describe(server)
            for uuid, server in standing.items()
            if server.host in names
        }
        steps = [step for step in steps if step['expect'] in names]
        groups = self._groups.documents
        listed = [*groups.values(), *described.values(), *steps]
        if not most:
            # They were read for their images.
            steps = []
        return parts.filled(
            {
                'description': 'A cloud as export wrote it: '
                f'{messages.count("host", len(found))}, '
                f'{messages.count("request", len(steps))}.',
                'nova_conf': options.read(),
                'projects': sorted({one['project'] for one in listed}),
                'hosts': found,
                'imply_traits': False,
                'aggregates': parts.aggregates(
                    self._scheduler.aggs_by_id.values(), names
                ),
                'flavors': self._flavors.documents,
                'images': self._images.documents,
                'server_groups': groups,
                'servers': described,
                'independent': bool(most),
                'steps': steps,
            },
            required=('hosts', 'imply_traits', 'flavors', 'steps'),
        )

    def _read_servers(
        self, steps: list[Document]
    ) -> dict[str, servers.Server]:
        """Return the servers that stand and that a request can meet."""
        wanted = {*self._groups.members}
        for step in steps:
            wanted.add(step['boot'])
            for value in step.get('hints', {}).values():
                wanted.update(value if isinstance(value, list) else [value])
        return servers.read(self._scheduler, wanted)

    def _describe(self, server: servers.Server) -> Document:
        group = self._groups.name(self._groups.members.get(server.uuid))
        return parts.filled(
            {
                'host': server.host,
                'flavor': self._flavors.name(server.flavor),
                'volume': server.is_on_volume,
                'group': group,
                'project': server.project,
            }
        )

    def _step(
        self,
        server: servers.Server,
        spec: typing.Any,
        missing: unsaid.Unsaid,
    ) -> Document:
        _count_devices(spec, missing)
        image = spec.image if 'image' in spec else None
        group = spec.instance_group if 'instance_group' in spec else None
        return parts.filled(
            {
                'boot': server.uuid,
                'flavor': self._flavors.name(server.flavor),
                'image': self._images.name(image) if image else None,
                'volume': server.is_on_volume,
                'availability_zone': requests.zone(spec),
                'group': self._groups.name(group.uuid) if group else None,
                'hints': requests.hints(spec, missing),
                'project': server.project,
                'expect': server.host,
            }
        )


def _count_devices(spec: typing.Any, missing: unsaid.Unsaid) -> None:
    devices = spec.pci_requests if 'pci_requests' in spec else None
    if devices and devices.requests:
        missing.add('request', 'for PCI devices')
    if 'numa_topology' in spec and spec.numa_topology:
        missing.add('request', 'for NUMA cells')
    if 'accel:device_profile' in (spec.flavor.extra_specs or {}):
        missing.add('request', 'for devices of Cyborg')
