# SPDX-License-Identifier: Apache-2.0

"""The servers of every cell, host by host, each with its request."""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import functools
import itertools
import typing

from nova import exception as nova_exception
from nova import objects
import nova.conf
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_serialization import jsonutils
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_ext_sched import exception
from nova_ext_sched import fields
from nova_ext_sched import messages
from nova_ext_sched import named
from nova_ext_sched import request_state
from nova_ext_sched.dryrun.cloud import process
from nova_ext_sched.dryrun.cloud import snapshot
from nova_ext_sched.queries import reservation
from nova_ext_sched.queries import running_image

CONF = nova.conf.CONF

#: Stands for the policy of a server that cannot be judged.
NOT_JUDGED = 'not-judged'

# Servers read at once; it bounds the memory whatever a host holds.
PAGE = 500

# Servers that are read where one is looked for by its name.
_MOST_NAMED = 1000

# Images whose keys are remembered.
_IMAGES = 1024

# Servers of one group stand on many hosts, and a group with its members costs
# some milliseconds to read. The number bounds the memory.
_GROUPS = 1024

_NO_MOVE = ', and nova cannot move it either'
_CREDENTIALS = (
    '; Glance takes the credentials of OS_CLOUD or other OS_* variables, '
    'Cinder those of [cinder] in nova.conf'
)


class Stored(typing.NamedTuple):
    """What nova has stored of a server.

    :ivar instance: its nova Instance
    :ivar cell: UUID of the cell that has it
    :ivar text: its RequestSpec; None where nova has none
    """

    instance: typing.Any
    cell: str
    text: str | None


@dataclasses.dataclass(eq=False)
class Server:
    """A server and the host on which it stands.

    ``host_state`` is a nova HostState with the host's aggregates and with its
    instances but this one, as if the server were to be placed there now.
    ``request_spec`` is what the scheduler would be asked for its move; where
    that is unknown it is None, and ``fault`` says why and what to do.
    ``found`` is what the policies say against its host, once they are asked.
    """

    uuid: str
    name: str
    project_id: str
    host_state: typing.Any
    request_spec: typing.Any
    fault: str = ''
    found: Sequence[tuple[str, str]] = ()

    @property
    def host(self) -> str:
        """The name of its host."""
        return str(self.host_state.host)

    @property
    def policies(self) -> list[str]:
        """The policies that it violates."""
        return [name for name, _ in self.found if name != NOT_JUDGED]


@dataclasses.dataclass
class Servers:
    """The servers that stand on a host.

    A server that never landed, that is shelved and offloaded or that was
    deleted (softly too) stands nowhere, and is none of them.

    :param cloud: what nova-scheduler has in memory
    :param hosts: only servers on hosts of these names
    :param project: only servers of the project with this ID
    """

    cloud: snapshot.Snapshot
    hosts: Collection[str] | None = None
    project: str | None = None

    def __post_init__(self) -> None:
        self._ctxt = process.context()
        self._specs = Loader(self._ctxt)
        self._image_is_source = (
            bool(reservation.rules().prefixes)
            and 'image' in CONF.nova_ext_sched.member_sources
        )
        # Many servers have one image, and each read is a request to Glance.
        self._image_keys = functools.lru_cache(maxsize=_IMAGES)(
            functools.partial(reservation.read_image_keys, self._ctxt)
        )

    def count(self) -> dict[str, dict[str, int]]:
        """Return the number of servers of each host that has one, by cell.

        What does not answer is in the scheduler's ``silent_cells``.
        """
        return self.cloud.ask_cells(_select_counts, self.hosts, self.project)

    def read(self, cell: str, host: str) -> Iterator[Server]:
        """Yield the servers of one host.

        :param cell: the UUID of its cell
        :param host: a name of :meth:`count`
        :raises cells.CellFailed: the database stops answering
        """
        mapping = self.cloud.cells[cell]
        occupants = self._select_occupants(cell, host)
        for instance, _, stored in self.read_stored(cell, host, occupants):
            # What HostManager gives filters, but without a compute node: a
            # host whose nova-compute is gone may still hold servers.
            state = self.cloud.host_state_cls(host, host, cell)
            state.aggregates = self.cloud.aggregates_of(host)
            state.instances = dict.fromkeys(occupants)
            state.instances.pop(instance.uuid)
            yield Server(
                instance.uuid,
                instance.display_name or '',
                instance.project_id,
                state,
                *self._request(instance, mapping, stored),
            )

    def read_stored(
        self,
        cell: str,
        host: str,
        occupants: Sequence[str] | None = None,
        attrs: Sequence[str] = ('flavor',),
    ) -> Iterator[Stored]:
        """Yield what nova has of the servers of one host.

        :param occupants: UUIDs of all servers there, where they are known
        :param attrs: what is to be read of each Instance at once
        :raises cells.CellFailed: the database stops answering
        """
        filters = {'deleted': False, 'host': host}
        if self.project is not None:
            filters['project_id'] = self.project
        if occupants is None:
            occupants = self._select_occupants(cell, host)
        for start in range(0, len(occupants), PAGE):
            uuids = occupants[start : start + PAGE]
            instances = self.cloud.ask_cell(
                self.cloud.cells[cell],
                _select_instances,
                {**filters, 'uuid': uuids},
                attrs,
            )
            stored = _select_specs(
                self._ctxt, [instance.uuid for instance in instances]
            )
            for instance in instances:
                yield Stored(instance, cell, stored.get(instance.uuid))

    def _select_occupants(self, cell: str, host: str) -> list[str]:
        mapping = self.cloud.cells[cell]
        occupants: list[str] = self.cloud.ask_cell(
            mapping, _select_occupants, host
        )
        return occupants

    def _request(
        self, instance: typing.Any, mapping: typing.Any, text: str | None
    ) -> tuple[typing.Any, str]:
        """Return the request of a move, or None and why it is unknown."""
        if text is None:
            return None, 'nova has no request spec of the server' + _NO_MOVE
        try:
            spec = self._specs.load(instance.uuid, text)
        except Exception as exc:
            problem = f'its request spec cannot be read{_NO_MOVE}'
            return None, f'{problem}: {messages.describe(exc)}'
        try:
            # A member's: filters of other packages would pass every host.
            hints = fields.get_field(spec, 'scheduler_hints') or {}
            hints.pop(fields.CHECK_TYPE, None)
            # As nova-conductor does before it asks the scheduler.
            spec.ensure_project_and_user_id(instance)
            spec.flavor = instance.flavor
            spec.requested_destination = objects.Destination(cell=mapping)
            image = running_image.image_id(spec)
            if image is not None and image != instance.image_ref:
                running_image.restore(self._ctxt, spec)
            if self._image_is_source:
                keys = reservation.find_image_keys(
                    self._ctxt, spec, self._image_keys
                )
                request_state.of(spec).image_keys = keys
        except exception.RequestRefused as exc:
            # The cause is one of Glance or Cinder.
            return None, str(exc) + (_CREDENTIALS if exc.detail else '')
        except Exception as exc:
            return None, messages.describe(exc)
        return spec, ''


