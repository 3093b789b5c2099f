# SPDX-License-Identifier: Apache-2.0

"""Calls of nova-api and conductor, made from a process with nova.conf.

Run with the path of nova.conf; reads a list of calls as JSON from standard
input and writes their answers as the last line of standard output.
"""

from concurrent import futures
import contextlib
import itertools
import json
import random
import sys
import time

from nova import config
from nova import context
from nova import objects
from nova.compute import api as compute_api
from nova.compute import rpcapi as compute_rpcapi
from nova.scheduler import rpcapi as scheduler_rpcapi
from nova.scheduler import utils as scheduler_utils
from nova.scheduler.client import query
from nova.scheduler.client import report
from oslo_utils import uuidutils


def aggregate(ctxt, name, hosts, metadata):
    """Create an aggregate as nova-api does: placement and scheduler know."""
    api = compute_api.AggregateAPI()
    created = api.create_aggregate(ctxt, name, None)
    api.update_aggregate_metadata(ctxt, created.id, metadata)
    for host in hosts:
        api.add_host_to_aggregate(ctxt, created.id, host)
    return created.uuid


def set_metadata(ctxt, name, metadata):
    """Change an aggregate's metadata as nova-api does; return when it had."""
    for one in objects.AggregateList.get_all(ctxt):
        if one.name == name:
            api = compute_api.AggregateAPI()
            api.update_aggregate_metadata(ctxt, one.id, metadata)
    return time.time()


def aggregates(ctxt, prefix, count, trait):
    """Create many isolated aggregates without hosts."""
    for number in range(count):
        objects.Aggregate(
            ctxt,
            name=f'{prefix}{number}',
            metadata={f'trait:{trait}': 'required'},
        ).create()
    return count


def flavor(ctxt, name, vcpus, extra_specs, root_gb=0):
    """Create a flavor; its ID is its name.

    nova boots nothing with a flavor without a disk but from volumes.
    """
    objects.Flavor(
        ctxt,
        name=name,
        flavorid=name,
        vcpus=vcpus,
        memory_mb=64,
        root_gb=root_gb,
        ephemeral_gb=0,
        swap=0,
        rxtx_factor=1.0,
        is_public=True,
        extra_specs=extra_specs,
    ).create()
    return name


def traits(ctxt, hosts, names):
    """Add traits to the hosts' providers, creating them."""
    placement = compute_api.AggregateAPI().placement_client
    for name in names:
        placement.put(f'/traits/{name}', None, version='1.6')
    for host in hosts:
        url = f'/resource_providers?name={host}'
        (provider,) = placement.get(url).json()['resource_providers']
        url = f'/resource_providers/{provider["uuid"]}/traits'
        body = placement.get(url, version='1.6').json()
        body['traits'] = sorted({*body['traits'], *names})
        assert placement.put(url, body, version='1.6').status_code == 200
    return True


class _ImageAPI:
    """Stands in for Glance: one image."""

    def get(self, ctxt, image, **kwargs):
        return {
            'id': image,
            'name': 'image',
            'status': 'active',
            'container_format': 'raw',
            'disk_format': 'raw',
            'min_ram': 0,
            'min_disk': 0,
            'size': 1,
            'properties': {},
        }


def boot(ctxt, flavor, count):
    """Create servers, each in a request of its own.

    :param flavor: its ID
    :returns: for each its host, or the fault it ended in
    """
    api = compute_api.API(image_api=_ImageAPI())
    flavor = objects.Flavor.get_by_flavor_id(ctxt, flavor)
    servers = [
        server
        for _ in range(count)
        for server in _create(api, flavor, 1, scheduler_hints={})
    ]
    return [_landed(ctxt, server)[0] for server in servers]


