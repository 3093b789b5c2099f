# SPDX-License-Identifier: Apache-2.0

"""Finds the values that a host filter of nova's compared.

nova's filters say no more than that they refuse a host. What they compared is
in the request and in the HostState: both values are told, and nothing is
compared here. Where a request has several keys, the filter itself is asked
about each of them alone, and so says which one it was.
"""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import copy
import dataclasses
import types
import typing

from nova import objects
import nova.conf
from nova.scheduler.filters import affinity_filter
from nova.scheduler.filters import utils
from nova.virt import hardware
from oslo_log import log as logging
from oslo_serialization import jsonutils
from oslo_utils import versionutils

from nova_ext_sched import fields
from nova_ext_sched import messages
from nova_ext_sched.filters import anti_affinity
from nova_ext_sched.filters import base
from nova_ext_sched.policy import act
from nova_ext_sched.policy import declaration
from nova_ext_sched.policy import verdict

LOG = logging.getLogger(__name__)

AFFINITY = declaration.Policy(
    name='affinity', refuses='are not where the server group is'
)
#: nova leaves out the host of the server that it moves, and the group is
#: nowhere else.
KEPT = declaration.Policy(
    name='affinity', refuses='are not where the server group must stay'
)

_MOST_VALUES = 3
_OF_DEVICES = {'vendor_id', 'product_id', 'physical_network', 'numa_node'}
_MOST_NODES = 4
# Users may write any number of parts, and nova parses each anew.
_MOST_PARTS = 10

_SCOPE = 'aggregate_instance_extra_specs:'
# What ImagePropertiesFilter reads.
_IMAGE_PROPERTIES = (
    'hw_architecture',
    'img_hv_type',
    'hw_vm_mode',
    'img_hv_requested_version',
    'hw_maxphysaddr_bits',
)
# The policies of CPU threads that look at cores.
_OF_CORES = ('isolate', 'require')
_PAGES = {
    hardware.MEMPAGES_SMALL: 'small pages',
    hardware.MEMPAGES_LARGE: 'large pages',
    hardware.MEMPAGES_ANY: 'pages of any size',
}


@dataclasses.dataclass(frozen=True)
class Refused:
    """A host that a filter of nova's refused.

    :ivar filter: the filter
    :ivar spec: the nova RequestSpec
    :ivar host: the nova HostState
    """

    filter: typing.Any
    spec: typing.Any
    host: typing.Any

    @property
    def flavor(self) -> str:
        """The name of the requested flavor."""
        return f'flavor {messages.clean(fields.flavor_name(self.spec))}'

    def passes(self, **asked: typing.Any) -> bool:
        """Return whether the host passes a request with these fields alone."""
        spec_obj = objects.RequestSpec(**asked)
        return bool(self.filter.host_passes(self.host, spec_obj))

    def judge(self) -> verdict.Verdict:
        """Describe what the filter compared; passes if that is not known."""
        name = type(self.filter).__name__
        try:
            if name in _OF_AGGREGATES and self.filter.host_passes(
                self.host, self.spec
            ):
                # It may be asked how it judges the host in others.
                return verdict.PASS
            compare, find_acts = _KNOWN[name]
            acts = tuple(find_acts(self))
            return verdict.reject(compare(self), acts=acts)
        except Exception as exc:
            # The filter did not raise: nova's answer is valid, without words.
            LOG.debug('No reason is known: %s', messages.say_error(exc))
            return verdict.PASS

    def raise_limit(self, option: str, amount: str) -> Iterator[act.Act]:
        """Yield the act that raises a limit above what the host has.

        Metadata of the host's aggregates overrides the option for nova's
        filters of aggregates; of several the least counts.

        :param amount: the field of the HostState that has reached it
        """
        value = getattr(self.host, amount) + 1
        aggregates = [o for o in self.host.aggregates if option in o.metadata]
        if not aggregates or not type(self.filter).__name__.startswith(
            'Aggregate'
        ):
            yield act.raise_option('filter_scheduler', option, value)
        elif len(aggregates) == 1:
            raises = act.set_item('more servers')
            yield raises.named(aggregates[0].name, option, str(value))


_Compare = Callable[[Refused], str]
_FindActs = Callable[[Refused], Iterable[act.Act]]

