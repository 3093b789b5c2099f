# SPDX-License-Identifier: Apache-2.0

"""The request spec of an operation on a server that exists.

nova stores the request of every server, of one that never landed too.
nova-api and nova-conductor change it for each operation; here the same
functions of nova do, and where nova writes in between (a migration, an
action's event) its steps are followed without that. nova.compute.api,
nova.conductor.manager, nova.conductor.tasks.
"""

from collections.abc import Iterator
import contextlib
import datetime
import types
import typing

from nova import exception as nova_exception
from nova import objects
from nova.compute import api as compute_api
from nova.compute import utils as compute_utils
from nova.compute import vm_states
from nova.conductor import manager
from nova.conductor.tasks import live_migrate
from nova.conductor.tasks import migrate
from nova.network import neutron
from nova.pci import request as pci_request
from nova.scheduler import utils
from nova.scheduler.client import report
from nova.virt import hardware

from nova_ext_sched import fields
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.dryrun.decision import build
from nova_ext_sched.dryrun.decision import question
from nova_ext_sched.dryrun.decision import request

#: What operations look at; nova would load one after the other.
ATTRS = (
    'flavor',
    'info_cache',
    'numa_topology',
    'pci_devices',
    'pci_requests',
    'system_metadata',
)


class Server:
    """A server, its request, and what an operation makes of that.

    The methods are nova's operations: each changes :attr:`spec_obj` as nova
    does before it asks the scheduler.

    :param cloud: what nova-scheduler has in memory
    :param ctxt: a nova RequestContext, which gets the server's project
    :param uuid: of the server
    :param spec_obj: its stored RequestSpec, where that was read before
    :param known: what else nova has of it, where that was read before
    :ivar spec_obj: nova's RequestSpec
    :ivar name: of the server; empty where no cell has it yet
    :ivar never_ran: whether nova gave it up before it ran
    :ivar building_since: when it was created (UTC), while nova has noted no
        end of that: it has status BUILD; else None
    :raises question.InvalidQuestion: nova has no request of it
    """

    def __init__(
        self,
        cloud: snapshot.Snapshot,
        ctxt: typing.Any,
        uuid: str,
        spec_obj: typing.Any = None,
        known: servers.Stored | None = None,
    ) -> None:
        self._cloud = cloud
        self._ctxt = ctxt
        self.uuid = uuid
        try:
            self.spec_obj = (
                spec_obj
                or objects.RequestSpec.get_by_instance_uuid(ctxt, uuid)
            )
            self._cell = (
                cloud.cells[known.cell]
                if known
                else objects.InstanceMapping.get_by_instance_uuid(
                    ctxt, uuid
                ).cell_mapping
            )
        except (
            nova_exception.RequestSpecNotFound,
            nova_exception.InstanceMappingNotFound,
        ) as exc:
            raise question.InvalidQuestion(
                where='--server',
                expected='the UUID of an existing server',
                got=uuid,
            ) from exc
        ctxt.project_id = self.spec_obj.project_id
        # nova stores with how many others it was created.
        self.spec_obj.num_instances = 1
        self.spec_obj.requested_resources = []
        self._instance: typing.Any = known.instance if known else None
        self.name = ''
        self.never_ran = False
        self.building_since: datetime.datetime | None = None
        if self._cell is None:
            # What stands for a server until conductor has created it.
            with contextlib.suppress(nova_exception.BuildRequestNotFound):
                found = objects.BuildRequest.get_by_instance_uuid(ctxt, uuid)
                self.name = found.instance.display_name or ''
                self.building_since = found.created_at
            return
        with self.read(on_host=False) as (cctxt, instance):
            self.name = instance.display_name or ''
            if instance.vm_state == vm_states.BUILDING and not instance.host:
                self.building_since = instance.created_at
            self.never_ran = (
                instance.vm_state == vm_states.ERROR
                and instance.launched_at is None
            )
            # Else nova works it out and saves it.
            if 'is_bfv' not in self.spec_obj:
                self.spec_obj.is_bfv = compute_utils.is_volume_backed_instance(
                    cctxt, instance
                )

    def read_build(self) -> build.Build | None:
        """Return how its build ended, if it is in ERROR and never ran."""
        if not self.never_ran:
            return None
        with self._cloud.target_cell(self._ctxt, self._cell) as cctxt:
            return build.read(cctxt, self.uuid)

    def boot(self) -> None:
        """Schedule it as nova would do now."""
        if self._cell is not None:
            with self.read(on_host=False) as (cctxt, instance):
                self._collect_resources(cctxt, instance)
                self.spec_obj.ensure_network_information(instance)
        utils.setup_instance_group(self._ctxt, self.spec_obj)

    def migrate(
        self, destination: typing.Any = None, flavor: typing.Any = None
    ) -> None:
        """Migrate it cold, or resize it.

        :param destination: nova Destination of one host
        :param flavor: the new nova Flavor; by default the one it has
        """
        with self.read(destination) as (cctxt, instance):
            same_flavor = flavor is None or flavor.id == instance.flavor.id
            spec_obj = self.spec_obj
            stays = compute_api.API._allow_resize_to_same_host(
                types.SimpleNamespace(
                    placementclient=report.report_client_singleton()
                ),
                same_flavor,
                instance,
            )
            spec_obj.ignore_hosts = [] if stays else [instance.host]
            if not same_flavor:
                spec_obj.numa_topology = hardware.numa_get_constraints(
                    flavor, instance.image_meta
                )
                new = pci_request.get_pci_requests_from_flavor(flavor)
                new.instance_uuid = instance.uuid
                new.requests += [
                    one
                    for one in spec_obj.pci_requests.requests or []
                    if one.source == objects.InstancePCIRequest.NEUTRON_PORT
                ]
                spec_obj.pci_requests = new
            spec_obj.flavor = instance.flavor if same_flavor else flavor
            task = _MigrationTask(
                cctxt,
                instance,
                spec_obj.flavor,
                spec_obj,
                clean_shutdown=True,
                compute_rpcapi=None,
                query_client=None,
                report_client=None,
                host_list=None,
                network_api=_network_api(instance),
            )
            with contextlib.suppress(_Prepared):
                task._execute()

    resize = migrate

    def live_migrate(self, destination: typing.Any = None) -> None:
        """Migrate it while it runs."""
        with self.read(destination) as (cctxt, instance):
            task = live_migrate.LiveMigrationTask(
                cctxt,
                instance,
                destination=None,
                block_migration=None,
                disk_over_commit=None,
                migration=None,
                compute_rpcapi=None,
                servicegroup_api=None,
                query_client=None,
                report_client=None,
                request_spec=self.spec_obj,
            )
            task.network_api = _network_api(instance)
            task._get_request_spec_for_select_destinations()
            self.spec_obj.ignore_hosts = [instance.host]

    def evacuate(self, destination: typing.Any = None) -> None:
        """Build it anew elsewhere; its host is down."""
        with self.read(destination) as (cctxt, instance):
            self.spec_obj.ignore_hosts = [instance.host]
            self._leave_host(cctxt, instance)

    def unshelve(self, destination: typing.Any = None) -> None:
        """Unshelve it after an offload."""
        with self.read(destination, on_host=False) as (cctxt, instance):
            self._leave_host(cctxt, instance)

    def rebuild(self, image: dict[str, typing.Any]) -> None:
        """Rebuild it with another image.

        :param image: of nova.image.glance's form
        :raises nova.exception.NoValidHost: conductor would refuse the image's
            traits without asking the scheduler
        """
        spec_obj = self.spec_obj
        with self.read() as (cctxt, instance):
            spec_obj.image = objects.ImageMeta.from_dict(image)
            if 'scheduler_hints' not in spec_obj:
                spec_obj.scheduler_hints = {}
            del spec_obj.id
            spec_obj.scheduler_hints[fields.CHECK_TYPE] = ['rebuild']
            spec_obj.force_hosts = [instance.host]
            spec_obj.force_nodes = [instance.node]
            manager.ComputeTaskManager._validate_image_traits_for_rebuild(
                types.SimpleNamespace(
                    image_api=types.SimpleNamespace(
                        get=lambda *_, **__: image
                    ),
                    report_client=self._cloud.placement,
                ),
                cctxt,
                instance,
                image.get('id', self.uuid),
            )
            self._stay_in_cell(cctxt, instance)

    @property
    def node(self) -> str | None:
        """UUID of the compute node where it is; None where it has none."""
        one = self._instance
        if one is None or not one.host:
            return None
        return self._cloud.find_node(one.host, one.node)

    @property
    def cell(self) -> str:
        """UUID of its cell; empty where none has it yet."""
        return str(self._cell.uuid) if self._cell else ''

    @contextlib.contextmanager
    def read(
        self, destination: typing.Any = None, on_host: bool = True
    ) -> Iterator[tuple[typing.Any, typing.Any]]:
        """Yield a context of the server's cell and the nova Instance.

        :param destination: goes into the request, where there is one
        :param on_host: it must be on a host
        """
        if self._cell is None:
            raise question.InvalidQuestion(
                where='--operation',
                expected='boot for a server that is not in a cell yet',
                got=self.uuid,
            )
        if destination:
            self.spec_obj.requested_destination = destination
        with self._cloud.target_cell(self._ctxt, self._cell) as cctxt:
            if self._instance is None:
                self._instance = objects.Instance.get_by_uuid(
                    cctxt, self.uuid, expected_attrs=ATTRS
                )
            instance = self._instance
            if on_host and not instance.host:
                raise question.InvalidQuestion(
                    where='--operation',
                    expected='boot or unshelve for a server that is on no '
                    'host',
                    got=self.uuid,
                )
            yield cctxt, instance

    def _leave_host(self, cctxt: typing.Any, instance: typing.Any) -> None:
        self.spec_obj.reset_forced_destinations()
        self._collect_resources(cctxt, instance)
        self._stay_in_cell(cctxt, instance)

    def _stay_in_cell(self, cctxt: typing.Any, instance: typing.Any) -> None:
        manager.ComputeTaskManager._restrict_request_spec_to_cell(
            cctxt, instance, self.spec_obj
        )
        self.spec_obj.ensure_project_and_user_id(instance)
        self.spec_obj.ensure_network_information(instance)
        utils.setup_instance_group(cctxt, self.spec_obj)

    def _collect_resources(
        self, cctxt: typing.Any, instance: typing.Any
    ) -> None:
        """Ask for what stands outside the flavor, as conductor does."""
        spec_obj = self.spec_obj
        spec_obj.requested_resources, spec_obj.request_level_params = (
            _network_api(instance).get_requested_resource_for_instance(
                cctxt, instance.uuid
            )
        )
        request.add_device_profile(cctxt, spec_obj)
        spec_obj.generate_request_groups_from_pci_requests()


class _Prepared(Exception):
    """Conductor is about to ask the scheduler."""


class _MigrationTask(migrate.MigrationTask):
    """nova's, up to where it asks the scheduler, and without its writes."""

    def _preallocate_migration(self) -> None:
        pass

    def _schedule(self) -> typing.NoReturn:
        raise _Prepared


def _network_api(instance: typing.Any) -> typing.Any:
    # Neutron's credentials may not be in the scheduler's nova.conf; a server
    # without ports needs none.
    if instance.info_cache and instance.info_cache.network_info:
        return neutron.API()
    return types.SimpleNamespace(
        get_requested_resource_for_instance=lambda *_: (
            [],
            objects.RequestLevelParams(),
        )
    )