def fill_groups(
    ctxt, policy, rule, requests, clients, hints=None, groups=1, churn=0
):
    """Create servers of some groups, several at the same time.

    :param policy: of the groups
    :param rule: their rule max_server_per_host, if the policy has one
    :param requests: the number of servers of each request for a group, in
        their order
    :param clients: number of threads that call nova's API code
    :param hints: scheduler hints besides the group
    :param groups: how many
    :param churn: how many servers of each group are then deleted, and
        created anew in a second burst, one by one
    :returns: for each group and server its host, or the fault it ended in;
        and how many servers nova-compute sent on
    """
    name = flavor(ctxt, uuidutils.generate_uuid(), 1, {}, 1)
    size = objects.Flavor.get_by_flavor_id(ctxt, name)
    created = [_create_group(ctxt, policy, rule) for _ in range(groups)]
    api = compute_api.API(image_api=_ImageAPI())
    sent_on = 0

    def boot(request):
        group, count = request
        made = _create(
            api,
            size,
            count,
            scheduler_hints={**(hints or {}), 'group': group},
            check_server_group_quota=True,
        )
        return group, made

    def burst(counts):
        nonlocal sent_on
        requests = [(group, count) for count in counts for group in created]
        with futures.ThreadPoolExecutor(clients) as pool:
            for group, made in pool.map(boot, requests):
                servers[group] += made
        for group in created:
            for server in servers[group]:
                if server not in landed[group]:
                    place, again = _landed(ctxt, server)
                    landed[group][server] = place
                    sent_on += again

    servers = {group: [] for group in created}
    landed = {group: {} for group in created}
    before = _used(ctxt)
    burst(requests)
    if churn:
        full = _used(ctxt)
        for group in created:
            for server in random.sample(servers[group], churn):
                _remove(ctxt, server)
                servers[group].remove(server)
                del landed[group][server]
        _wait_for_removal(ctxt, full - churn * groups)
        burst([1] * churn)
    for group in created:
        for server in servers[group]:
            _remove(ctxt, server)
    _wait_for_removal(ctxt, before)
    return [list(places.values()) for places in landed.values()], sent_on


def groups(ctxt, rule, count):
    """Create anti-affinity groups; return their UUIDs."""
    return [_create_group(ctxt, 'anti-affinity', rule) for _ in range(count)]


def start_members(ctxt, groups, count, hints):
    """Create servers of groups in turn, all requests at once.

    :param groups: UUIDs
    :param count: how many servers in all
    :param hints: scheduler hints besides the group
    :returns: the UUIDs of the servers; nobody waited for them
    """
    name = flavor(ctxt, uuidutils.generate_uuid(), 1, {}, 1)
    size = objects.Flavor.get_by_flavor_id(ctxt, name)
    api = compute_api.API(image_api=_ImageAPI())

    def boot(group):
        return _create(api, size, 1, scheduler_hints={**hints, 'group': group})

    wanted = itertools.islice(itertools.cycle(groups), count)
    with futures.ThreadPoolExecutor(count) as pool:
        return list(itertools.chain.from_iterable(pool.map(boot, wanted)))


def start_alone(ctxt, host, count, groups=()):
    """Create servers on a host, and wait for them.

    :param count: how many
    :param groups: UUIDs of server groups; each has one server of these
    :returns: the UUIDs of the servers
    """
    name = flavor(ctxt, uuidutils.generate_uuid(), 1, {}, 1)
    size = objects.Flavor.get_by_flavor_id(ctxt, name)
    api = compute_api.API(image_api=_ImageAPI())
    hints = [{'group': group} for group in groups]
    hints += [{}] * (count - len(hints))

    def boot(hint):
        return _create(api, size, 1, scheduler_hints=hint, forced_host=host)

    with futures.ThreadPoolExecutor(16) as pool:
        servers = list(itertools.chain.from_iterable(pool.map(boot, hints)))
    places = {*landed(ctxt, servers)}
    if places != {host}:
        raise RuntimeError(f'{host}: {places}')
    return servers


def evacuate(ctxt, servers, seconds=500):
    """Evacuate servers, all at once, and wait for the end of each.

    :param seconds: for how long
    :returns: for each the status of the migration (``done``; ``error`` where
        nova-scheduler refused it, ``failed`` where nova-compute did), and its
        host or the fault
    """
    api = compute_api.API(image_api=_ImageAPI())

    def begin(server):
        with _targeted(ctxt, server) as cell:
            instance = objects.Instance.get_by_uuid(cell, server)
            api.evacuate(cell, instance, None, None)

    with futures.ThreadPoolExecutor(len(servers)) as pool:
        list(pool.map(begin, servers))
    deadline = time.monotonic() + seconds
    return [_evacuated(ctxt, server, deadline) for server in servers]


