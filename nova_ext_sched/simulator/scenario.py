# SPDX-License-Identifier: Apache-2.0

"""A scenario: the cloud, and the steps that are run on it."""

import dataclasses
import typing

from nova_ext_sched.simulator import expectation
from nova_ext_sched.simulator import hostnames
from nova_ext_sched.simulator import schema

#: The project of servers and server groups that name none.
DEFAULT_PROJECT = 'default'

Options = dict[str, dict[str, typing.Any]]


@dataclasses.dataclass(frozen=True)
class Host:
    """A compute host; its capacity is what its resource provider reports.

    :param traits: traits of its provider, beside those that are implied
    """

    name: str
    vcpus: int = 32
    memory_mb: int = 131072
    disk_gb: int = 2000
    traits: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """A host aggregate of nova."""

    name: str
    hosts: tuple[str, ...] = ()
    metadata: dict[str, str] = dataclasses.field(default_factory=dict)
    availability_zone: str | None = None


@dataclasses.dataclass(frozen=True)
class Flavor:
    """A flavor of nova."""

    name: str
    vcpus: int = 1
    memory_mb: int = 512
    disk_gb: int = 1
    extra_specs: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class ServerGroup:
    """A server group, made by the project that boots servers into it."""

    name: str
    policy: str
    rules: dict[str, typing.Any] | None = None
    project: str = DEFAULT_PROJECT


@dataclasses.dataclass(frozen=True)
class Step:
    """One thing that is done to the cloud.

    :param action: a key of :data:`schema.STEPS`
    :param target: the name that follows the action: the server or servers,
        or the aggregate
    :param arguments: the step's other keys, as the document has them
    :param expect: what it should do with our package
    :param expect_plain: what plain nova is known to do; None where the
        scenario does not say
    """

    action: str
    target: str | list[str]
    arguments: dict[str, typing.Any]
    expect: expectation.Expectation
    expect_plain: expectation.Expectation | None

    @property
    def servers(self) -> list[str]:
        """The names of the servers that the step boots or acts on.

        A boot of several names them as nova does: ``web-1``, ``web-2``, ...
        """
        if self.action == 'aggregate':
            return []
        if self.action != 'boot':
            return hostnames.expand_all(self.target)
        name = str(self.target)
        count = self.arguments.get('count', 1)
        if count == 1:
            return [name]
        return [f'{name}-{number}' for number in range(1, count + 1)]

    @property
    def places(self) -> bool:
        """Whether the step's servers have a host afterwards."""
        return self.action not in ('shelve', 'delete', 'aggregate')

    def __str__(self) -> str:
        target = (
            self.target
            if isinstance(self.target, str)
            else ', '.join(self.target)
        )
        count = self.arguments.get('count')
        many = f' ×{count}' if count else ''
        told = [
            f'{key} {_told(value)}'
            for key, value in self.arguments.items()
            if key != 'count'
        ]
        more = f' ({", ".join(told)})' if told else ''
        return f'{self.action} {target}{many}{more}'


def _told(value: typing.Any) -> str:
    if value is True:
        return 'yes'
    if value is False:
        return 'no'
    if isinstance(value, dict):
        return ' '.join(f'{key}={_told(val)}' for key, val in value.items())
    if isinstance(value, list):
        return ' '.join(map(str, value))
    return str(value)


@dataclasses.dataclass(frozen=True)
class Scenario:
    """What a scenario file states, checked and with its defaults filled in.

    :param nova_conf: options by group
    :param host_filters: names that are added to ``enabled_filters``
    :param plain_nova_conf: options that plain nova has instead
    :param plain_host_filters: names that are added to plain nova's
        ``enabled_filters``; None for those of ``host_filters`` that nova has
    :param prefer: hosts that the scheduler prefers to the others, best
        first; empty for nova's own weighers
    :param imply_traits: whether providers carry the traits that the isolating
        aggregates of their hosts require
    :param images: properties by the image's name
    """

    description: str
    nova_conf: Options
    host_filters: tuple[str, ...]
    plain_nova_conf: Options
    plain_host_filters: tuple[str, ...] | None
    projects: tuple[str, ...]
    hosts: tuple[Host, ...]
    prefer: tuple[str, ...]
    imply_traits: bool
    aggregates: tuple[Aggregate, ...]
    flavors: tuple[Flavor, ...]
    images: dict[str, dict[str, str]]
    server_groups: tuple[ServerGroup, ...]
    steps: tuple[Step, ...]


def parse(data: dict[str, typing.Any]) -> Scenario:
    """Return the scenario that a document states.

    :param data: a document's content that :mod:`form` and
        :mod:`references` find no fault with
    """
    plain = data.get('plain', {})
    plain_filters = plain.get('host_filters')
    return Scenario(
        description=data.get('description', ''),
        nova_conf=data.get('nova_conf', {}),
        host_filters=tuple(data.get('host_filters', ())),
        plain_nova_conf=plain.get('nova_conf', {}),
        plain_host_filters=(
            None if plain_filters is None else tuple(plain_filters)
        ),
        projects=tuple(data.get('projects', ())),
        hosts=tuple(host for item in data['hosts'] for host in _hosts(item)),
        prefer=tuple(hostnames.expand_all(data.get('prefer', ()))),
        imply_traits=data.get('imply_traits', True),
        aggregates=tuple(
            Aggregate(
                name=name,
                hosts=tuple(hostnames.expand_all(item.get('hosts', ()))),
                metadata=_strings(item.get('metadata', {})),
                availability_zone=item.get('availability_zone'),
            )
            for name, item in data.get('aggregates', {}).items()
        ),
        flavors=tuple(
            Flavor(
                name=name,
                **{
                    **item,
                    'extra_specs': _strings(item.get('extra_specs', {})),
                },
            )
            for name, item in data['flavors'].items()
        ),
        images={
            name: _strings(item.get('properties', {}))
            for name, item in data.get('images', {}).items()
        },
        server_groups=tuple(
            ServerGroup(name=name, **item)
            for name, item in data.get('server_groups', {}).items()
        ),
        steps=tuple(_step(item) for item in data['steps']),
    )


def _strings(values: dict[str, typing.Any]) -> dict[str, str]:
    return {key: str(value) for key, value in values.items()}


def _hosts(item: str | dict[str, typing.Any]) -> list[Host]:
    if isinstance(item, str):
        return [Host(name) for name in hostnames.expand(item)]
    rest = {**item, 'traits': tuple(item.get('traits', ()))}
    pattern = rest.pop('name')
    return [Host(name, **rest) for name in hostnames.expand(pattern)]


def _step(item: dict[str, typing.Any]) -> Step:
    arguments = dict(item)
    action = schema.action(item)
    assert action is not None
    target = arguments.pop(action)
    expect = arguments.pop('expect', None)
    plain = arguments.pop('expect_plain', None)
    return Step(
        action=action,
        target=target,
        arguments=arguments,
        expect=expectation.parse(expect),
        expect_plain=None if plain is None else expectation.parse(plain),
    )
