# SPDX-License-Identifier: Apache-2.0

"""The servers of every cell, host by host, each with its request."""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import functools
import typing

from nova import objects
import nova.conf
from nova.db.main import api as main_db
from nova.db.main import models
import sqlalchemy as sa

from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched import request_state
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.audit import request_specs
from nova_ext_sched.cmd.audit import totals
from nova_ext_sched.queries import running_image
from nova_ext_sched.request_filters import reservation

CONF = nova.conf.CONF

# Servers read at once; it bounds the memory whatever a host holds.
PAGE = 500

# Images whose keys are remembered.
_IMAGES = 1024

_NO_MOVE = ', and nova cannot move it either'
_CREDENTIALS = '; give credentials that may read it: OS_CLOUD or other OS_*'


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
        return [name for name, _ in self.found if name != totals.NOT_JUDGED]


@dataclasses.dataclass
class Servers:
    """The servers that stand on a host.

    A server that never landed, that is shelved and offloaded or that was
    deleted (softly too) stands nowhere, and is none of them.

    :param scheduler: what nova-scheduler has in memory
    :param hosts: only servers on hosts of these names
    :param project: only servers of the project with this ID
    """

    scheduler: nova_scheduler.ReadOnlyHostManager
    hosts: Collection[str] | None = None
    project: str | None = None

    def __post_init__(self) -> None:
        self._ctxt = nova_scheduler.context()
        self._specs = request_specs.Loader(self._ctxt)
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
        return self.scheduler.ask_cells(
            _select_counts, self.hosts, self.project
        )

    def read(self, cell: str, host: str) -> Iterator[Server]:
        """Yield the servers of one host.

        :param cell: the UUID of its cell
        :param host: a name of :meth:`count`
        :raises nova_scheduler.CellFailed: the database stops answering
        """
        mapping = self.scheduler.cells[cell]
        filters = {'deleted': False, 'host': host}
        if self.project is not None:
            filters['project_id'] = self.project
        with nova_scheduler.target_cell(self._ctxt, mapping) as target:
            occupants = sorted(
                objects.InstanceList.get_uuids_by_host(target, host)
            )
        for start in range(0, len(occupants), PAGE):
            uuids = occupants[start : start + PAGE]
            with nova_scheduler.target_cell(self._ctxt, mapping) as target:
                instances = objects.InstanceList.get_by_filters(
                    target,
                    {**filters, 'uuid': uuids},
                    expected_attrs=['flavor'],
                    sort_keys=['uuid'],
                    sort_dirs=['asc'],
                )
            stored = request_specs.select(
                self._ctxt, [instance.uuid for instance in instances]
            )
            for instance in instances:
                # What HostManager gives filters, but without a compute node: a
                # host whose nova-compute is gone may still hold servers.
                state = self.scheduler.host_state_cls(host, host, cell)
                state.aggregates = self.scheduler.aggregates_of(host)
                state.instances = dict.fromkeys(occupants)
                state.instances.pop(instance.uuid)
                yield Server(
                    instance.uuid,
                    instance.display_name or '',
                    instance.project_id,
                    state,
                    *self._request(
                        instance, mapping, stored.get(instance.uuid)
                    ),
                )

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
            # As nova-conductor does before it asks the scheduler.
            spec.ensure_project_and_user_id(instance)
            spec.flavor = instance.flavor
            spec.requested_destination = objects.Destination(cell=mapping)
            image = running_image.image_id(spec)
            if image is not None and image != instance.image_ref:
                running_image.restore(self._ctxt, spec)
                image = running_image.image_id(spec)
            if image is not None and self._image_is_source:
                request_state.image_keys[spec] = self._image_keys(image)
        except exception.RequestRefused as exc:
            # The cause is one of Glance or Cinder.
            return None, str(exc) + (_CREDENTIALS if exc.detail else '')
        except Exception as exc:
            return None, messages.describe(exc)
        return spec, ''


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