class Loader:
    """Makes nova RequestSpecs of what is stored.

    nova's own loader (nova.objects.RequestSpec.get_by_instance_uuids) reads
    the server group anew for each server, fails for all where one is broken,
    and may write what it migrated. Here each group is read once, a broken spec
    is its own server's fault, and nothing is written.
    """

    def __init__(self, ctxt: typing.Any) -> None:
        self._ctxt = ctxt
        self._group = functools.lru_cache(maxsize=_GROUPS)(self._read_group)

    def load(self, uuid: str, text: str) -> typing.Any:
        """Return the RequestSpec of a server.

        :param text: the stored text
        :raises Exception: whatever JSON, oslo.versionedobjects or nova raise
            where it is broken
        """
        spec = objects.RequestSpec.obj_from_primitive(
            jsonutils.loads(text), self._ctxt
        )
        spec.instance_uuid = uuid
        # nova stores a group without its members, and specs of old releases
        # without its UUID.
        group = spec.instance_group if 'instance_group' in spec else None
        if group is not None:
            spec.instance_group = self._group(
                group.uuid
                if 'uuid' in group
                else spec.get_scheduler_hint('group')
            )
        return spec

    def _read_group(self, uuid: str) -> typing.Any:
        try:
            return objects.InstanceGroup.get_by_uuid(self._ctxt, uuid)
        except nova_exception.InstanceGroupNotFound:
            # It was deleted, and asks nothing of its members any more.
            return None


def find(cloud: snapshot.Snapshot, uuid: str) -> typing.Any:
    """Return the nova Instance of a server, with what nova knows of its ports.

    :returns: None where no cell that answers has it any more
    """
    found = cloud.ask_cells(
        _select_instances, {'uuid': [uuid], 'deleted': False}, ('info_cache',)
    )
    return next(itertools.chain(*found.values()), None)


@api_db.context_manager.reader
def _select_specs(
    context: typing.Any, uuids: Collection[str]
) -> dict[str, str]:
    """Return the stored text of each server that has a request spec."""
    specs = api_models.RequestSpec
    query = sa.select(specs.instance_uuid, specs.spec).where(
        specs.instance_uuid.in_(uuids)
    )
    return {uuid: text for uuid, text in context.session.execute(query)}


def _select_occupants(cctxt: typing.Any, host: str) -> list[str]:
    return sorted(objects.InstanceList.get_uuids_by_host(cctxt, host))


def _select_instances(
    cctxt: typing.Any, filters: dict[str, typing.Any], attrs: Sequence[str]
) -> typing.Any:
    return objects.InstanceList.get_by_filters(
        cctxt,
        filters,
        expected_attrs=attrs,
        sort_keys=['uuid'],
        sort_dirs=['asc'],
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
    found: dict[str, str] = {}
    for names in cloud.ask_cells(
        _select_named, wanted, project, mappings=mappings
    ).values():
        found |= names
    if not found:
        for names in cloud.ask_cells(
            _select_named, wanted[:3], project, True, mappings=mappings
        ).values():
            found |= names
    return named.find('server', wanted, found)


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
    """A server on a host, and about what it takes of that."""

    uuid: str
    display_name: str | None
    project_id: str
    host: str
    node: str | None
    vcpus: int
    memory_mb: int
    disk_gb: int


@main_db.pick_context_manager_reader
def select_sizes(context: typing.Any) -> list[Size]:
    """Return the servers of a cell that stand on a host."""
    one = models.Instance
    disk = sa.func.coalesce(one.root_gb, 0) + sa.func.coalesce(
        one.ephemeral_gb, 0
    )
    query = sa.select(
        one.uuid,
        one.display_name,
        one.project_id,
        one.host,
        one.node,
        sa.func.coalesce(one.vcpus, 0),
        sa.func.coalesce(one.memory_mb, 0),
        disk,
    ).where(one.deleted == 0, one.host.is_not(None))
    return [Size(*row) for row in context.session.execute(query)]


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
    if project is not None:
        query = query.where(instances.project_id == project)
    return {
        host: count
        for host, count in context.session.execute(query)
        if hosts is None or host in hosts
    }