# nova's filters that judge a host by its aggregates alone.
_OF_AGGREGATES = (
    'AggregateInstanceExtraSpecsFilter',
    'AggregateImagePropertiesIsolation',
    'AggregateMultiTenancyIsolation',
    'AggregateTypeAffinityFilter',
)
_MOVES = (
    act.take_out('requests that it is closed to'),
    act.put_into('requests that it is for'),
    act.unset_item('requests that it is closed to'),
    act.set_item('requests that it is for'),
)
#: The hint that each reads.
HINTS = {
    'SameHostFilter': 'same_host',
    'DifferentHostFilter': 'different_host',
    'SimpleCIDRAffinityFilter': 'build_near_host_ip',
    'JsonFilter': 'query',
}
_WITHOUT_PROPERTY = act.Act(
    act.REPAIR,
    'ask for an image without the property {names}',
    act.IMAGE,
    by_command=False,
)
_WITHOUT_HINT = act.Act(
    act.REPAIR,
    'ask without the hint {names}',
    act.REQUEST,
    by_command=False,
)

# What each filter of nova's compared, and acts against its refusals.
_KNOWN: dict[str, tuple[_Compare, _FindActs]] = {}


def _of(
    *names: str, acts: _FindActs = lambda _: ()
) -> Callable[[_Compare], _Compare]:
    """Register a function for filters of nova's that it describes.

    :param acts: finds the acts after which they take a host
    """

    def register(compare: _Compare) -> _Compare:
        _KNOWN.update(dict.fromkeys(names, (compare, acts)))
        return compare

    return register


def _drop_hint(refused: Refused) -> Iterator[act.Act]:
    yield _WITHOUT_HINT.named(HINTS[type(refused.filter).__name__])


def decisions(
    host_filter: typing.Any, spec_obj: typing.Any, policy: declaration.Policy
) -> Iterator[base.Decision]:
    """Yield a decision that explains refusals of a filter of nova's.

    It is to be asked of hosts that the filter refused. It yields nothing for
    other filters, and its verdict passes where it has nothing to say.

    :param policy: policy of the filter
    """
    cls = type(host_filter)
    if cls is affinity_filter.ServerGroupAntiAffinityFilter:
        # Our filter gives nova's answers, with words.
        ours = anti_affinity.ServerGroupAntiAffinityFilter()
        yield from ours.decisions(spec_obj)
        return
    if cls is affinity_filter.ServerGroupAffinityFilter:
        policy = KEPT if _is_kept(spec_obj) else AFFINITY
    # Other packages may have a filter of the same name.
    if cls.__module__.startswith('nova.') and cls.__name__ in _KNOWN:
        yield (
            policy,
            lambda state: Refused(host_filter, spec_obj, state).judge(),
        )


def _values(values: Iterable[object]) -> str:
    shown = sorted(map(str, values))
    return messages.first_few(shown, _MOST_VALUES, messages.quoted)


def _find_extra_spec(refused: Refused) -> tuple[str, str]:
    """Return the first extra spec that is refused alone, with its value."""
    return next(
        (spec, messages.quoted(value))
        for spec, value in refused.spec.flavor.extra_specs.items()
        if not refused.passes(flavor=objects.Flavor(extra_specs={spec: value}))
    )


@_of('AggregateInstanceExtraSpecsFilter', acts=lambda _: _MOVES)
def _compare_extra_specs(refused: Refused) -> str:
    spec, value = _find_extra_spec(refused)
    key = spec.removeprefix(_SCOPE)
    wants = f'{refused.flavor} wants {messages.quoted(key)} to be {value}'
    offered = utils.aggregate_metadata_get_by_host(refused.host, key)
    if key not in offered:
        return f'{wants} and no aggregate of the host has the key'
    return f'{wants} and the aggregates offer {_values(offered[key])}'


@_of('ComputeCapabilitiesFilter')
def _compare_capabilities(refused: Refused) -> str:
    spec, value = _find_extra_spec(refused)
    return (
        f'{refused.flavor} wants {messages.quoted(spec)} to be {value} '
        f'and nova-compute does not report that'
    )


def _find_metadata(refused: Refused) -> Iterator[tuple[str, set[str]]]:
    """Yield keys and values of aggregates that the filter refuses alone."""
    for key, values in utils.aggregate_metadata_get_by_host(
        refused.host
    ).items():
        one = objects.Aggregate(metadata={key: ','.join(values)})
        alone = types.SimpleNamespace(host=refused.host.host, aggregates=[one])
        if not refused.filter.host_passes(alone, refused.spec):
            yield key, values


@_of(
    'AggregateImagePropertiesIsolation',
    acts=lambda refused: (
        _WITHOUT_PROPERTY.named(*dict(_find_metadata(refused))),
        *_MOVES,
    ),
)
def _compare_isolated_image(refused: Refused) -> str:
    key, values = next(_find_metadata(refused))
    has = messages.quoted(refused.spec.image.properties.get(key))
    return (
        f'the image has {messages.quoted(key)} {has} and the aggregates want '
        f'{_values(values)}'
    )


