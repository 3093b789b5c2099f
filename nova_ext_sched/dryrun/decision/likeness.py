# SPDX-License-Identifier: Apache-2.0

"""Finds equivalent requests and hosts, which are judged once.

A *likeness* is a key made of everything that nova's code reads. Two requests,
or two hosts, that have the same key get the same answer.

Each host has been judged by itself before servers are counted on it. How many
it takes depends then on what claims change (free memory, CPUs, NUMA cells, PCI
devices, the number of servers, the room in placement), and on what filters
compare with that: sizes, ratios, aggregates. If cmp-01 and cmp-02 have all of
it in common, cmp-02 takes as many servers as cmp-01.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import typing

import nova.conf
from oslo_serialization import jsonutils

from nova_ext_sched import fields
from nova_ext_sched.dryrun.cloud import claims
from nova_ext_sched.filters import base
from nova_ext_sched.queries import running_image

CONF = nova.conf.CONF

# Fields of a HostState that are left out of its key: those that say which host
# it is, and those that no claim changes and no filter compares with fields
# that claims change. Each host was judged by them already.
_OWN = frozenset(
    {
        'host',
        'nodename',
        'uuid',
        '_lock_name',
        'host_ip',
        'hypervisor_hostname',
        'cell_uuid',
        'updated',
        'service',
        'stats',
        'metrics',
        'failed_builds',
        'instances',
        'aggregates',
        'allocation_candidates',
        'cpu_info',
        'supported_instances',
    }
)
# Numbers of a HostState that claims change, even claims of equal amounts.
_COUNTED = frozenset(
    {'free_ram_mb', 'free_disk_mb', 'vcpus_used', 'num_instances'}
)
# The hint of nova's JsonFilter, which compares any field with any other.
_OF_ANY_FIELD = 'query'

# Filters of these packages compare no field of _OWN with another; nor does a
# filter that judges by aggregates alone.
_PACKAGES = ('nova', 'nova_ext_sched')


def are_shared(
    host_filters: Iterable[typing.Any], spec_obj: typing.Any
) -> bool:
    """Return whether one host can represent all equivalent hosts.

    :param host_filters: the filters that judge the request
    :param spec_obj: a nova RequestSpec
    """
    hints = fields.get_field(spec_obj, 'scheduler_hints') or {}
    return (
        spec_obj.instance_group is None
        and _OF_ANY_FIELD not in hints
        and are_known(host_filters, spec_obj)
    )


def are_even(host_filters: Iterable[typing.Any], spec_obj: typing.Any) -> bool:
    """Return whether each server takes the same amounts of a host.

    A host that refuses one server then refuses all later ones, unless an extra
    spec compares a field that claims change (``capabilities:vcpus_used``).

    :param host_filters: see :func:`are_shared`; ``spec_obj`` too
    """
    devices = fields.get_field(spec_obj, 'pci_requests')
    compared = {
        word
        for key in fields.get_field(spec_obj.flavor, 'extra_specs') or ()
        for word in key.split(':')
    }
    return not (
        spec_obj.numa_topology is not None
        or (devices and devices.requests)
        or fields.get_field(spec_obj, 'requested_resources')
        or compared & _COUNTED
    ) and are_shared(host_filters, spec_obj)


def are_known(
    host_filters: Iterable[typing.Any], spec_obj: typing.Any
) -> bool:
    """Return whether all filters read only known fields.

    nova's filters and ours do, and filters that judge by aggregates alone.
    """
    return all(
        type(host_filter).__module__.partition('.')[0] in _PACKAGES
        or all(
            isinstance(judge, base.ByAggregates)
            for _, judge in base.decisions_of(host_filter, spec_obj)
        )
        for host_filter in host_filters
    )


def of_host(
    uuid: str,
    described: object,
    requests: Iterable[claims.Request],
    summaries: Mapping[str, typing.Any],
    tree: Mapping[str, typing.Any],
) -> object:
    """Return a key that identifies hosts with room for as many servers.

    :param uuid: UUID of the host
    :param described: the result of :func:`key_of_state`
    :param requests: the host's allocation requests, in their order
    :param summaries: placement's provider summaries, by UUID
    :param tree: the summaries of the host's own providers, by UUID
    """
    numbers: dict[str, int] = {}
    rooms: list[tuple[object, ...]] = []
    for request in requests:
        for provider, claim in request['allocations'].items():
            summary = summaries[provider]
            if summary['root_provider_uuid'] != uuid:
                # Hosts share the provider: what one claims, another lacks.
                return uuid
            number = numbers.setdefault(provider, len(numbers))
            for name, amount in claim['resources'].items():
                found = summary['resources'][name]
                free = found['capacity'] - found['used']
                rooms.append((number, name, amount, free))
        rooms.append(())
    if numbers.keys() <= {uuid}:
        return described, tuple(rooms)
    # Placement may have listed candidates of some of the providers only.
    others = sorted(
        str((sorted(one.get('traits', ())), one['resources']))
        for one in tree.values()
    )
    return described, tuple(rooms), tuple(others)


def key_of_state(state: typing.Any) -> object:
    """Return the part of a host's key that its nova HostState has."""
    return (
        frozenset(map(id, state.aggregates)),
        *(
            # A value without a repr() of its own equals no other.
            repr(value.pools if name == 'pci_stats' and value else value)
            for name, value in sorted(vars(state).items())
            if name not in _OWN
        ),
    )


