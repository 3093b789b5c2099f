# SPDX-License-Identifier: Apache-2.0

"""What ``openstack scheduler explain`` is asked about: the request.

From names on the command line, or from a server that exists.
"""

import argparse
from collections.abc import Mapping
import dataclasses
import re
import typing

from nova_ext_sched import exception
from nova_ext_sched.osc import explain_facts
from nova_ext_sched.osc import explain_image
from nova_ext_sched.policy import scheduling

_FLAVORS_MICROVERSION = '2.61'
# The scheduler hints of a server; 2.96 has the zone that it asked for, 2.71
# its server groups, 2.47 its flavor as it was, 2.98 properties of its image.
_SERVERS_MICROVERSION = '2.100'
_GROUPS_MICROVERSION = '2.64'

_PROJECT_ID = re.compile(r'[0-9a-f]{32}|[0-9a-f-]{36}')


class Resolver:
    """Turns names into a request.

    :param connection: openstack.connection.Connection
    """

    def __init__(self, connection: typing.Any) -> None:
        self._connection = connection
        self._compute = connection.compute

    def resolve(self, args: argparse.Namespace) -> scheduling.Request:
        """Return the request that the command line describes.

        :raises exception.InvalidValue: an argument is not of its form
        :raises openstack.exceptions.SDKException: a name that stands for
            nothing, or for more than one; or the API refuses
        """
        if args.server:
            request = self._of_server(args.server, with_image=not args.image)
        else:
            request = self._of_flavor(args.flavor)
        changes: dict[str, typing.Any] = {}
        if args.server and args.flavor:
            flavor = self._of_flavor(args.flavor)
            changes |= {
                name: getattr(flavor, name)
                for name in (
                    'flavor',
                    'vcpus',
                    'ram_mb',
                    'root_gb',
                    'ephemeral_gb',
                    'swap_mb',
                    'extra_specs',
                )
            }
        if args.image:
            image = self._connection.image.find_image(
                args.image, ignore_missing=False
            )
            changes |= explain_image.named(self._connection, image.id)
        if args.boot_from_volume:
            changes['boots_from_volume'] = True
        if args.availability_zone:
            changes |= _zone(args.availability_zone)
        if args.requested_host:
            changes |= {'host': args.requested_host, 'node': None}
        if args.project:
            changes['project_id'] = self._project(args.project)
        elif not args.server:
            changes['project_id'] = self._connection.current_project_id
        hints = _hints(args.hint)
        changes['hints'] = {**request.hints, **hints}
        if group := args.server_group or hints.get('group'):
            changes['group'] = self._group(group)
        return dataclasses.replace(request, **changes)

    def hosts_of_members(
        self, group: scheduling.ServerGroup | None
    ) -> dict[str, list[str]]:
        """Return the members of a server group by the name of their host."""
        found: dict[str, list[str]] = {}
        for uuid in group.members if group else ():
            server = self._server(uuid)
            if host := server.get('OS-EXT-SRV-ATTR:host'):
                found.setdefault(host, []).append(uuid)
        return found

    def _of_flavor(self, name: str) -> scheduling.Request:
        found = self._compute.find_flavor(name, ignore_missing=False)
        body = explain_facts.read(
            self._compute, f'/flavors/{found.id}', _FLAVORS_MICROVERSION
        )['flavor']
        if 'extra_specs' not in body:
            raise exception.InvalidValue(
                where=f'flavor {name}',
                expected='extra specs, which its policy shows to '
                'administrators (os_compute_api:os-flavor-extra-specs:index)',
                got=None,
            )
        return _flavor(body['name'], body)

    def _of_server(self, name: str, with_image: bool) -> scheduling.Request:
        found = self._compute.find_server(
            name, ignore_missing=False, details=False, all_projects=True
        )
        server = self._server(found.id)
        flavor = server['flavor']
        if 'extra_specs' not in flavor:
            raise exception.InvalidValue(
                where=f'server {name}',
                expected='the extra specs of its flavor, which their policy '
                'shows to administrators '
                '(os_compute_api:servers:show:flavor-extra-specs)',
                got=None,
            )
        changes: dict[str, typing.Any] = {
            'server': server['id'],
            'project_id': server['tenant_id'],
            'hints': server.get('scheduler_hints') or {},
            'boots_from_volume': not server['image'],
        }
        if with_image:
            changes |= explain_image.of_server(self._connection, server)
        if zone := server.get('pinned_availability_zone'):
            changes['availability_zone'] = zone
        if groups := server.get('server_groups'):
            changes['group'] = self._group(groups[0])
        return dataclasses.replace(
            _flavor(flavor['original_name'], flavor), **changes
        )

    def _server(self, uuid: str) -> typing.Any:
        return explain_facts.read(
            self._compute, f'/servers/{uuid}', _SERVERS_MICROVERSION
        )['server']

    def _group(self, name: str) -> scheduling.ServerGroup:
        found = self._compute.find_server_group(
            name, ignore_missing=False, all_projects=True
        )
        group = explain_facts.read(
            self._compute,
            f'/os-server-groups/{found.id}',
            _GROUPS_MICROVERSION,
        )['server_group']
        return scheduling.ServerGroup(
            uuid=group['id'],
            name=group['name'],
            policy=group['policy'],
            rules=group['rules'] or {},
            members=tuple(group['members']),
        )

    def _project(self, name: str) -> str:
        if _PROJECT_ID.fullmatch(name):
            return name
        return self._connection.identity.find_project(
            name, ignore_missing=False
        ).id


def _flavor(name: str, body: Mapping[str, typing.Any]) -> scheduling.Request:
    return scheduling.Request(
        flavor=name,
        vcpus=body['vcpus'],
        ram_mb=body['ram'],
        root_gb=body['disk'],
        ephemeral_gb=body.get(
            'OS-FLV-EXT-DATA:ephemeral', body.get('ephemeral', 0)
        ),
        swap_mb=int(body['swap'] or 0),
        extra_specs=body['extra_specs'],
    )


def _zone(value: str) -> dict[str, typing.Any]:
    # nova-api's form for administrators: zone:host, zone:host:node,
    # zone::node.
    parts = value.split(':')
    if len(parts) > 3 or not parts[0]:
        raise exception.InvalidValue(
            where='--availability-zone',
            expected='ZONE, ZONE:HOST, ZONE:HOST:NODE or ZONE::NODE',
            got=value,
        )
    zone, host, node = (*parts, '', '')[:3]
    return {
        'availability_zone': zone,
        'host': host or None,
        'node': node or None,
        'forced': bool(host or node),
    }


def _hints(pairs: list[str]) -> dict[str, typing.Any]:
    found: dict[str, list[str]] = {}
    for pair in pairs:
        key, equals, value = pair.partition('=')
        if not (key and equals):
            raise exception.InvalidValue(
                where='--hint', expected='KEY=VALUE', got=pair
            )
        found.setdefault(key, []).append(value)
    if len(groups := found.get('group', ())) > 1:
        raise exception.InvalidValue(
            where='--hint',
            expected='one server group, as nova-api takes no more',
            got=', '.join(groups),
        )
    return {
        key: values[0] if len(values) == 1 else values
        for key, values in found.items()
    }