@_of('AggregateMultiTenancyIsolation', acts=lambda _: _MOVES)
def _compare_tenant(refused: Refused) -> str:
    wanted = dict(_find_metadata(refused))
    return (
        f'the aggregates want {_values(wanted)} to be '
        f'{_values(set().union(*wanted.values()))}, got project '
        f'{messages.quoted(refused.spec.project_id)}'
    )


@_of('AggregateTypeAffinityFilter', acts=lambda _: _MOVES)
def _compare_flavor_name(refused: Refused) -> str:
    values = utils.aggregate_values_from_key(refused.host, 'instance_type')
    return (
        f"the aggregates want 'instance_type' to be {_values(values)}, got "
        f'{refused.flavor}'
    )


@_of(
    'NumInstancesFilter',
    'AggregateNumInstancesFilter',
    acts=lambda refused: refused.raise_limit(
        'max_instances_per_host', 'num_instances'
    ),
)
def _compare_instances(refused: Refused) -> str:
    most = refused.filter._get_max_instances_per_host(
        refused.host, refused.spec
    )
    held = messages.count('server', refused.host.num_instances)
    return f'the host holds {held} and max_instances_per_host is {most}'


@_of(
    'IoOpsFilter',
    'AggregateIoOpsFilter',
    acts=lambda refused: refused.raise_limit(
        'max_io_ops_per_host', 'num_io_ops'
    ),
)
def _compare_io_ops(refused: Refused) -> str:
    most = refused.filter._get_max_io_ops_per_host(refused.host, refused.spec)
    tasks = messages.count('task', refused.host.num_io_ops)
    return f'the host has {tasks} under way and max_io_ops_per_host is {most}'


def _is_kept(spec_obj: typing.Any) -> bool:
    where = set(spec_obj.instance_group.hosts)
    left_out = fields.get_field(spec_obj, 'ignore_hosts') or ()
    return len(where) == 1 and where.issubset(left_out)


@_of('ServerGroupAffinityFilter', acts=lambda _: (act.WITHOUT_GROUP,))
def _compare_affinity(refused: Refused) -> str:
    group = refused.spec.instance_group
    name = fields.get_field(group, 'name') or fields.get_field(group, 'uuid')
    where = messages.first_few(sorted(group.hosts), _MOST_VALUES)
    text = f'server group {messages.clean(name)} must stay together on {where}'
    if _is_kept(refused.spec):
        text += ': nova moves none of its servers'
    return text


@_of('SameHostFilter', 'DifferentHostFilter', acts=_drop_hint)
def _compare_hint(refused: Refused) -> str:
    hint = HINTS[type(refused.filter).__name__]
    named = refused.spec.get_scheduler_hint(hint)
    named = [named] if isinstance(named, str) else named
    if hint == 'same_host':
        return f'it holds no server that {hint} names: {_values(named)}'
    held = {
        uuid
        for uuid in named
        if utils.instance_uuids_overlap(refused.host, [uuid])
    }
    return f'it holds servers that {hint} names: {_values(held)}'


@_of('SimpleCIDRAffinityFilter', acts=_drop_hint)
def _compare_address(refused: Refused) -> str:
    hints = ('build_near_host_ip', 'cidr')
    wants = ', '.join(
        f'{hint} {messages.quoted(value)}'
        for hint in hints
        if (value := refused.spec.get_scheduler_hint(hint))
    )
    has = messages.quoted(refused.host.host_ip)
    return f'the hints want {wants} and the host has the address {has}'


@_of('IsolatedHostsFilter')
def _compare_isolated_host(refused: Refused) -> str:
    uuid = fields.get_field(refused.spec.image, 'id')
    image = f'image {messages.clean(uuid)}' if uuid else 'no image'
    if refused.host.host in nova.conf.CONF.filter_scheduler.isolated_hosts:
        return (
            f'the host is one of isolated_hosts, which want an image of '
            f'isolated_images, got {image}'
        )
    return (
        f'{image} is one of isolated_images, which want a host of '
        f'isolated_hosts'
    )


@_of('MetricsFilter')
def _compare_metrics(refused: Refused) -> str:
    lacking, alone = [], copy.copy(refused.filter)
    for key in refused.filter.keys:
        alone.keys = {key}
        if not alone.host_passes(refused.host, None):
            lacking.append(key)
    reported = _values({metric.name for metric in refused.host.metrics})
    return (
        f'[metrics] weight_setting wants {_values(lacking)} and nova-compute '
        f'reports {reported or "no metric"}'
    )


