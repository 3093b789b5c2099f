# SPDX-License-Identifier: Apache-2.0

"""Builds the request spec of an operation on an existing server.

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

from nova import objects
from nova.compute import api as compute_api
from nova.compute import utils as compute_utils
from nova.compute import vm_states
from nova.conductor import manager
from nova.conductor.tasks import live_migrate
from nova.conductor.tasks import migrate
import nova.conf
from nova.network import neutron
from nova.objects import request_spec
from nova.pci import request as pci_request
from nova.scheduler import utils
from nova.scheduler.client import report
from nova.virt import hardware

from nova_ext_sched import fields
from nova_ext_sched import messages
from nova_ext_sched import request_state
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.decision import build
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.policy import failover
from nova_ext_sched.queries import reservation
from nova_ext_sched.queries import running_image

CONF = nova.conf.CONF


class Server:
    """A server, and its request for an operation.

    The methods are nova's operations: each changes :attr:`spec_obj` as nova
    does before it asks the scheduler.

    :param reader: reads servers
    :param uuid: UUID of the server
    :param stored: its stored rows, if they were read before
    :param spec_obj: its RequestSpec, if it was read before
    :ivar spec_obj: nova's RequestSpec
    :ivar ctxt: a nova RequestContext of the server's project
    :raises request.InvalidQuestion: nova has no request of it
    """

    def __init__(
        self,
        reader: servers.Reader,
        uuid: str,
        stored: servers.Stored | None = None,
        spec_obj: typing.Any = None,
    ) -> None:
        self._reader = reader
        self._cloud = reader.cloud
        self.uuid = uuid
        stored = stored or reader.find(uuid)
        if stored is None or (spec_obj is None and stored.text is None):
            raise request.InvalidQuestion(
                where='--server',
                expected='the UUID of an existing server',
                got=uuid,
                sentence=f'There is no server {messages.clean(uuid)} whose '
                'request nova has stored.',
            )
        self._mapping, self._instance = stored.mapping, stored.instance
        self._is_grouped, self._disks = stored.is_grouped, stored.disks
        self.cell = stored.cell
        self.spec_obj = spec_obj or reader.load(stored)
        self.ctxt = process.context(self.spec_obj.project_id)
        # nova stores how many servers were created together.
        self.spec_obj.num_instances = 1
        self.spec_obj.requested_resources = []

    @property
    def name(self) -> str:
        """Its name; empty where nova has nothing of it but the request."""
        instance = self._instance
        return (instance and instance.display_name) or ''

    @property
    def building_since(self) -> datetime.datetime | None:
        """When its build began (UTC); None once nova has noted its end.

        It has status BUILD then.
        """
        instance = self._instance
        if (
            instance is None
            or instance.host
            or instance.vm_state != vm_states.BUILDING
        ):
            return None
        created: datetime.datetime = instance.created_at
        return created

    def read_build(self) -> build.Build | None:
        """Return how its build ended, if it is in ERROR and never ran."""
        instance = self._instance
        if (
            instance is None
            or instance.vm_state != vm_states.ERROR
            or instance.launched_at is not None
        ):
            return None
        with self._cloud.target_cell(self.ctxt, self._mapping) as cctxt:
            return build.read(cctxt, self.uuid)

    def say_standing(self) -> str:
        """Return where it is, and nova's last fault; empty for nowhere.

        A resize or migration that failed has left it there.
        """
        instance = self._instance
        if instance is None or not instance.host:
            return ''
        with self._cloud.target_cell(self.ctxt, self._mapping) as cctxt:
            fault = build.read(cctxt, self.uuid).say_fault()
        host = messages.clean(instance.host)
        said = f'is on {host} ({instance.vm_state})'
        return f'{said}. {fault}' if fault else said

    def stay(self) -> None:
        """Prepare the request to judge it on its own host.

        :raises exception.RequestRefused: its image cannot be read
        """
        spec_obj, instance = self.spec_obj, self._instance
        # A member wrote this hint: filters of other packages would pass every
        # host with it.
        hints = fields.get_field(spec_obj, 'scheduler_hints') or {}
        hints.pop(fields.CHECK_TYPE, None)
        # As nova-conductor does before it asks the scheduler.
        spec_obj.ensure_project_and_user_id(instance)
        spec_obj.flavor = instance.flavor
        spec_obj.requested_destination = objects.Destination(
            cell=self._mapping
        )
        image = running_image.image_id(spec_obj)
        if image is not None and image != instance.image_ref:
            if self._disks is not None:
                running_image.remember(
                    self.ctxt, spec_obj, instance, self._disks
                )
            running_image.restore(self.ctxt, spec_obj)
        if (
            reservation.rules().prefixes
            and 'image' in CONF.nova_ext_sched.member_sources
        ):
            keys = reservation.find_image_keys(
                self.ctxt, spec_obj, self._reader.read_image_keys
            )
            request_state.of(spec_obj).image_keys = keys

    def boot(self) -> None:
        """Prepare the request to schedule it anew."""
        if self._mapping is not None:
            with self.read(on_host=False) as (cctxt, instance):
                self._collect_resources(cctxt, instance)
                self.spec_obj.ensure_network_information(instance)
        utils.setup_instance_group(self.ctxt, self.spec_obj)

    def migrate(
        self, destination: typing.Any = None, flavor: typing.Any = None
    ) -> None:
        """Prepare the request of a cold migration or a resize.

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

    def live_migrate(self, destination: typing.Any = None) -> None:
        """Prepare the request of a live migration."""
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
            self.spec_obj.__class__ = _LiveMigrated

    def evacuate(self, destination: typing.Any = None) -> None:
        """Prepare the request of an evacuation; its host is down."""
        with self.read(destination) as (cctxt, instance):
            self.spec_obj.ignore_hosts = [instance.host]
            self.spec_obj.__class__ = _Evacuated
            self._leave_host(cctxt, instance)

    def unshelve(self, destination: typing.Any = None) -> None:
        """Prepare the request to unshelve it after an offload."""
        with self.read(destination, on_host=False) as (cctxt, instance):
            self._leave_host(cctxt, instance)

    def rebuild(self, image: dict[str, typing.Any]) -> None:
        """Prepare the request of a rebuild with another image.

        :param image: in the form of nova.image.glance
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
                    report_client=self._cloud.client,
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

    @contextlib.contextmanager
    def read(
        self, destination: typing.Any = None, on_host: bool = True
    ) -> Iterator[tuple[typing.Any, typing.Any]]:
        """Yield a context of the server's cell and the nova Instance.

        :param destination: the nova Destination for the request, or None
        :param on_host: it must be on a host
        """
        if self._mapping is None:
            raise request.InvalidQuestion(
                where='--operation',
                expected='boot for a server that is not in a cell yet',
                got=self.uuid,
                sentence=f'Server {self.uuid} is not in a cell yet: use '
                '--operation boot.',
            )
        instance = self._instance
        if on_host and not instance.host:
            raise request.InvalidQuestion(
                where='--operation',
                expected='boot or unshelve for a server that is on no host',
                got=self.uuid,
                sentence=f'Server {self.uuid} is on no host: use --operation '
                'boot or unshelve.',
            )
        if destination:
            self.spec_obj.requested_destination = destination
        with (
            self._cloud.target_cell(self.ctxt, self._mapping) as cctxt,
            self._reader.keeping(
                cctxt, self.uuid, self._mapping, self._is_grouped
            ),
        ):
            # nova would compute it and save it.
            if 'is_bfv' not in self.spec_obj:
                self.spec_obj.is_bfv = compute_utils.is_volume_backed_instance(
                    cctxt, instance
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
        """Add resources that the flavor does not have, as conductor does."""
        spec_obj = self.spec_obj
        spec_obj.requested_resources, spec_obj.request_level_params = (
            _network_api(instance).get_requested_resource_for_instance(
                cctxt, instance.uuid
            )
        )
        request.add_device_profile(cctxt, spec_obj)
        spec_obj.generate_request_groups_from_pci_requests()


class _Evacuated(request_spec.RequestSpec):
    """The request of an evacuation, which nova's record does not have yet."""

    supposed_move = failover.EVACUATION

    @classmethod
    def obj_name(cls) -> str:
        return str(request_spec.RequestSpec.obj_name())


class _LiveMigrated(_Evacuated):
    """The same of a live migration."""

    supposed_move = failover.LIVE_MIGRATION


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
