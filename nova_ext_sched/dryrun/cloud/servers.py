# SPDX-License-Identifier: Apache-2.0

"""Reads the servers of every cell, their rows and requests."""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
import itertools
import typing

from nova import exception as nova_exception
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from nova.scheduler import utils
from oslo_serialization import jsonutils
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_ext_sched import named
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.queries import reservation
from nova_ext_sched.queries import servers as queries

# Servers that are read at once: it bounds the memory, whatever a host holds.
PAGE = 500

# UUIDs in one statement about request specs or system metadata. With more of
# them PostgreSQL reads all request specs, and MariaDB does not look into the
# index of system metadata: both read those of servers that were deleted and
# never archived, too.
_UUIDS = 100

# The most servers that are read to find one by its name.
_MOST_NAMED = 1000

# The most images whose keys are remembered.
_IMAGES = 1024

# The most groups that are remembered: to read one with its members takes some
# milliseconds, and its servers are on many hosts.
_GROUPS = 1024

#: The attributes of an Instance that a move reads; nova loads one by one.
OF_MOVES = (
    'flavor',
    'info_cache',
    'numa_topology',
    'pci_devices',
    'pci_requests',
    'system_metadata',
    'vcpu_model',
)
#: The same of an evacuation, where nova-api alone looks.
OF_EVACUATIONS = ('info_cache', 'system_metadata')

# nova's function by which conductor finds the cell of a server.
_FIND_MAPPING = 'get_by_instance_uuid'
# Of a server without a request spec nobody knows whether it has a group.
_NO_SPEC = (None, True)

# Fields that nova stores, and does not take from a stored request.
_PER_REQUEST = (
    'network_metadata',
    'request_level_params',
    'requested_destination',
    'requested_networks',
    'requested_resources',
)


class Stored(typing.NamedTuple):
    """The rows of a server in nova's databases.

    :ivar uuid: its own
    :ivar instance: its nova Instance; of one in no cell, what stands for it
        until conductor has created it, or None
    :ivar mapping: the nova CellMapping of its cell; None where it has none
    :ivar text: its RequestSpec; None where nova has none
    :ivar is_grouped: whether it is a member of a server group, or nobody knows
    :ivar disks: its nova BlockDeviceMappingList; None where it was not read
    """

    uuid: str
    instance: typing.Any
    mapping: typing.Any
    text: str | None
    is_grouped: bool = True
    disks: typing.Any = None

    @property
    def cell(self) -> str:
        """UUID of its cell; empty where it has none."""
        return str(self.mapping.uuid) if self.mapping else ''