# Fields in which equivalent requests may differ, or that nova sets anew.
OWN_OF_REQUEST = (
    'id',
    'instance_uuid',
    'user_id',
    'security_groups',
    'num_instances',
    'ignore_hosts',
    'force_hosts',
    'force_nodes',
    'requested_destination',
    'retry',
    'limits',
    'network_metadata',
    'requested_networks',
    # They follow from the flavor and its devices, or from Neutron's ports.
    'requested_resources',
    'request_level_params',
)
# The metadata of a network that a host must have.
_OF_NETWORK = ('physical_network', 'tunneled')


class Key(typing.NamedTuple):
    """A key that is equal for equivalent requests.

    :ivar text: the key
    :ivar is_whole: whether the key covers all that nova reads of a request. If
        not, the answer for a request with an equal key only proposes hosts
    :ivar has_all: whether the key covers all that nova-api reads to allow a
        move. Only the scheduler reads server groups, hints and the image of
        the request
    """

    text: str
    is_whole: bool
    has_all: bool = False


def of_request(kind: object, instance: typing.Any, text: str) -> Key | None:
    """Return a key that identifies equivalent requests.

    ==============================  =========================================
    a request                       how it is judged
    ==============================  =========================================
    that contains all that nova     by the shared answer of its key
    reads of it
    of a server group, with hints   the shared answer, without group and hints,
                                    proposes hosts, because filters only
                                    remove hosts
    of a server that runs another   the shared answer of such servers proposes
    image than its request has, or  hosts
    one on a volume
    of a port that Neutron asks     the same; and nova-api is asked about it
    about                           by itself
    that cannot be read             by itself
    ==============================  =========================================

    :param kind: a further part of the key
    :param instance: the nova Instance
    :param text: its RequestSpec as nova stores it
    :returns: None if the request cannot be read
    """
    has_all = True
    ports = []
    for vif in instance.get_network_info():
        network = vif.get('network') or {}
        meta = network.get('meta') or {}
        ports.append(
            (
                network.get('id'),
                vif.get('vnic_type'),
                *map(meta.get, _OF_NETWORK),
            )
        )
        if CONF.scheduler.query_placement_for_routed_network_aggregates or (
            vif.get('profile') or {}
        ).get('allocation'):
            has_all = False
    try:
        # Some fields of a request contain the server's UUID.
        stored = jsonutils.loads(text.replace(instance.uuid, ''))
        spec = stored['nova_object.data']
        image = _read_data(spec.get('image')).get('id')
        requests = _read_data(spec.get('pci_requests')).get('requests') or ()
        for number, one in enumerate(map(_read_data, requests)):
            # nova gives each device request a new ID, and names its port.
            one['request_id'] = number
            if one.pop('requester_id', None):
                has_all = False
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    # The scheduler's filters read the image that the server runs.
    runs_another = bool(image and image != instance.image_ref)
    is_alone = not runs_another
    for name in ('instance_group', 'scheduler_hints'):
        if spec.pop(name, None):
            is_alone = False
    kept = {name: spec[name] for name in spec if name not in OWN_OF_REQUEST}
    # nova's copy of the image: a later rebuild with the same image may bring
    # other properties, which the request spec does not get.
    copied = sorted(
        running_image.choose_copied(instance.system_metadata).items()
    )
    common = (
        kind,
        sorted(set(ports), key=str),
        copied,
        # Specs of old releases do not say whether it boots from a volume.
        bool(instance.image_ref),
        has_all,
        runs_another,
        _drop_changes(kept),
    )
    text = jsonutils.dumps(common, sort_keys=True)
    return Key(text, has_all and is_alone, has_all)


def _read_data(primitive: typing.Any) -> dict[str, typing.Any]:
    """Return the stored fields of one of nova's objects."""
    fields_: dict[str, typing.Any] = (
        primitive['nova_object.data'] if primitive else {}
    )
    return fields_


def _drop_changes(primitive: typing.Any) -> typing.Any:
    """Return stored fields without nova's lists of changed fields."""
    if isinstance(primitive, dict):
        return {
            key: _drop_changes(value)
            for key, value in primitive.items()
            if key != 'nova_object.changes'
        }
    if isinstance(primitive, list):
        return list(map(_drop_changes, primitive))
    return primitive
