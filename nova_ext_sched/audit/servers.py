# SPDX-License-Identifier: Apache-2.0

"""The servers of a cell, host by host, each with its request."""

from collections.abc import Collection
from collections.abc import Iterator
import contextlib
import copy
import dataclasses
import functools
import typing

from nova import context as nova_context
from nova import objects
import nova.conf
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_db import exception as db_exception
import sqlalchemy as sa

from nova_ext_sched import messages
from nova_ext_sched.audit import request_specs
from nova_ext_sched.explain import scheduler as nova_scheduler
from nova_ext_sched.request_filters import reserved_aggregates
from nova_ext_sched.request_filters import running_image

CONF = nova.conf.CONF

# Servers read at once; it bounds the memory whatever a host holds.
PAGE = 500

# Images whose keys are remembered.
_IMAGES = 1024


@dataclasses.dataclass(frozen=True)
class Server:
    """A server and the host on which it stands.

    :ivar host_state: a nova HostState with the host's aggregates and with its
        instances but this one, as if the server were to be placed there now
    :ivar request_spec: what the scheduler would be asked for its move; None
        where that is unknown
    :ivar fault: why it is unknown, else empty
    """

    uuid: str
    project_id: str
    host_state: typing.Any
    request_spec: typing.Any
    fault: str = ''


class CellDown(Exception):
    """A cell's database does not answer; the text says what it said."""


class Cell:
    """The servers of one cell that stand on a host.

    A server that never landed, that is shelved and offloaded or that was
    deleted (softly too) stands nowhere, and is none of them.

    :param ctxt: a nova RequestContext of an administrator
    :param scheduler: what nova-scheduler has in memory
    :param mapping: the cell's nova CellMapping
    :param project: only servers of the project with this ID
    """

    def __init__(
        self,
        ctxt: typing.Any,
        scheduler: nova_scheduler.Scheduler,
        mapping: typing.Any,
        project: str | None = None,
    ) -> None:
        self._ctxt = ctxt
        self._scheduler = scheduler
        self._mapping = mapping
        self._filters: dict[str, typing.Any] = {'deleted': False}
        if project is not None:
            self._filters['project_id'] = project
        self._specs = request_specs.RequestSpecs(ctxt)
        self._image_is_source = (
            bool(reserved_aggregates.rules().prefixes)
            and 'image' in CONF.nova_ext_sched.member_sources
        )
        # Many servers have one image, and each read is a request to Glance.
        self._image_keys = functools.lru_cache(maxsize=_IMAGES)(
            functools.partial(reserved_aggregates.read_image_keys, ctxt)
        )

    def count(self) -> dict[str, int]:
        """Return the number of servers of each host that has one.

        :raises CellDown: the database does not answer in nova's time
        """
        results = nova_context.scatter_gather_cells(
            self._ctxt,
            [self._mapping],
            nova_context.CELL_TIMEOUT,
            _count,
            self._filters.get('project_id'),
        )
        counts = results[self._mapping.uuid]
        if counts is nova_context.did_not_respond_sentinel:
            raise CellDown(
                f'no answer within {nova_context.CELL_TIMEOUT} seconds'
            )
        if isinstance(counts, Exception):
            raise CellDown(messages.describe(counts)) from counts
        return counts

    def read(self, host: str) -> Iterator[Server]:
        """Yield the servers of one host.

        :param host: a name of :meth:`count`
        :raises CellDown: the database stops answering
        """
        with nova_context.target_cell(self._ctxt, self._mapping) as target:
            with _answering():
                occupants = dict.fromkeys(
                    objects.InstanceList.get_uuids_by_host(target, host)
                )
            state = self._host_state(host)
            for instances in self._pages(target, host):
                specs = self._specs.get([one.uuid for one in instances])
                for instance in instances:
                    mine = copy.copy(state)
                    mine.instances = {
                        uuid: None
                        for uuid in occupants
                        if uuid != instance.uuid
                    }
                    yield self._server(
                        instance, mine, specs.get(instance.uuid)
                    )

    def _pages(
        self, target: typing.Any, host: str
    ) -> Iterator[Collection[typing.Any]]:
        marker = None
        while True:
            with _answering():
                page = objects.InstanceList.get_by_filters(
                    target,
                    {**self._filters, 'host': host},
                    limit=PAGE,
                    marker=marker,
                    expected_attrs=['flavor'],
                    sort_keys=['uuid'],
                    sort_dirs=['asc'],
                ).objects
            yield page
            if len(page) < PAGE:
                return
            marker = page[-1].uuid

    def _host_state(self, host: str) -> typing.Any:
        # What HostManager gives filters, but without a compute node: a host
        # whose nova-compute is gone may still hold servers.
        state = self._scheduler.host_manager.host_state_cls(
            host, host, self._mapping.uuid
        )
        state.aggregates = self._scheduler.aggregates_of(host)
        return state

    def _server(
        self, instance: typing.Any, state: typing.Any, spec: typing.Any
    ) -> Server:
        fault = ''
        if spec is None:
            fault = 'nova has no request spec of the server'
        elif isinstance(spec, Exception):
            fault = (
                f'the request spec cannot be read: {messages.describe(spec)}'
            )
            spec = None
        else:
            try:
                self._prepare(spec, instance)
            except Exception as exc:
                fault = messages.describe(exc)
                spec = None
        return Server(instance.uuid, instance.project_id, state, spec, fault)

    def _prepare(self, spec: typing.Any, instance: typing.Any) -> None:
        # As nova-conductor does before it asks the scheduler for a move.
        spec.ensure_project_and_user_id(instance)
        spec.flavor = instance.flavor
        spec.requested_destination = objects.Destination(cell=self._mapping)
        image = running_image.image_id(spec)
        if image is not None and image != instance.image_ref:
            running_image.restore(self._ctxt, spec)
            image = running_image.image_id(spec)
        if image is not None and self._image_is_source:
            reserved_aggregates.remember_image_keys(
                spec, self._image_keys(image)
            )


def _count(
    context: typing.Any, project: str | None
) -> dict[str, int] | Exception:
    # nova would log the traceback of what is raised.
    try:
        return _select_counts(context, project)
    except Exception as exc:
        return exc


@main_db.pick_context_manager_reader
def _select_counts(context: typing.Any, project: str | None) -> dict[str, int]:
    instances = models.Instance
    query = (
        sa.select(instances.host, sa.func.count())
        .where(instances.deleted == 0, instances.host.is_not(None))
        .group_by(instances.host)
        .order_by(instances.host)
    )
    if project is not None:
        query = query.where(instances.project_id == project)
    return {host: count for host, count in context.session.execute(query)}


@contextlib.contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except (db_exception.DBError, sa.exc.SQLAlchemyError) as exc:
        raise CellDown(messages.describe(exc)) from exc