def _evacuated(ctxt, server, deadline):
    while time.monotonic() < deadline:
        with _targeted(ctxt, server) as cell:
            [migration] = objects.MigrationList.get_by_filters(
                cell, {'instance_uuid': server}
            )
            instance = objects.Instance.get_by_uuid(cell, server)
            fault = objects.InstanceFault.get_latest_for_instance(cell, server)
        if migration.status == 'done' and instance.task_state is None:
            return 'done', instance.host
        # conductor and nova-compute save the status first, then the fault.
        if migration.status in ('error', 'failed') and fault:
            return migration.status, fault.message
        time.sleep(0.2)
    return 'timed out', None


def landed(ctxt, servers, seconds=120):
    """Return the host of each server, or the fault it ended in."""
    return [_landed(ctxt, server, seconds)[0] for server in servers]


def select(ctxt, server, in_group, hints, count, at_once):
    """Ask the schedulers for hosts, as conductor does; claim none for long.

    :param server: the UUID of one whose request is sent, for others
    :param in_group: whether with its server group
    :param hints: scheduler hints
    :param count: how many requests
    :param at_once: how many are under way at the same time, and then are
        members of the group that nova-compute has not claimed
    :returns: the seconds that they took
    """
    spec = objects.RequestSpec.get_by_instance_uuid(ctxt, server)
    spec.scheduler_hints = {**hints}
    # No ports, no devices.
    spec.requested_resources = []
    spec.request_level_params = objects.RequestLevelParams()
    if in_group:
        scheduler_utils.setup_instance_group(ctxt, spec)
    else:
        spec.instance_group = None
    scheduler = query.SchedulerQueryClient()
    placement = report.report_client_singleton()

    def ask(uuid):
        one = spec.obj_clone()
        one.instance_uuid = uuid
        if in_group:
            one.instance_group.members += new
        scheduler.select_destinations(
            ctxt, one, [uuid], return_objects=True, return_alternates=True
        )

    seconds = 0
    for _ in range(0, count, at_once):
        new = [uuidutils.generate_uuid() for _ in range(at_once)]
        with _to_be_built(ctxt, new):
            start = time.monotonic()
            with futures.ThreadPoolExecutor(at_once) as pool:
                list(pool.map(ask, new))
            seconds += time.monotonic() - start
            for uuid in new:
                placement.delete_allocation_for_instance(
                    ctxt, uuid, force=True
                )
    return seconds


@contextlib.contextmanager
def _to_be_built(ctxt, servers):
    """Write down servers as nova-api does before it calls conductor."""
    made = []
    for uuid in servers:
        mapping = objects.InstanceMapping(
            ctxt, instance_uuid=uuid, project_id='project'
        )
        mapping.queued_for_delete = False
        mapping.create()
        made.append(mapping)
        row = {'project_id': 'project', 'instance_uuid': uuid}
        objects.BuildRequest._create_in_db(ctxt, row)
    yield
    for mapping in made:
        objects.BuildRequest._destroy_in_db(ctxt, mapping.instance_uuid)
        mapping.destroy()


def remove(ctxt, servers):
    """Delete servers that have a host."""
    for server in servers:
        _remove(ctxt, server)
    return True


def wait_for_room(ctxt, used=0):
    """Wait until nova-computes count only so many VCPUs in use."""
    _wait_for_removal(ctxt, used)
    return used


def _create_group(ctxt, policy, rule):
    rules = {'max_server_per_host': rule} if policy == 'anti-affinity' else {}
    group = objects.InstanceGroup(
        ctxt,
        name='group',
        user_id=ctxt.user_id,
        project_id=ctxt.project_id,
        policy=policy,
        rules=rules,
    )
    group.create()
    return group.uuid


def stream(ctxt, flavors, pause):
    """Create a server of each flavor in turn, until the process is ended.

    :param flavors: IDs, in their order
    :param pause: seconds between two servers
    """
    api = compute_api.API(image_api=_ImageAPI())
    for name in itertools.cycle(flavors):
        try:
            flavor = objects.Flavor.get_by_flavor_id(ctxt, name)
            _create(api, flavor, 1, scheduler_hints={})
        except Exception as exc:
            # A service is away.
            print(f'{name}: {exc!r}', file=sys.stderr, flush=True)
        time.sleep(pause)


