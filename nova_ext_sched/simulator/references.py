# SPDX-License-Identifier: Apache-2.0

"""What a scenario's parts say about one another."""

from collections.abc import Collection
from collections.abc import Iterator
import re
import typing

import os_traits

from nova_ext_sched import exception
from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import hostnames
from nova_ext_sched.simulator import scenario
from nova_ext_sched.simulator import schema

Faults = Iterator[exception.ScenarioFault]

#: The zone of hosts that are in none, unless an option names another.
_DEFAULT_ZONE = 'nova'

_CUSTOM = re.compile('CUSTOM_[A-Z0-9_]+')


def faults(doc: document.Document) -> Faults:
    """Yield each reference that leads nowhere, and each contradiction.

    The document may have faults of form (:mod:`form`) as well: what is of
    the wrong type is passed over here.
    """
    if isinstance(doc.data, dict):
        yield from _References(doc).faults()


def _mapping(value: typing.Any) -> dict[str, typing.Any]:
    return value if isinstance(value, dict) else {}


def _list(value: typing.Any) -> list[typing.Any]:
    return value if isinstance(value, list) else []


class _References:
    def __init__(self, doc: document.Document) -> None:
        self.doc = doc
        self.hosts: set[str] = set()
        self.projects = {
            name
            for name in _list(doc.data.get('projects'))
            if isinstance(name, str)
        } | {scenario.DEFAULT_PROJECT}
        self.aggregates = _mapping(doc.data.get('aggregates'))
        self.groups = _mapping(doc.data.get('server_groups'))
        options = _mapping(_mapping(doc.data.get('nova_conf')).get('DEFAULT'))
        default = options.get('default_availability_zone', _DEFAULT_ZONE)
        zones = [default, *map(_zone, self.aggregates.values())]
        self.zones = {str(zone) for zone in zones if zone}
        #: Whether each server that was booted so far still exists.
        self.servers: dict[str, bool] = {}

    def faults(self) -> Faults:
        yield from self._hosts()
        yield from self._aggregates()
        yield from self._declared_hosts(
            ('prefer',), self.doc.data.get('prefer')
        )
        for name, group in self.groups.items():
            yield from self._declared(
                ('server_groups', name, 'project'),
                _mapping(group).get('project'),
                'project',
                self.projects,
            )
        for index, step in enumerate(_list(self.doc.data.get('steps'))):
            if action := schema.action(step):
                yield from self._step(('steps', index), action, step)

    def _hosts(self) -> Faults:
        for index, item in enumerate(_list(self.doc.data.get('hosts'))):
            path: document.Path = ('hosts', index)
            traits: list[typing.Any] = []
            if isinstance(item, dict):
                traits = _list(item.get('traits'))
                path, item = (*path, 'name'), item.get('name')
            for name in (yield from self._names(path, item)):
                if name in self.hosts:
                    yield self.doc.fault(path, 'each host once', name)
                self.hosts.add(name)
            for number, trait in enumerate(traits):
                if not _is_trait(trait):
                    yield self.doc.fault(
                        ('hosts', index, 'traits', number),
                        'a standard trait (os-traits) or CUSTOM_ and '
                        'capitals, digits and _',
                        trait,
                    )

    def _aggregates(self) -> Faults:
        zone_of: dict[str, typing.Any] = {}
        for name, aggregate in self.aggregates.items():
            path = ('aggregates', name, 'hosts')
            zone = _zone(aggregate)
            for host in (
                yield from self._declared_hosts(
                    path, _mapping(aggregate).get('hosts')
                )
            ):
                if zone and zone_of.setdefault(host, zone) != zone:
                    yield self.doc.fault(
                        path,
                        'hosts in one availability zone each',
                        document.Words(
                            f'{host} in {zone_of[host]} and {zone}'
                        ),
                    )

    def _step(
        self, path: document.Path, action: str, step: dict[str, typing.Any]
    ) -> Faults:
        declared = (
            ('flavor', self.doc.data.get('flavors')),
            ('image', self.doc.data.get('images')),
        )
        for key, names in declared:
            yield from self._declared(
                (*path, key), step.get(key), key, _mapping(names)
            )
        yield from self._declared(
            (*path, 'project'), step.get('project'), 'project', self.projects
        )
        for key in ('host', 'add_hosts', 'remove_hosts'):
            yield from self._declared_hosts((*path, key), step.get(key))
        for key in ('expect', 'expect_plain'):
            yield from self._expectation((*path, key), step.get(key))
        if action == 'boot':
            yield from self._boot(path, step)
        elif action == 'aggregate':
            yield from self._declared(
                (*path, action), step[action], 'aggregate', self.aggregates
            )
            if zone := _zone({'metadata': step.get('set')}):
                self.zones.add(str(zone))
        else:
            yield from self._acted_on(path, action, step[action])

    def _boot(
        self, path: document.Path, step: dict[str, typing.Any]
    ) -> Faults:
        if step.get('volume') is True and 'image' not in step:
            yield self.doc.fault(
                (*path, 'volume'),
                'an image to make the volume of',
                document.NOTHING,
            )
        yield from self._zone((*path, 'availability_zone'), step)
        project = step.get('project', scenario.DEFAULT_PROJECT)
        group = step.get('group')
        yield from self._declared(
            (*path, 'group'), group, 'server group', self.groups
        )
        if isinstance(group, str) and group in self.groups:
            owner = _mapping(self.groups[group]).get(
                'project', scenario.DEFAULT_PROJECT
            )
            if owner != project:
                yield self.doc.fault(
                    (*path, 'group'),
                    f'a server group of the project {project}',
                    document.Words(f'{group}, of {owner}'),
                )
        count = step.get('count', 1)
        name = step['boot']
        # A range holds 2.0 as well.
        if not (isinstance(count, int) and count in schema.COUNTS):
            return
        if not isinstance(name, str):
            return
        names = (
            [name]
            if count == 1
            else [f'{name}-{number}' for number in range(1, count + 1)]
        )
        for server in names:
            if server in self.servers:
                yield self.doc.fault(
                    (*path, 'boot'), 'a name that no server had', server
                )
            self.servers[server] = True

    def _zone(
        self, path: document.Path, step: dict[str, typing.Any]
    ) -> Faults:
        value = step.get('availability_zone')
        if not isinstance(value, str):
            return
        # nova's ZONE:HOST:NODE forces the host and the node, each of which
        # may be missing; a simulated host's node has the host's name.
        zone, *forced = value.split(':', 2)
        yield from self._declared(
            path, zone or None, 'availability zone', self.zones
        )
        for name in dict.fromkeys(forced):
            yield from self._declared(path, name or None, 'host', self.hosts)

    def _acted_on(
        self, path: document.Path, action: str, servers: typing.Any
    ) -> Faults:
        path = (*path, action)
        for name in (yield from self._names(path, servers)):
            if name not in self.servers:
                yield self.doc.fault(
                    path, 'a server that an earlier step boots', name
                )
            elif not self.servers[name]:
                yield self.doc.fault(
                    path,
                    'a server that still exists',
                    document.Words(f'{name}, which a step deletes'),
                )
            elif action == 'delete':
                self.servers[name] = False

    def _expectation(self, path: document.Path, value: typing.Any) -> Faults:
        if value in (None, schema.NO_VALID_HOST, schema.REFUSED):
            return
        if not isinstance(value, dict):
            yield from self._declared_hosts(path, value)
            return
        yield from self._declared_hosts((*path, 'hosts'), value.get('hosts'))
        for host in _mapping(value.get('per_host')):
            yield from self._declared_hosts((*path, 'per_host', host), host)

    def _declared_hosts(
        self, path: document.Path, value: typing.Any
    ) -> typing.Generator[exception.ScenarioFault, None, list[str]]:
        names = yield from self._names(path, value)
        for name in names:
            yield from self._declared(path, name, 'host', self.hosts)
        return names

    def _declared(
        self,
        path: document.Path,
        name: typing.Any,
        kind: str,
        names: Collection[str],
    ) -> Faults:
        if not isinstance(name, str) or name in names:
            return
        some = sorted(names)[:8]
        more = ', ...' if len(names) > len(some) else ''
        yield self.doc.fault(
            path,
            f'a declared {kind} ({", ".join(some) or "there is none"}{more})',
            name,
        )

    def _names(
        self, path: document.Path, value: typing.Any
    ) -> typing.Generator[exception.ScenarioFault, None, list[str]]:
        names: list[str] = []
        for index, pattern in enumerate(
            [value] if isinstance(value, str) else _list(value)
        ):
            if not isinstance(pattern, str):
                continue
            try:
                names += hostnames.expand(pattern)
            except ValueError as exc:
                yield self.doc.fault(
                    path if isinstance(value, str) else (*path, index),
                    f'a pattern of at most {hostnames.MAX_NAMES} names such '
                    f'as compute{{01..50}}',
                    document.Words(f'{pattern}, {exc}'),
                )
        return names


def _zone(aggregate: typing.Any) -> typing.Any:
    aggregate = _mapping(aggregate)
    return aggregate.get('availability_zone') or _mapping(
        aggregate.get('metadata')
    ).get('availability_zone')


def _is_trait(trait: typing.Any) -> bool:
    if not isinstance(trait, str):
        return True
    return bool(_CUSTOM.fullmatch(trait)) or trait in os_traits.get_traits()
