# SPDX-License-Identifier: Apache-2.0

"""The parts of a scenario: a cloud, and the steps that are run on it."""

from collections.abc import Collection
import dataclasses
import typing

from nova_ext_sched.simulator import document
from nova_ext_sched.simulator import expectation
from nova_ext_sched.simulator import hostnames

#: The project of servers and server groups without a ``project``.
DEFAULT_PROJECT = 'default'

Fields = dict[str, typing.Any]
Options = dict[str, Fields]


@dataclasses.dataclass(frozen=True)
class Host:
    """A compute host; its capacity is what its resource provider reports.

    :param traits: traits of its provider, besides those that its aggregates
        imply
    """

    name: str
    vcpus: int = 32
    memory_mb: int = 131072
    disk_gb: int = 2000
    traits: Collection[str] = ()


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """A host aggregate of nova."""

    name: str
    hosts: Collection[str] = ()
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
    """A server group of a project."""

    name: str
    policy: str
    rules: dict[str, int] | None = None
    project: str = DEFAULT_PROJECT


@dataclasses.dataclass(frozen=True)
class Step:
    """One action on the cloud.

    :param action: a key of :data:`document.STEPS`
    :param target: the name that follows the action: the server or servers,
        or the aggregate
    :param servers: the names of the servers that it boots or changes
    :param arguments: the step's other keys, as the document has them
    :param expect: the expected result with this package
    :param expect_plain: the known result on plain nova; None if the scenario
        does not state it
    """

    action: str
    target: str | list[str]
    servers: Collection[str]
    arguments: Fields
    expect: expectation.Expectation
    expect_plain: expectation.Expectation | None

    @property
    def places(self) -> bool:
        """Whether the step's servers have a host afterwards."""
        return self.action not in ('shelve', 'delete', 'aggregate')

    @property
    def domain_keys(self) -> set[str]:
        """The metadata keys whose failure domains its expectations count."""
        return {
            key
            for expect in filter(None, (self.expect, self.expect_plain))
            for key in (*expect.max_per_domain, *expect.min_domains)
        }

    def __str__(self) -> str:
        arguments = dict(self.arguments)
        count = arguments.pop('count', None)
        many = f' ×{count}' if count else ''
        details = [f'{key} {_format(arguments[key])}' for key in arguments]
        more = f' ({", ".join(details)})' if details else ''
        return f'{self.action} {_format(self.target, ", ")}{many}{more}'


def _format(value: typing.Any, separator: str = ' ') -> str:
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    if isinstance(value, dict):
        return ' '.join(f'{key}={_format(val)}' for key, val in value.items())
    if isinstance(value, list):
        return separator.join(map(str, value))
    return str(value)


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A checked scenario, with its defaults filled in.

    :param images: properties by the image's name
    :param nova_conf: options by group
    :param host_filters: names that are added to ``enabled_filters``
    :param plain: for plain nova, ``nova_conf`` (options that override the
        scenario's) and ``host_filters`` (by default those of the scenario that
        nova has)
    :param prefer: hosts that the scheduler prefers to the others, best first;
        empty for nova's own weighers alone
    :param imply_traits: whether providers carry the traits that the isolated
        aggregates of their hosts require
    :param placement: ``max_request_line``, the most bytes of a request line
        that the web server in front of placement accepts; without it there is
        no web server
    """

    hosts: Collection[Host]
    aggregates: Collection[Aggregate]
    flavors: Collection[Flavor]
    images: dict[str, dict[str, str]]
    server_groups: Collection[ServerGroup]
    steps: list[Step]
    description: str = ''
    nova_conf: Options = dataclasses.field(default_factory=dict)
    host_filters: Collection[str] = ()
    plain: Fields = dataclasses.field(default_factory=dict)
    projects: Collection[str] = ()
    prefer: Collection[str] = ()
    imply_traits: bool = True
    placement: dict[str, int] = dataclasses.field(default_factory=dict)


def parse(data: Fields) -> Scenario:
    """Return the scenario that a document states.

    :param data: a document without :func:`check.findings`
    """

    def named(kind: str) -> typing.Any:
        return data.get(kind, {}).items()

    made = {
        'hosts': [host for item in data['hosts'] for host in _hosts(item)],
        'prefer': hostnames.expand_all(data.get('prefer', ())),
        'aggregates': [
            aggregate
            for pattern, item in named('aggregates')
            for aggregate in _aggregates(pattern, item)
        ],
        'flavors': [Flavor(name, **item) for name, item in named('flavors')],
        'images': {
            name: item.get('properties', {}) for name, item in named('images')
        },
        'server_groups': [
            ServerGroup(name, **item) for name, item in named('server_groups')
        ],
        'steps': [_step(item) for item in data['steps']],
    }
    return Scenario(**{**data, **made})


def name_servers(step: Fields) -> list[str]:
    """Return the names of the servers of a boot step, as nova derives them.

    :raises TypeError: its form is wrong
    """
    name, count = step['boot'], step.get('count', 1)
    if count == 1:
        return [name]
    last = min(count, hostnames.MAX_NAMES)
    return [f'{name}-{number}' for number in range(1, last + 1)]


def _hosts(item: str | Fields) -> list[Host]:
    rest = {'name': item} if isinstance(item, str) else dict(item)
    return [Host(name, **rest) for name in hostnames.expand(rest.pop('name'))]


def _aggregates(pattern: str, item: Fields) -> list[Aggregate]:
    hosts = hostnames.expand_all(item.get('hosts', ()))
    return [
        Aggregate(name, **{**item, 'hosts': hosts})
        for name in hostnames.expand(pattern)
    ]


def _step(item: Fields) -> Step:
    (action,) = document.STEPS.keys() & item.keys()
    arguments = dict(item)
    target = arguments.pop(action)
    expect = arguments.pop('expect', None)
    plain = arguments.pop('expect_plain', None)
    servers = []
    if action == 'boot':
        servers = name_servers(item)
    elif action != 'aggregate':
        servers = hostnames.expand_all(target)
    return Step(
        action,
        target,
        servers,
        arguments,
        expectation.parse(expect),
        None if plain is None else expectation.parse(plain),
    )
