# SPDX-License-Identifier: Apache-2.0

"""Hosts that are rows in nova's databases, without a nova-compute.

The scheduler reads a host's records and asks placement; it sends no message to
the host. So a host that only has to be found costs a few rows: a service, a
compute node, a host mapping, and a provider with its inventory. What a
nova-compute does when a server starts or ends is done here, at the place where
nova would send it a message.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import typing

import fixtures
from nova import context as nova_context
from nova import objects
from nova.compute import power_state
from nova.compute import provider_tree
from nova.compute import vm_states
import nova.conf
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from nova.scheduler import utils as scheduler_utils
import os_traits
from oslo_utils import timeutils
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_ext_sched.cmd.simulate import compute_node
from nova_ext_sched.cmd.simulate import providers
from nova_ext_sched.cmd.simulate import scenario

CONF = nova.conf.CONF

#: A service that sends no heartbeat stays up as long, in seconds.
FOREVER = 2**30

# Of each host, whatever its hypervisor is able to do.
_TRAITS = frozenset({os_traits.COMPUTE_NODE, os_traits.OWNER_NOVA})
_DISABLED = os_traits.COMPUTE_STATUS_DISABLED
Body = dict[str, typing.Any]


class Rows(fixtures.Fixture):
    """Makes hosts and servers, and stands for their nova-compute.

    :ivar providers: the resource providers of the hosts
    :param cell: the nova CellMapping of all hosts
    :param placement: a client of placement
    :param host_manager: the scheduler's
    :param make_driver: returns a nova virt driver of a host
    """

    def __init__(
        self,
        cell: typing.Any,
        placement: typing.Any,
        host_manager: typing.Any,
        make_driver: Callable[[scenario.Host], typing.Any],
    ) -> None:
        self._context = nova_context.get_admin_context()
        self._cell = cell
        self._host_manager = host_manager
        self._make_driver = make_driver
        self.providers = providers.Providers(placement)
        self._inventories: dict[str, scenario.Inventories] = {}

    def _setUp(self) -> None:
        rpc = 'nova.compute.rpcapi.ComputeAPI'
        for name, method in (
            ('build_and_run_instance', self._build),
            ('terminate_instance', self._terminate),
        ):
            self.useFixture(fixtures.MonkeyPatch(f'{rpc}.{name}', method))

    def add_host(self, host: scenario.Host) -> set[str]:
        """Make a host; :meth:`report` tells placement what it has.

        :returns: the traits that its nova-compute would report
        :raises exception.ScenarioInvalid: placement does not take it
        """
        driver = self._make_driver(host)
        driver.init_host(host.name)
        tree = provider_tree.ProviderTree()
        uuid = uuidutils.generate_uuid()
        tree.new_root(host.name, uuid)
        driver.update_provider_tree(tree, host.name)
        reported = tree.data(uuid).inventory
        inventories = {
            name: _inventory(reported.get(name, {}), given)
            for name, given in host.inventories.items()
        } or reported
        resources = driver.get_available_resource(host.name)
        resources['uuid'] = uuid
        self._add_records(
            host,
            {
                **resources,
                **compute_node.derive(inventories, host.used),
                **host.compute_node,
            },
        )
        self.providers.add(host.name, uuid)
        self._inventories[host.name] = inventories
        able = driver.capabilities_as_traits()
        traits = {trait for trait in able if able[trait]} | _TRAITS
        return traits | ({_DISABLED} if host.state == 'disabled' else set())

    def report(self, hosts: Collection[scenario.Host]) -> None:
        """Tell placement what hosts have, and what is used of it.

        :raises exception.ScenarioInvalid: placement does not take it
        """
        self.providers.set_inventories(self._inventories)
        uses = {uuidutils.generate_uuid(): host for host in hosts}
        self.providers.allocate(
            {uuid: host.name for uuid, host in uses.items()},
            {uuid: host.used for uuid, host in uses.items()},
        )

    def _add_records(self, host: scenario.Host, resources: Body) -> None:
        with nova_context.target_cell(self._context, self._cell) as cctxt:
            service = objects.Service(
                cctxt,
                host=host.name,
                binary='nova-compute',
                topic='compute',
                report_count=1,
                last_seen_up=timeutils.utcnow(),
                disabled=host.state == 'disabled',
                forced_down=host.state == 'down',
            )
            service.create()
            node = objects.ComputeNode(
                cctxt,
                host=host.name,
                service_id=service.id,
                host_ip=CONF.my_ip,
                running_vms=0,
                current_workload=0,
                metrics='[]',
                mapped=1,
            )
            stats = {
                name: str(resources.pop(name)) for name in compute_node.STATS
            }
            node.stats = stats
            node.pci_device_pools = objects.PciDevicePoolList(objects=[])
            node.update_from_virt_driver(resources)
            for name in node.fields.keys() & resources.keys() - {'uuid'}:
                setattr(node, name, resources[name])
            node.create()
        objects.HostMapping(
            self._context, host=host.name, cell_mapping=self._cell
        ).create()
        # From now on the scheduler does not ask the database for the servers.
        for _ in range(2):
            self._host_manager.update_instance_info(
                self._context, host.name, objects.InstanceList(objects=[])
            )

    def add_servers(
        self,
        servers: Collection[scenario.Server],
        flavor_ids: Mapping[str, str],
        group_ids: Mapping[str, str],
    ) -> dict[str, str]:
        """Let servers stand on their hosts.

        :param flavor_ids: of nova-api, by the flavor's name
        :param group_ids: UUIDs, by the server group's name
        :returns: their UUIDs by name
        """
        flavors = {
            name: objects.Flavor.get_by_flavor_id(self._context, id_)
            for name, id_ in flavor_ids.items()
        }
        uuids: dict[str, str] = {}
        of_host: dict[str, list[typing.Any]] = {}
        of_group: dict[str, list[str]] = {}
        with nova_context.target_cell(self._context, self._cell) as cctxt:
            for server in servers:
                instance = _instance(cctxt, server, flavors[server.flavor])
                uuids[server.name] = instance.uuid
                of_host.setdefault(server.host, []).append(instance)
                if server.group is not None:
                    members = of_group.setdefault(server.group, [])
                    members.append(instance.uuid)
                objects.InstanceMapping(
                    self._context,
                    instance_uuid=instance.uuid,
                    cell_mapping=self._cell,
                    project_id=server.project,
                    user_id='admin',
                    queued_for_delete=False,
                ).create()
            for host, instances in of_host.items():
                self._claim(instances, host)
        for group, members in of_group.items():
            objects.InstanceGroup.add_members(
                self._context, group_ids[group], members
            )
        self.providers.allocate(
            {uuids[server.name]: server.host for server in servers},
            {
                instance.uuid: _uses(instance)
                for instances in of_host.values()
                for instance in instances
            },
        )
        return uuids

    def set_members(self, group: str, members: Collection[str]) -> None:
        """Let a server group have these members, in this order."""
        found = objects.InstanceGroup.get_by_uuid(self._context, group)
        objects.InstanceGroup.destroy_members_bulk(
            self._context, found.members
        )
        if members:
            objects.InstanceGroup.add_members(self._context, group, [*members])

    def put(self, uuid: str, host: str) -> None:
        """Put a server that stands nowhere on a host."""
        instance = self._read(uuid)
        self.providers.allocate({uuid: host}, {uuid: _uses(instance)})
        self._claim([instance], host)

    def take(self, uuid: str) -> None:
        """Take a server from its host, as if it had never been there."""
        instance = self._read(uuid)
        self._free(instance)
        instance.host = instance.node = instance.compute_id = None
        instance.save()

    def remove(self, uuid: str) -> None:
        """Let nova know a server no more, as if its owner had deleted it.

        nova-api does the same, at twice the cost.
        """
        mapping = objects.InstanceMapping.get_by_instance_uuid(
            self._context, uuid
        )
        with nova_context.target_cell(
            self._context, mapping.cell_mapping
        ) as cctxt:
            instance = objects.Instance.get_by_uuid(
                cctxt, uuid, expected_attrs=['flavor']
            )
            if instance.host:
                self._free(instance)
            instance.destroy()
        _forget(mapping)

    def is_busy(self, uuid: str) -> bool:
        """Return whether nova has not ended what it does to a server."""
        if _has_build_request(self._context, uuid):
            return True
        with nova_context.target_cell(self._context, self._cell) as cctxt:
            return _has_task(cctxt, uuid)

    def _read(self, uuid: str) -> typing.Any:
        context = self._context.elevated()
        nova_context.set_target_cell(context, self._cell)
        return objects.Instance.get_by_uuid(
            context, uuid, expected_attrs=['flavor']
        )

    def _build(
        self,
        api: typing.Any,
        ctxt: typing.Any,
        instance: typing.Any,
        host: str,
        *args: typing.Any,
        **kwargs: typing.Any,
    ) -> None:
        instance.vm_state = vm_states.ACTIVE
        instance.power_state = power_state.RUNNING
        instance.task_state = None
        instance.launched_at = timeutils.utcnow(with_timezone=True)
        self._claim([instance], host)

    def _terminate(
        self,
        api: typing.Any,
        ctxt: typing.Any,
        instance: typing.Any,
        bdms: typing.Any,
    ) -> None:
        self._free(instance)
        _forget(
            objects.InstanceMapping.get_by_instance_uuid(
                self._context, instance.uuid
            )
        )
        instance.destroy()

    def _claim(self, instances: Collection[typing.Any], host: str) -> None:
        """Let servers, of which nova may have no record yet, be on a host."""
        node = self._use(host, instances, 1)
        for instance in instances:
            instance.host = instance.node = instance.launched_on = host
            instance.compute_id = node
            if 'id' in instance:
                instance.save()
            else:
                instance.create()
            self._host_manager.update_instance_info(
                self._context, host, objects.InstanceList(objects=[instance])
            )

    def _free(self, instance: typing.Any) -> None:
        """Free what a server uses of its host."""
        self.providers.release(instance.uuid)
        self._host_manager.delete_instance_info(
            self._context, instance.host, instance.uuid
        )
        self._use(instance.host, [instance], -1)

    def _use(
        self, host: str, instances: Collection[typing.Any], sign: int
    ) -> int:
        """Add to a compute node, or take from it, what servers use.

        :returns: its ID
        """
        with nova_context.target_cell(self._context, self._cell) as cctxt:
            node = objects.ComputeNode.get_by_host_and_nodename(
                cctxt, host, host
            )
            for instance in instances:
                _change(node, _uses(instance), sign)
            node.save()
            return int(node.id)

    def add_to_aggregates(
        self, members: Mapping[int, Collection[str]]
    ) -> None:
        """Put hosts into aggregates that exist.

        :param members: the hosts of each aggregate by its ID
        """
        of_host: dict[str, list[str]] = {}
        aggregates = []
        for aggregate_id, hosts in members.items():
            _add_hosts(self._context, aggregate_id, hosts)
            aggregate = objects.Aggregate.get_by_id(
                self._context, aggregate_id
            )
            aggregates.append(aggregate)
            for host in hosts:
                of_host.setdefault(host, []).append(aggregate.uuid)
        self.providers.set_aggregates(of_host)
        self._host_manager.update_aggregates(aggregates)


def _instance(
    cctxt: typing.Any, server: scenario.Server, flavor: typing.Any
) -> typing.Any:
    """Return a nova Instance that nova has no record of yet."""
    return objects.Instance(
        cctxt,
        uuid=uuidutils.generate_uuid(),
        display_name=server.name,
        project_id=server.project,
        user_id='admin',
        vm_state=vm_states.ACTIVE,
        power_state=power_state.RUNNING,
        # nova takes a server without an image for one on a volume.
        image_ref='' if server.volume else uuidutils.generate_uuid(),
        flavor=flavor,
        old_flavor=None,
        new_flavor=None,
        memory_mb=flavor.memory_mb,
        vcpus=flavor.vcpus,
        root_gb=flavor.root_gb,
        ephemeral_gb=flavor.ephemeral_gb,
        system_metadata={},
    )


def _uses(instance: typing.Any) -> dict[str, int]:
    """Return what placement lets a server use, by resource class."""
    found: dict[str, int] = scheduler_utils.resources_from_flavor(
        instance, instance.flavor
    )
    return found


def _change(node: typing.Any, used: Mapping[str, int], sign: int) -> None:
    """Let a compute node's record have a server more or less."""
    for field, amount in compute_node.change(used).items():
        if (value := getattr(node, field)) is not None:
            setattr(node, field, value + sign * amount)
    number = int(node.stats.get('num_instances', 0)) + sign
    node.stats = {**node.stats, 'num_instances': str(number)}


