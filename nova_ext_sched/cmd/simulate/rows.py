# SPDX-License-Identifier: Apache-2.0

"""Hosts that are rows in nova's databases, without a nova-compute.

The scheduler reads a host's records and asks placement; it sends no message to
the host. So a host that only has to be found costs a few rows: a service, a
compute node, a host mapping, and a provider with its inventory. What a
nova-compute does when a server starts or ends is done here, at the place where
nova would send it a message.
"""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import typing

import fixtures
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.compute import power_state
from nova.compute import provider_tree
from nova.compute import vm_states
from nova.conductor import manager
import nova.conf
from nova.scheduler import utils as scheduler_utils
from nova.virt import fake
import os_traits
from oslo_utils import timeutils
from oslo_utils import uuidutils

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


class Driver(fake.FakeDriver):
    """nova's fake driver with the capacity of a host.

    nova starts a compute service with ``CONF.host`` set to its host.
    """

    def __init__(self, virtapi: typing.Any, host: scenario.Host) -> None:
        self.vcpus, self.memory_mb = host.vcpus, host.memory_mb
        self.local_gb = host.disk_gb
        super().__init__(virtapi)


class Rows(fixtures.Fixture):
    """Makes hosts and servers, and stands for their nova-compute.

    When nova-api answers that it makes or deletes a server, it is done.

    :param cell: the nova CellMapping of all hosts
    :param providers_: the resource providers of the hosts
    :param host_manager: the scheduler's
    """

    def __init__(
        self,
        cell: typing.Any,
        providers_: providers.Providers,
        host_manager: typing.Any,
    ) -> None:
        self._context = nova_context.get_admin_context()
        nova_context.set_target_cell(self._context, cell)
        self._cell = cell
        self._host_manager = host_manager
        self._providers = providers_
        self._tasks = manager.ComputeTaskManager()

    def _setUp(self) -> None:
        compute = 'nova.compute.rpcapi.ComputeAPI'
        conductor = 'nova.conductor.rpcapi.ComputeTaskAPI'
        for name, method in (
            (f'{compute}.build_and_run_instance', self._build),
            (f'{compute}.terminate_instance', self._terminate),
            (f'{conductor}.schedule_and_build_instances', self._schedule),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, method))

    def add_host(self, host: scenario.Host) -> set[str]:
        """Make a host.

        :returns: its traits, with those that its nova-compute would report
        :raises exception.ScenarioInvalid: placement does not take it
        """
        driver = Driver(None, host)
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
        self._providers.add(host.name, uuid, inventories)
        self._add_records(
            host,
            {
                **driver.get_available_resource(host.name),
                'uuid': uuid,
                **compute_node.derive(inventories, host.used),
                **host.compute_node,
            },
        )
        # A list with one that nova-compute reports has all of them.
        if any(name.startswith('COMPUTE_') for name in host.traits):
            return {*host.traits}
        able = driver.capabilities_as_traits()
        traits = {trait for trait in able if able[trait]} | _TRAITS
        disabled = {_DISABLED} if host.state == 'disabled' else set()
        return {*host.traits} | traits | disabled

    def _add_records(self, host: scenario.Host, resources: Body) -> None:
        service = objects.Service(
            self._context,
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
            self._context,
            host=host.name,
            service_id=service.id,
            host_ip=CONF.my_ip,
            running_vms=0,
            current_workload=0,
            metrics='[]',
            mapped=1,
            stats={
                name: str(resources.pop(name)) for name in compute_node.STATS
            },
            pci_device_pools=objects.PciDevicePoolList(objects=[]),
        )
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
        group_ids: Mapping[str, str],
    ) -> dict[str, str]:
        """Let servers stand on their hosts.

        :param group_ids: UUIDs, by the server group's name
        :returns: their UUIDs by name
        """
        flavors = {
            name: objects.Flavor.get_by_name(self._context, name)
            for name in {server.flavor for server in servers}
        }
        made = []
        for server in servers:
            flavor = flavors[server.flavor]
            instance = objects.Instance(
                self._context,
                uuid=uuidutils.generate_uuid(),
                display_name=server.name,
                project_id=server.project,
                user_id='admin',
                vm_state=vm_states.ACTIVE,
                power_state=power_state.RUNNING,
                # nova takes a server without an image for one on a volume.
                image_ref='' if server.volume else uuidutils.generate_uuid(),
                flavor=flavor,
                memory_mb=flavor.memory_mb,
                vcpus=flavor.vcpus,
                root_gb=flavor.root_gb,
                ephemeral_gb=flavor.ephemeral_gb,
            )
            instance.create()
            made.append((instance, server.host))
            objects.InstanceMapping(
                self._context,
                instance_uuid=instance.uuid,
                cell_mapping=self._cell,
                project_id=server.project,
                user_id='admin',
                queued_for_delete=False,
            ).create()
            if server.group is not None:
                objects.InstanceGroup.add_members(
                    self._context, group_ids[server.group], [instance.uuid]
                )
        self._put(made)
        return {instance.display_name: instance.uuid for instance, _ in made}

    @contextlib.contextmanager
    def without(self, uuids: Collection[str]) -> Iterator[None]:
        """Take servers away as if they had never been, and put them back."""
        away = []
        groups = {}
        for uuid in uuids:
            instance = objects.Instance.get_by_uuid(
                self._context, uuid, expected_attrs=['flavor']
            )
            away.append((instance, instance.host))
            with contextlib.suppress(exception.InstanceGroupNotFound):
                group = objects.InstanceGroup.get_by_instance_uuid(
                    self._context, uuid
                )
                groups[group.uuid] = group
            self._free(instance)
            instance.host = instance.node = instance.compute_id = None
            instance.save()
        objects.InstanceGroup.destroy_members_bulk(self._context, uuids)
        yield
        self._put(away)
        for group in groups.values():
            # In the order in which they joined.
            members = [*group.members]
            group.refresh()
            group.destroy_members_bulk(self._context, group.members)
            group.add_members(self._context, group.uuid, members)

    def _schedule(
        self, api: typing.Any, *args: typing.Any, **kwargs: typing.Any
    ) -> None:
        # Otherwise the steps would have to ask again and again.
        self._tasks.schedule_and_build_instances(*args, **kwargs)

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
        self._claim(instance, host)

    def _terminate(
        self,
        api: typing.Any,
        ctxt: typing.Any,
        instance: typing.Any,
        bdms: typing.Any,
    ) -> None:
        self._free(instance)
        mapping = objects.InstanceMapping.get_by_instance_uuid(
            self._context, instance.uuid
        )
        mapping.queued_for_delete = True
        mapping.save()
        instance.destroy()

    def _put(self, hosts: Collection[tuple[typing.Any, str]]) -> None:
        """Let servers be on hosts."""
        self._providers.allocate(
            {
                instance.uuid: (host, _uses(instance))
                for instance, host in hosts
            }
        )
        for instance, host in hosts:
            self._claim(instance, host)

    def _claim(self, instance: typing.Any, host: str) -> None:
        instance.compute_id = self._use(host, instance, 1)
        instance.host = instance.node = instance.launched_on = host
        instance.save()
        self._host_manager.update_instance_info(
            self._context, host, objects.InstanceList(objects=[instance])
        )

    def _free(self, instance: typing.Any) -> None:
        """Free what a server uses of its host."""
        self._providers.release(instance.uuid)
        self._host_manager.delete_instance_info(
            self._context, instance.host, instance.uuid
        )
        self._use(instance.host, instance, -1)

    def _use(self, host: str, instance: typing.Any, sign: int) -> int:
        """Add to a compute node, or take from it, what a server uses.

        :returns: its ID
        """
        node = objects.ComputeNode.get_by_host_and_nodename(
            self._context, host, host
        )
        _change(node, _uses(instance), sign)
        node.save()
        return int(node.id)


def _uses(instance: typing.Any) -> typing.Any:
    """Return what placement lets a server use, by resource class."""
    return scheduler_utils.resources_from_flavor(instance, instance.flavor)


def _change(node: typing.Any, used: Mapping[str, int], sign: int) -> None:
    """Let a compute node's record have a server more or less."""
    for field, amount in compute_node.change(used).items():
        if (value := getattr(node, field)) is not None:
            setattr(node, field, value + sign * amount)
    number = int(node.stats.get('num_instances', 0)) + sign
    node.stats = {**node.stats, 'num_instances': str(number)}


def _inventory(reported: Body, given: Body) -> Body:
    """Return an inventory, with what nova-compute reports where it is open."""
    total = given.get('total', reported.get('total', 1))
    least = {'max_unit': total} if 'total' in given else {}
    return {'total': total, **reported, **least, **given}