@_of('JsonFilter', acts=_drop_hint)
def _compare_query(refused: Refused) -> str:
    wanted = jsonutils.loads(refused.spec.get_scheduler_hint('query'))
    if wanted[0] == 'and' and len(wanted) <= _MOST_PARTS:
        wanted = next(
            part
            for part in wanted[1:]
            if not refused.passes(
                scheduler_hints={'query': [jsonutils.dumps(['and', part])]}
            )
        )

    def say_variable(name: str) -> str:
        value = refused.filter._parse_string(name, refused.host)
        # Some values are objects of any size.
        is_short = isinstance(value, str | int | float)
        shown = messages.quoted(value) if is_short else type(value).__name__
        return (
            f'{messages.clean(name)} {"nothing" if value is None else shown}'
        )

    has = messages.first_few(
        sorted(set(_find_variables(wanted))), _MOST_VALUES, say_variable
    )
    return (
        f'the hint query wants {messages.quoted(jsonutils.dumps(wanted))} and '
        f'the host has {has or "no part in it"}'
    )


def _find_variables(part: typing.Any) -> Iterator[str]:
    """Yield the variables of the host in a part of a JSON query."""
    if isinstance(part, list):
        for one in part:
            yield from _find_variables(one)
    elif isinstance(part, str) and part.startswith('$'):
        yield part


def _find_properties(refused: Refused) -> list[str]:
    """Return the properties of the image that are refused alone, or all."""
    known = refused.spec.image.properties
    wanted = {
        key: value for key in _IMAGE_PROPERTIES if (value := known.get(key))
    }
    alone = [
        key
        for key, value in wanted.items()
        if not refused.passes(
            image=objects.ImageMeta(
                properties=objects.ImageMetaProps(**{key: value})
            )
        )
    ]
    return alone or [*wanted]


@_of(
    'ImagePropertiesFilter',
    acts=lambda refused: (
        _WITHOUT_PROPERTY.named(*_find_properties(refused)),
    ),
)
def _compare_image(refused: Refused) -> str:
    properties = refused.spec.image.properties if refused.spec.image else {}
    wants = {key: properties.get(key) for key in _IMAGE_PROPERTIES}
    where = 'the image wants'
    name = 'image_properties_default_architecture'
    default = getattr(nova.conf.CONF.filter_scheduler, name)
    if default and not wants['hw_architecture']:
        wants[name] = default
        where = 'image and nova.conf want'
    shown = ', '.join(
        f'{key} {messages.quoted(value)}'
        for key, value in wants.items()
        if value
    )
    offered = {
        '/'.join(map(str, one))
        for one in refused.host.supported_instances or ()
    }
    offers = _values(offered) or 'nothing'
    number = refused.host.hypervisor_version
    if wants['img_hv_requested_version'] and number:
        version = versionutils.convert_version_to_str(number)
        offers += f', version {version}'
    if wants['hw_maxphysaddr_bits']:
        bits = (refused.host.cpu_info or {}).get('maxphysaddr', {})
        offers += f', {bits.get("bits", "any")} bits of physical addresses'
    return f'{where} {shown} and the host offers {offers}'


@_of('NUMATopologyFilter')
def _compare_numa(refused: Refused) -> str:
    cells = refused.spec.numa_topology.cells
    counts = collections.Counter(map(_say_asked, cells))
    wants = 'the request wants ' + ' and '.join(
        f'{messages.count("NUMA node", number)} of {text}'
        for text, number in counts.items()
    )
    topology = refused.host.numa_topology
    if not topology:
        return f'{wants} and nova-compute reports no NUMA nodes'
    policies = {cell.cpu_thread_policy for cell in cells}
    if 'require' in policies:
        has = 'has' if topology.has_threads else 'has no'
        wants += f', with CPU threads, which the host {has}'
    if 'isolate' in policies and topology.has_threads:
        wants += ', without CPU threads, which the host has'
    if refused.spec.numa_topology.emulator_threads_isolated:
        wants += ', and 1 dedicated CPU more for emulator threads'
    offers = messages.first_few(
        [_say_free(cell, cells, refused.host) for cell in topology.cells],
        _MOST_NODES,
        str,
    )
    requests = fields.get_field(refused.spec, 'pci_requests')
    if requests and requests.requests:
        # They may have to be on the same NUMA nodes.
        wants += f', with {_say_wanted(requests.requests)}'
        offers += f', and {_say_devices(refused.host, requests.requests)}'
    if networks := _find_networks(refused.spec):
        wants += f', on {_values(networks)}'
        offers += ''.join(
            f', {_values(found)} on node {cell.id}'
            for cell in topology.cells
            if (found := _find_networks(cell))
        )
    return f'{wants} and the host has free {offers}'