def limit_servers(ctxt, host, servers):
    """Let a host have room for so many servers of one VCPU; None: for all.

    nova-compute keeps the allocation ratios that placement and the database
    have, as if they had been its first ones.
    """
    placement = compute_api.AggregateAPI().placement_client
    url = f'/resource_providers?name={host}'
    (provider,) = placement.get(url).json()['resource_providers']
    url = f'/resource_providers/{provider["uuid"]}/inventories/VCPU'
    body = placement.get(url).json()
    # Rounded up: placement truncates the product.
    ratio = 4.0 if servers is None else (servers + 0.5) / body['total']
    body['allocation_ratio'] = ratio
    assert placement.put(url, body).status_code == 200
    with _cell_of(ctxt, host) as cell:
        (node,) = objects.ComputeNodeList.get_all_by_host(cell, host)
        node.cpu_allocation_ratio = ratio
        node.save()
    return servers


@contextlib.contextmanager
def _cell_of(ctxt, host):
    mapping = objects.HostMapping.get_by_host(ctxt, host)
    with context.target_cell(ctxt, mapping.cell_mapping) as cell:
        yield cell


@contextlib.contextmanager
def _targeted(ctxt, server):
    mapping = objects.InstanceMapping.get_by_instance_uuid(ctxt, server)
    with context.target_cell(ctxt, mapping.cell_mapping) as cell:
        yield cell


def force_down(ctxt, host, down):
    """Tell nova that a compute is down, or that it is not."""
    with _cell_of(ctxt, host) as cell:
        service = objects.Service.get_by_compute_host(cell, host)
        service.forced_down = down
        service.save()
    return down


def _create(api, flavor, count, **options):
    """Create servers in one request; return their UUIDs."""
    servers, _ = api.create(
        context.RequestContext(
            user_id='user', project_id='project', is_admin=True
        ),
        flavor,
        uuidutils.generate_uuid(),
        min_count=count,
        max_count=count,
        requested_networks=objects.NetworkRequestList(
            objects=[objects.NetworkRequest(network_id='none')]
        ),
        **options,
    )
    return [server.uuid for server in servers]


def _remove(ctxt, server):
    # nova-compute would ask neutron for the ports, fail, and keep the
    # allocation; some fills later the hosts were full.
    report.report_client_singleton().delete_allocation_for_instance(
        ctxt, server, force=True
    )
    with _targeted(ctxt, server) as cell:
        instance = objects.Instance.get_by_uuid(cell, server)
        instance.destroy()
    if instance.host:
        # As nova-compute does.
        scheduler_rpcapi.SchedulerAPI().delete_instance_info(
            ctxt, instance.host, server
        )


def _used(ctxt):
    # The VCPUs in use, as nova-scheduler reads them.
    used = 0
    for cell_mapping in objects.CellMappingList.get_all(ctxt):
        with context.target_cell(ctxt, cell_mapping) as cell:
            nodes = objects.ComputeNodeList.get_all(cell)
            used += sum(node.vcpus_used for node in nodes)
    return used


def _wait_for_removal(ctxt, before):
    deadline = time.monotonic() + 120
    while _used(ctxt) > before:
        if time.monotonic() > deadline:
            raise RuntimeError('nova-compute still counts removed servers')
        time.sleep(1)


def _landed(ctxt, server, seconds=120):
    # Where, and whether nova-compute sent it on before.
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        mapping = objects.InstanceMapping.get_by_instance_uuid(ctxt, server)
        if mapping.cell_mapping is not None:
            with context.target_cell(ctxt, mapping.cell_mapping) as cell:
                instance = objects.Instance.get_by_uuid(
                    cell, server, expected_attrs=[]
                )
                fault = objects.InstanceFault.get_latest_for_instance(
                    cell, server
                )
            if instance.vm_state == 'active':
                return instance.host, fault is not None
            # nova-conductor saves the state first, then the fault.
            if instance.vm_state == 'error' and fault is not None:
                return f'ERROR: {fault.message}', False
        time.sleep(0.2)
    return 'ERROR: timed out', False


def main():
    config.parse_args(['client', '--config-file', sys.argv[1]])
    objects.register_all()
    # As nova-api does at its start.
    compute_rpcapi.reset_globals()
    ctxt = context.RequestContext(
        user_id='user', project_id='project', is_admin=True
    )
    print(
        json.dumps(
            [
                globals()[name](ctxt, *arguments)
                for name, *arguments in json.load(sys.stdin)
            ]
        )
    )


if __name__ == '__main__':
    main()