@dataclasses.dataclass
class Reader:
    """Reads servers and their nova RequestSpecs.

    Each server group is read once, with its members and their hosts: nova's
    own code reads them anew for each server.

    :param cloud: nova-scheduler's memory of the cloud
    :param hosts: only servers on hosts of these names are counted
    :param project: only servers of the project with this ID
    """

    cloud: snapshot.Snapshot
    hosts: Collection[str] | None = None
    project: str | None = None

    def __post_init__(self) -> None:
        self._ctxt = process.context()
        self._group = functools.lru_cache(maxsize=_GROUPS)(self._read_group)
        # Groups as nova-conductor sets them up, by cell, by UUID, and by
        # whether the server that asks is a member.
        self._set_up: dict[tuple[str, str, bool], typing.Any] = {}
        #: Returns the keys of an image. Many servers have one image, and each
        #: read is a request to Glance.
        self.read_image_keys = functools.lru_cache(maxsize=_IMAGES)(
            functools.partial(reservation.read_image_keys, self._ctxt)
        )

    @functools.cached_property
    def shares(self) -> dict[str, set[str]]:
        """UUIDs of the servers with a share, by the cell, if it answers."""
        return self.cloud.ask_cells(select_shares)

    def has_share(self, cell: str, uuid: str) -> bool:
        """Return whether a server has a share, or that is unknown."""
        shares = self.shares.get(cell)
        return shares is None or uuid in shares

    def count(self) -> dict[str, dict[str, int]]:
        """Return the number of servers of each host that has one, by cell.

        A server that never landed, that is shelved and offloaded or that was
        deleted (softly too) is on no host. What does not answer is in the
        scheduler's ``silent_cells``.
        """
        return self.cloud.ask_cells(_select_counts, self.hosts, self.project)

    def list_on(self, cell: str, hosts: Iterable[str]) -> dict[str, list[str]]:
        """Return the UUIDs of the servers of hosts, of all projects, by host.

        :param cell: the UUID of their cell
        :raises cells.CellFailed: the database stops answering
        """
        return self.cloud.ask_cell(
            self.cloud.cells[cell], _select_occupants, [*hosts]
        )

    def read_on(
        self,
        cell: str,
        hosts: Sequence[str],
        wanted: Sequence[str] | None = None,
        attrs: Sequence[str] = OF_MOVES,
        with_disks: bool = False,
    ) -> Iterator[Stored]:
        """Yield the stored rows of the servers of hosts, of each together.

        :param wanted: UUIDs of the only ones; None for all
        :param attrs: attributes to read of each Instance at once
        :param with_disks: read the disks of those without an image
        :raises cells.CellFailed: the database stops answering
        """
        mapping = self.cloud.cells[cell]
        filters = {'deleted': False, 'host': [*hosts]}
        if self.project is not None:
            filters['project_id'] = self.project
        if wanted is None:
            wanted = [*itertools.chain(*self.list_on(cell, hosts).values())]
        size = _UUIDS if 'system_metadata' in attrs else PAGE
        for start in range(0, len(wanted), size):
            instances = self.cloud.ask_cell(
                mapping,
                _select_instances,
                {**filters, 'uuid': wanted[start : start + size]},
                attrs,
            )
            specs = _select_specs(self._ctxt, [one.uuid for one in instances])
            disks = self._read_disks(mapping, instances) if with_disks else {}
            for one in instances:
                spec = *specs.get(one.uuid, _NO_SPEC), disks.get(one.uuid)
                yield Stored(one.uuid, one, mapping, *spec)

    def _read_disks(
        self, mapping: typing.Any, instances: typing.Any
    ) -> dict[str, typing.Any]:
        """Return the disks of those without an image, by their UUID."""
        wanted = [one.uuid for one in instances if not one.image_ref]
        if not wanted:
            return {}
        return self.cloud.ask_cell(
            mapping,
            objects.BlockDeviceMappingList.bdms_by_instance_uuid,
            wanted,
        )

    def find(self, uuid: str) -> Stored | None:
        """Return the stored rows of a server; None if nova has none.

        :raises nova.exception.InstanceNotFound: it was deleted
        :raises cells.CellFailed: the database of its cell does not answer
        """
        try:
            mapping = objects.InstanceMapping.get_by_instance_uuid(
                self._ctxt, uuid
            ).cell_mapping
        except nova_exception.InstanceMappingNotFound:
            return None
        instance = None
        if mapping is None:
            with contextlib.suppress(nova_exception.BuildRequestNotFound):
                instance = objects.BuildRequest.get_by_instance_uuid(
                    self._ctxt, uuid
                ).instance
        else:
            with self.cloud.target_cell(self._ctxt, mapping) as cctxt:
                instance = objects.Instance.get_by_uuid(
                    cctxt, uuid, expected_attrs=OF_MOVES
                )
        spec = _select_specs(self._ctxt, [uuid]).get(uuid, _NO_SPEC)
        return Stored(uuid, instance, mapping, *spec)

    def load(self, stored: Stored) -> typing.Any:
        """Return the nova RequestSpec of a server, as nova reads it.

        nova's own loader may write what it migrated; nothing is written here.

        :param stored: with its text
        :raises Exception: whatever JSON, oslo.versionedobjects or nova raise
            where it is broken
        """
        primitive = jsonutils.loads(stored.text)
        for name in _PER_REQUEST:
            primitive['nova_object.data'].pop(name, None)
        spec = objects.RequestSpec.obj_from_primitive(primitive, self._ctxt)
        # An ID, because only the copy that nova-api makes for a rebuild has
        # none.
        spec.id = 0
        spec.instance_uuid = stored.uuid
        spec.retry = spec.ignore_hosts = None
        if 'numa_topology' in spec and spec.numa_topology:
            topology = objects.InstanceNUMATopology
            topology._migrate_legacy_dedicated_instance_cpuset(
                spec.numa_topology
            )
        # nova stores a group without its members, and specs of old releases
        # without its UUID.
        group = spec.instance_group if 'instance_group' in spec else None
        if group is not None:
            known = self._group(
                group.uuid
                if 'uuid' in group
                else spec.get_scheduler_hint('group')
            )
            spec.instance_group = known and known.obj_clone()
            if known is None:
                # The group was deleted, and asks nothing any more.
                spec.scheduler_hints.pop('group', None)
        return spec

    def _read_group(self, uuid: str) -> typing.Any:
        try:
            return objects.InstanceGroup.get_by_uuid(self._ctxt, uuid)
        except nova_exception.InstanceGroupNotFound:
            return None

    @contextlib.contextmanager
    def keeping(
        self,
        cctxt: typing.Any,
        uuid: str,
        mapping: typing.Any,
        is_grouped: bool = True,
    ) -> Iterator[None]:
        """Give nova's code the rows that were read already, for one server.

        It asks for the server's cell, for its group, and where the members of
        that are. nova's own requests in the same process ask with other
        contexts.

        :param cctxt: the nova RequestContext that the code is called with
        :param uuid: UUID of the server
        :param mapping: the nova CellMapping of its cell
        :param is_grouped: see :class:`Stored`
        """
        set_up, mapped = utils.setup_instance_group, objects.InstanceMapping
        find, stored = mapped.get_by_instance_uuid, vars(mapped)[_FIND_MAPPING]
        known = mapped(instance_uuid=uuid, cell_mapping=mapping)

        def find_known(ctxt: typing.Any, wanted: str) -> typing.Any:
            if ctxt is cctxt and wanted == uuid:
                return known
            return find(ctxt, wanted)

        def set_up_known(ctxt: typing.Any, spec_obj: typing.Any) -> None:
            if ctxt is not cctxt:
                set_up(ctxt, spec_obj)
            elif spec_obj.instance_group is not None:
                self._set_up_group(set_up, mapping.uuid, ctxt, spec_obj)
            elif is_grouped:
                set_up(ctxt, spec_obj)

        utils.setup_instance_group = set_up_known
        setattr(mapped, _FIND_MAPPING, staticmethod(find_known))
        try:
            yield
        finally:
            utils.setup_instance_group = set_up
            setattr(mapped, _FIND_MAPPING, stored)

    def _set_up_group(
        self,
        set_up: Callable[[typing.Any, typing.Any], None],
        cell: str,
        ctxt: typing.Any,
        spec_obj: typing.Any,
    ) -> None:
        group = spec_obj.instance_group
        is_member = spec_obj.instance_uuid in group.members
        key = cell, group.uuid, is_member
        if key not in self._set_up:
            set_up(ctxt, spec_obj)
            self._set_up[key] = spec_obj.instance_group.obj_clone()
        spec_obj.instance_group = self._set_up[key].obj_clone()