def _find_networks(owner: typing.Any) -> set[str]:
    """Return the networks of a request, or of a host's NUMA node."""
    found = fields.get_field(owner, 'network_metadata')
    if not found:
        return set()
    return {*found.physnets, *['tunnels'] * bool(found.tunneled)}


def _say_asked(cell: typing.Any) -> str:
    amounts = [
        f'{messages.count(f"{kind} CPU", len(cpus))}'
        for kind, cpus in (
            ('shared', cell.cpuset),
            ('dedicated', cell.pcpuset),
        )
        if cpus
    ]
    amounts.append(f'{cell.memory} MB')
    if cell.pagesize:
        size = _PAGES.get(cell.pagesize, f'pages of {cell.pagesize} KB')
        amounts[-1] += f' in {size}'
    return ', '.join(amounts)


def _say_free(
    cell: typing.Any, asked: Iterable[typing.Any], host: typing.Any
) -> str:
    """Return the most that a host's NUMA node gives one server now.

    Of what is overcommitted nova gives no server more than there is.
    """
    memory = int(cell.memory * host.ram_allocation_ratio) - cell.memory_usage
    amounts = [f'{min(memory, cell.memory)} MB']
    if any(one.pcpuset for one in asked):
        free = messages.count('dedicated CPU', cell.avail_pcpus)
        if cell.siblings and any(
            one.cpu_thread_policy in _OF_CORES for one in asked
        ):
            cores = zip(cell.siblings, cell.free_siblings, strict=True)
            whole = sum(has == is_free for has, is_free in cores)
            free += f' ({messages.count("whole core", whole)})'
        amounts.insert(0, free)
    if any(one.cpuset for one in asked):
        most = len(cell.cpuset)
        left = int(most * host.cpu_allocation_ratio) - cell.cpu_usage
        amounts.insert(0, messages.count('shared CPU', min(left, most)))
    if any(one.pagesize for one in asked):
        amounts += [
            f'{messages.count("page", one.free)} of {one.size_kb} KB'
            for one in cell.mempages
        ]
    return f'on node {cell.id}: {", ".join(amounts)}'


@_of('PciPassthroughFilter')
def _compare_pci(refused: Refused) -> str:
    requests = refused.spec.pci_requests.requests
    return (
        f'the request wants {_say_wanted(requests)} and the host has free '
        f'{_say_devices(refused.host, requests)}'
    )


def _say_wanted(requests: Iterable[typing.Any]) -> str:
    return messages.first_few(
        [_say_request(one) for one in requests], _MOST_VALUES, str
    )


def _say_devices(host: typing.Any, requests: Iterable[typing.Any]) -> str:
    """Return the devices that a host has free, by what requests ask for."""
    keys = {key for one in requests for tags in one.spec for key in tags}
    free: collections.Counter[str] = collections.Counter()
    for pool in host.pci_stats.pools if host.pci_stats else ():
        node = pool.get('numa_node')
        where = '' if node is None else f' on node {node}'
        free[_say_device(pool, keys) + where] += pool['count']
    offers = messages.first_few(
        [f'{number} of {device}' for device, number in sorted(free.items())],
        _MOST_VALUES,
    )
    return offers or 'no PCI device'


def _say_request(request: typing.Any) -> str:
    devices = messages.first_few(
        sorted({_say_device(one, one) for one in request.spec}), _MOST_VALUES
    )
    if request.alias_name:
        alias = messages.clean(request.alias_name)
        return f'{request.count} of PCI alias {alias} ({devices})'
    return f'{request.count} of {devices}'


def _say_device(tags: typing.Any, keys: Iterable[str]) -> str:
    """Return the attributes that tell devices apart.

    :param keys: of the tags that a request names besides vendor, product and
        network
    """
    network = tags.get('physical_network')
    others = ''.join(
        f' {key}={tags[key]}'
        for key in sorted({*keys} & {*tags} - _OF_DEVICES)
    )
    if network and 'vendor_id' not in tags:
        return f'devices on {network}{others}'
    ids = f'{tags.get("vendor_id") or "*"}:{tags.get("product_id") or "*"}'
    return f'{ids} on {network}{others}' if network else ids + others
