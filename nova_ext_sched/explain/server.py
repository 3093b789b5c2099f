# SPDX-License-Identifier: Apache-2.0

"""The request spec of an operation on a server that exists.

nova stores the request of every server, of one that never landed too.
nova-api and nova-conductor change it for each operation; here the same
functions of nova do, and where nova writes in between (a migration, an
action's event) its steps are followed without that. nova.compute.api,
nova.conductor.manager, nova.conductor.tasks.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import types
import typing

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.accelerator import cyborg
from nova.compute import api as compute_api
from nova.compute import utils as compute_utils
from nova.conductor import manager
from nova.conductor.tasks import live_migrate
from nova.conductor.tasks import migrate
from nova.network import neutron
from nova.pci import request as pci_request
from nova.scheduler import utils
from nova.scheduler.client import report
from nova.virt import hardware

from nova_ext_sched import exception

# What conductor reads of an instance.
_FIELDS = [
    'flavor',
    'info_cache',
    'metadata',
    'numa_topology',
    'pci_requests',
    'system_metadata',
]


class Server:
    """A server, its request, and what an operation makes of that.

    :param ctxt: a nova RequestContext
    :param uuid: of the server
    :raises exception.InvalidValue: nova has no request of it
    """

    def __init__(self, ctxt: typing.Any, uuid: str) -> None:
        self._ctxt = ctxt
        self.uuid = uuid
        try:
            #: nova's RequestSpec.
            self.spec_obj = objects.RequestSpec.get_by_instance_uuid(
                ctxt, uuid
            )
            mapping = objects.InstanceMapping.get_by_instance_uuid(ctxt, uuid)
        except (
            nova_exception.RequestSpecNotFound,
            nova_exception.InstanceMappingNotFound,
        ) as exc:
            raise exception.InvalidValue(
                where='--server', expected='the UUID of a server', got=uuid
            ) from exc
        self._cell = mapping.cell_mapping
        # Else nova works it out and saves it.
        if 'is_bfv' not in self.spec_obj:
            with self._instance() as (cctxt, instance):
                self.spec_obj.is_bfv = compute_utils.is_volume_backed_instance(
                    cctxt, instance
                )

    @contextlib.contextmanager
    def _instance(self) -> Iterator[tuple[typing.Any, typing.Any]]:
        """Yield a context of the server's cell and the nova Instance."""
        if self._cell is None:
            raise exception.InvalidValue(
                where='--operation',
                expected='boot for a server that is not in a cell yet',
                got=self.uuid,
            )
        with nova_context.target_cell(self._ctxt, self._cell) as cctxt:
            yield (
                cctxt,
                objects.Instance.get_by_uuid(
                    cctxt, self.uuid, expected_attrs=_FIELDS
                ),
            )

    def boot(self) -> typing.Any:
        """Return the request as nova would schedule it now, alone."""
        spec_obj = self.spec_obj
        spec_obj.num_instances = 1
        if self._cell is not None:
            with self._instance() as (cctxt, instance):
                _collect_resources(cctxt, spec_obj, instance)
                spec_obj.ensure_network_information(instance)
        utils.setup_instance_group(self._ctxt, spec_obj)
        return spec_obj

    def migrate(
        self, flavor: typing.Any = None, destination: typing.Any = None
    ) -> typing.Any:
        """Return the request of a cold migration, or of a resize.

        :param flavor: the new nova Flavor; by default the one it has
        :param destination: nova Destination of one host
        """
        with self._instance() as (cctxt, instance):
            self._require_host(instance)
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
                spec_obj.pci_requests = _pci_requests(
                    flavor, instance, spec_obj
                )
            spec_obj.requested_destination = (
                destination or objects.Destination()
            )
            task = _MigrationTask(
                cctxt,
                instance,
                instance.flavor if same_flavor else flavor,
                spec_obj,
                clean_shutdown=True,
                compute_rpcapi=None,
                query_client=None,
                report_client=None,
                host_list=None,
                network_api=_network_api(instance),
            )
            spec_obj.flavor = task.flavor
            with contextlib.suppress(_Prepared):
                task._execute()
            return task.request_spec

    def live_migrate(self, destination: typing.Any = None) -> typing.Any:
        """Return the request of a live migration."""
        with self._instance() as (cctxt, instance):
            self._require_host(instance)
            if destination:
                self.spec_obj.requested_destination = destination
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
            spec_obj = task._get_request_spec_for_select_destinations()
            spec_obj.ignore_hosts = [instance.host]
            return spec_obj

    def evacuate(self, destination: typing.Any = None) -> typing.Any:
        """Return the request of an evacuation."""
        with self._instance() as (cctxt, instance):
            self._require_host(instance)
            if destination:
                self.spec_obj.requested_destination = destination
            self.spec_obj.ignore_hosts = [instance.host]
            self.spec_obj.reset_forced_destinations()
            _collect_resources(cctxt, self.spec_obj, instance)
            return self._schedule_within_cell(cctxt, instance)

    def unshelve(self, destination: typing.Any = None) -> typing.Any:
        """Return the request of an unshelving after an offload."""
        with self._instance() as (cctxt, instance):
            if destination:
                self.spec_obj.requested_destination = destination
            self.spec_obj.reset_forced_destinations()
            _collect_resources(cctxt, self.spec_obj, instance)
            return self._schedule_within_cell(cctxt, instance)

    def rebuild(
        self, image: dict[str, typing.Any], client: typing.Any
    ) -> typing.Any:
        """Return the request of a rebuild with another image.

        :param image: of nova.image.glance's form
        :param client: nova's SchedulerReportClient
        :raises nova.exception.NoValidHost: conductor would refuse the image's
            traits without asking the scheduler
        """
        spec_obj = self.spec_obj
        with self._instance() as (cctxt, instance):
            self._require_host(instance)
            spec_obj.image = objects.ImageMeta.from_dict(image)
            if 'scheduler_hints' not in spec_obj:
                spec_obj.scheduler_hints = {}
            spec_obj.scheduler_hints['_nova_check_type'] = ['rebuild']
            spec_obj.force_hosts = [instance.host]
            spec_obj.force_nodes = [instance.node]
            manager.ComputeTaskManager._validate_image_traits_for_rebuild(
                types.SimpleNamespace(
                    image_api=types.SimpleNamespace(
                        get=lambda *_, **__: image
                    ),
                    report_client=client,
                ),
                cctxt,
                instance,
                image.get('id', self.uuid),
            )
            return self._schedule_within_cell(cctxt, instance)

    def _schedule_within_cell(
        self, cctxt: typing.Any, instance: typing.Any
    ) -> typing.Any:
        spec_obj = self.spec_obj
        manager.ComputeTaskManager._restrict_request_spec_to_cell(
            cctxt, instance, spec_obj
        )
        spec_obj.ensure_project_and_user_id(instance)
        spec_obj.ensure_network_information(instance)
        utils.setup_instance_group(cctxt, spec_obj)
        return spec_obj

    def _require_host(self, instance: typing.Any) -> None:
        if not instance.host:
            raise exception.InvalidValue(
                where='--operation',
                expected='boot or unshelve for a server that is on no host',
                got=self.uuid,
            )