@api_db.context_manager.reader
def _select_specs(
    context: typing.Any, uuids: Collection[str]
) -> dict[str, tuple[str, bool]]:
    """Return the request spec of each server that has one.

    :returns: its stored text, and whether the server is a member of a group
    """
    specs = api_models.RequestSpec.__table__
    members = api_models.InstanceGroupMember.__table__
    column = specs.c.instance_uuid
    joined = specs.outerjoin(members, members.c.instance_uuid == column)
    query = sa.select(column, specs.c.spec, members.c.instance_uuid)
    rows = queries.execute(
        context.session,
        query.select_from(joined).where(column.in_(queries.UUIDS)),
        uuids,
        _UUIDS,
    )
    return {uuid: (text, member is not None) for uuid, text, member in rows}


def in_pages(counts: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield hosts whose servers are read at once: :data:`PAGE`, or one host's.

    :param counts: the number of servers by host
    """
    page: list[str] = []
    number = 0
    for host, count in counts.items():
        if page and number + count > PAGE:
            yield page
            page, number = [], 0
        page.append(host)
        number += count
    if page:
        yield page


def _select_occupants(
    cctxt: typing.Any, hosts: list[str]
) -> dict[str, list[str]]:
    found = objects.InstanceList.get_uuids_by_hosts(cctxt, hosts)
    return {host: sorted(found.get(host, ())) for host in hosts}


def _select_instances(
    cctxt: typing.Any, filters: dict[str, typing.Any], attrs: Sequence[str]
) -> typing.Any:
    return objects.InstanceList.get_by_filters(
        cctxt,
        filters,
        expected_attrs=attrs,
        sort_keys=['host', 'uuid'],
        sort_dirs=['asc', 'asc'],
    )


def find_id(
    cloud: snapshot.Snapshot, wanted: str, project: str | None = None
) -> str:
    """Return the UUID of the server that an operator names.

    :param wanted: a UUID, or a name; also of one that never landed
    :param project: the ID of the only one whose servers are meant
    :raises exception.UnknownName: there is none, or there are several
    """
    if uuidutils.is_uuid_like(wanted):
        return wanted
    mappings = objects.CellMappingList.get_all(process.context())

    def ask(name: str, is_start: bool) -> dict[str, str]:
        answers = cloud.ask_cells(
            _select_named, name, project, is_start, mappings=mappings
        )
        return {
            uuid: shown
            for names in answers.values()
            for uuid, shown in names.items()
        }

    matching = ask(wanted, False) or ask(wanted[:3], True)
    return named.find('server', wanted, matching)


@main_db.pick_context_manager_reader
def _select_named(
    context: typing.Any, name: str, project: str | None, is_start: bool = False
) -> dict[str, str]:
    """Return the names of some servers of a cell, by UUID.

    :param is_start: whether the name is only the beginning of theirs
    """
    instances = models.Instance
    column = instances.display_name
    query = sa.select(instances.uuid, column).where(
        instances.deleted == 0,
        column.startswith(name, autoescape=True)
        if is_start
        else column == name,
    )
    if project is not None:
        query = query.where(instances.project_id == project)
    rows = context.session.execute(query.limit(_MOST_NAMED))
    return {uuid: shown or '' for uuid, shown in rows}


@main_db.pick_context_manager_reader
def select_shares(context: typing.Any) -> set[str]:
    """Return the UUIDs of a cell's servers with a share."""
    query = sa.select(models.ShareMapping.instance_uuid).distinct()
    return set(context.session.execute(query).scalars())


class Size(typing.NamedTuple):
    """A server on a host, and an estimate of its amounts."""

    uuid: str
    display_name: str | None
    project_id: str
    host: str
    node: str | None
    vcpus: int
    memory_mb: int
    disk_gb: int


@main_db.pick_context_manager_reader
def select_sizes(
    context: typing.Any, hosts: Collection[str] | None = None
) -> list[Size]:
    """Return the servers of a cell that are on a host, soft-deleted ones too.

    :param hosts: names of the only ones, not too many for one statement
    """
    instance = models.Instance
    disk = sa.func.coalesce(instance.root_gb, 0) + sa.func.coalesce(
        instance.ephemeral_gb, 0
    )
    query = sa.select(
        instance.uuid,
        instance.display_name,
        instance.project_id,
        instance.host,
        instance.node,
        sa.func.coalesce(instance.vcpus, 0),
        sa.func.coalesce(instance.memory_mb, 0),
        disk,
    ).where(instance.deleted == 0, instance.host.is_not(None))
    if hosts is None:
        query = queries.of_living(query)
    else:
        query = query.where(instance.host.in_(hosts))
    query = query.order_by(instance.host, instance.id)
    return [Size(*row) for row in context.session.execute(query)]


def find_common_flavor(cloud: snapshot.Snapshot) -> list[typing.Any]:
    """Return the nova Flavor of the most servers; none where it is gone."""
    counts = collections.Counter[int]()
    for found in cloud.ask_cells(_select_flavors).values():
        counts.update(found)
    # Of equal ones the oldest.
    wanted = min(counts, key=lambda one: (-counts[one], one), default=None)
    known = objects.FlavorList.get_all(process.context())
    return [one for one in known if one.id == wanted]


@main_db.pick_context_manager_reader
def _select_flavors(context: typing.Any) -> dict[int, int]:
    """Return the number of servers of a cell by the ID of their flavor."""
    instances = models.Instance
    query = (
        sa.select(instances.instance_type_id, sa.func.count())
        .where(instances.deleted == 0, instances.host.is_not(None))
        .group_by(instances.instance_type_id)
    )
    rows = context.session.execute(queries.of_living(query))
    return {flavor: number for flavor, number in rows if flavor is not None}


@main_db.pick_context_manager_reader
def _select_counts(
    context: typing.Any, hosts: Collection[str] | None, project: str | None
) -> dict[str, int]:
    instances = models.Instance
    query = (
        sa.select(instances.host, sa.func.count())
        .where(instances.deleted == 0, instances.host.is_not(None))
        .group_by(instances.host)
        .order_by(instances.host)
    )
    if project is None:
        query = queries.of_living(query)
    else:
        query = query.where(instances.project_id == project)
    return {
        host: count
        for host, count in context.session.execute(query)
        if hosts is None or host in hosts
    }