def _forget(mapping: typing.Any) -> None:
    mapping.queued_for_delete = True
    mapping.save()


@api_db.context_manager.reader
def _has_build_request(context: typing.Any, uuid: str) -> bool:
    requests = api_models.BuildRequest
    query = sa.select(requests.id).where(requests.instance_uuid == uuid)
    return context.session.scalar(query) is not None


@main_db.pick_context_manager_reader
def _has_task(context: typing.Any, uuid: str) -> bool:
    instances = main_models.Instance
    query = sa.select(instances.id).where(
        instances.uuid == uuid,
        instances.deleted == 0,
        sa.or_(
            instances.task_state.is_not(None),
            instances.vm_state == vm_states.BUILDING,
        ),
    )
    return context.session.scalar(query) is not None


@api_db.context_manager.writer
def _add_hosts(
    context: typing.Any, aggregate: int, hosts: Collection[str]
) -> None:
    context.session.add_all(
        api_models.AggregateHost(aggregate_id=aggregate, host=host)
        for host in hosts
    )


def _inventory(reported: Body, given: Body) -> Body:
    """Return an inventory, with what nova-compute reports where it is open."""
    total = given.get('total', reported.get('total', 1))
    least = {'max_unit': total} if 'total' in given else {}
    return {'total': total, **reported, **least, **given}