class _Prepared(Exception):
    """Conductor is about to ask the scheduler."""


class _MigrationTask(migrate.MigrationTask):
    """nova's, up to where it asks the scheduler, and without its writes."""

    def _preallocate_migration(self) -> None:
        pass

    def _schedule(self) -> typing.NoReturn:
        raise _Prepared


class _NoPorts:
    def get_requested_resource_for_instance(
        self, context: typing.Any, instance_uuid: str
    ) -> tuple[list[typing.Any], typing.Any]:
        return [], objects.RequestLevelParams()


def _network_api(instance: typing.Any) -> typing.Any:
    # Neutron's credentials may not be in the scheduler's nova.conf; a server
    # without ports needs none.
    if instance.info_cache and instance.info_cache.network_info:
        return neutron.API()
    return _NoPorts()


def _collect_resources(
    cctxt: typing.Any, spec_obj: typing.Any, instance: typing.Any
) -> None:
    """Ask for what stands outside the flavor, as conductor does."""
    get: Callable[..., typing.Any] = _network_api(
        instance
    ).get_requested_resource_for_instance
    spec_obj.requested_resources, spec_obj.request_level_params = get(
        cctxt, instance.uuid
    )
    profile = spec_obj.flavor.extra_specs.get('accel:device_profile')
    if profile:
        spec_obj.requested_resources += (
            cyborg.get_device_profile_request_groups(cctxt, profile)
        )
    spec_obj.generate_request_groups_from_pci_requests()


def _pci_requests(
    flavor: typing.Any, instance: typing.Any, spec_obj: typing.Any
) -> typing.Any:
    found = pci_request.get_pci_requests_from_flavor(flavor)
    found.instance_uuid = instance.uuid
    found.requests += [
        one
        for one in spec_obj.pci_requests.requests or []
        if one.source == objects.InstancePCIRequest.NEUTRON_PORT
    ]
    return found
