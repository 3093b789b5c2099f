# SPDX-License-Identifier: Apache-2.0

"""nova-scheduler's code in this process, for tools that only read.

:func:`configure` makes the process what nova-scheduler's is: its nova.conf,
its databases, its objects. :class:`Scheduler` then uses nova, and needs
nothing but a configured process; nova's functional tests are one as they
are. Nothing here writes to a database or to placement, or sends a message.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import functools
import typing

from nova import config
from nova import context as nova_context
from nova import objects
import nova.conf
from nova.db.main import api as main_db
from nova.db.main import models
from nova.scheduler import host_manager
from nova.scheduler.client import report
from oslo_config import cfg
import sqlalchemy as sa

from nova_ext_sched import conf
from nova_ext_sched import exception

CONF = nova.conf.CONF

# Databases limit the number of values in one statement.
_HOSTS_AT_ONCE = 1000


class Host(typing.NamedTuple):
    """One compute node of a cell's database.

    ``uuid`` is that of its resource provider too.
    """

    uuid: str
    host: str
    node: str
    cell_uuid: str

    @property
    def name(self) -> str:
        """The host, and the node where it has another name (ironic)."""
        if self.host == self.node:
            return self.host
        return f'{self.host}:{self.node}'


def configure(
    config_files: Sequence[str] = (),
    config_dirs: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
) -> None:
    """Make this process what nova-scheduler's is, once.

    As nova.cmd.scheduler does before it starts its service, except that the
    log is left alone: a tool must not write into the scheduler's. What must
    come before nova is imported is nova_ext_sched.cmd.base's.

    :param config_files: paths; by default where nova-scheduler looks
    :param config_dirs: likewise, directories of ``*.conf``
    :param options: see :func:`override`
    :raises exception.InvalidValue: there is no nova.conf, or an option is
        unknown or malformed
    :raises cfg.Error: nova.conf cannot be read
    """
    files = config_files or cfg.find_config_files('nova', 'nova-scheduler')
    dirs = config_dirs or cfg.find_config_dirs('nova', 'nova-scheduler')
    if not files and not dirs:
        raise exception.InvalidValue(
            where='--config-file',
            expected="nova-scheduler's nova.conf where it is usually found",
            got='no such file',
        )
    argv = ['nova-scheduler']
    for path in files:
        argv += ['--config-file', path]
    for path in dirs:
        argv += ['--config-dir', path]
    # It registers what osprofiler needs, connects the databases, and prepares
    # RPC without a connection.
    config.parse_args(argv)
    objects.register_all()
    objects.Service.enable_min_version_cache()
    conf.register_opts(CONF)
    override(options or {})


def override(options: Mapping[str, str]) -> None:
    """Let options of nova.conf have other values in this process.

    Call it before a :class:`Scheduler` is made.

    :param options: texts as in nova.conf, by ``name`` for ``[DEFAULT]`` or
        ``group.name``
    :raises exception.InvalidValue: an option is unknown, or its value
        malformed
    """
    conf.register_opts(CONF)
    for option, value in options.items():
        group, _, name = option.rpartition('.')
        try:
            CONF.set_override(name, value, group or None)
        except cfg.NoSuchOptError as exc:
            raise exception.InvalidValue(
                where='--option',
                expected='[group.]name of an option of nova.conf',
                got=option,
            ) from exc
        except ValueError as exc:
            raise exception.InvalidValue(
                where=f'--option {option}', expected=str(exc), got=value
            ) from exc


class Scheduler:
    """What nova-scheduler has in memory, and what it asks.

    A new one reads the aggregates and cells anew; it is not meant to be kept.

    :raises exception.PluginError: a plugin of ours cannot be used
    :raises nova.exception.SchedulerHostFilterNotFound: an enabled filter is
        not available; nova-scheduler would not start
    """

    def __init__(self) -> None:
        #: nova's HostManager: ``enabled_filters``, ``aggs_by_id``,
        #: ``host_aggregates_map``, ``get_weighed_hosts``.
        self.host_manager = HostManager()
        #: Cells whose database did not answer: the reason by name; filled
        #: when :attr:`hosts` is read.
        self.silent_cells: dict[str, str] = {}

    def context(
        self,
        project_id: str | None = None,
        user_id: str | None = None,
        auth: typing.Any = None,
    ) -> typing.Any:
        """Return an administrator's nova RequestContext.

        :param auth: keystoneauth plugin for services that are asked as the
            user, Glance above all
        """
        return nova_context.RequestContext(
            user_id=user_id,
            project_id=project_id,
            is_admin=True,
            user_auth_plugin=auth,
            overwrite=False,
        )

    @functools.cached_property
    def placement(self) -> 'ReportClient':
        """nova's client of placement, with the session of nova.conf."""
        # It asks placement when it is made, and not every tool needs it.
        return ReportClient()

    @functools.cached_property
    def hosts(self) -> dict[str, Host]:
        """Every compute node of every cell, by UUID; a light query each.

        Those of disabled cells are among them: the scheduler leaves them out
        (``host_manager.enabled_cells``).
        """
        manager = self.host_manager
        found: dict[str, Host] = {}
        answers = nova_context.scatter_gather_cells(
            self.context(),
            manager.cells.values(),
            nova_context.CELL_TIMEOUT,
            _select_compute_nodes,
        )
        for cell_uuid, rows in answers.items():
            if nova_context.is_cell_failure_sentinel(rows):
                self.silent_cells[cell_name(manager.cells[cell_uuid])] = (
                    type(rows).__name__
                    if isinstance(rows, Exception)
                    else 'no answer in time'
                )
                continue
            for uuid, host, node in rows:
                found[uuid] = Host(uuid, host, node, cell_uuid)
        return found

    def host_states(
        self,
        ctxt: typing.Any,
        uuids: Collection[str] | None = None,
        spec_obj: typing.Any = None,
    ) -> list[typing.Any]:
        """Return nova HostStates, as the scheduler gets them.

        :param ctxt: a nova RequestContext
        :param uuids: of compute nodes; others are passed over. None: all
        :param spec_obj: a nova RequestSpec whose requested cell counts;
            without one every enabled cell
        """
        return list(
            self.host_manager.get_host_states_by_uuids(
                ctxt.elevated(),
                None if uuids is None else list(uuids),
                spec_obj,
            )
        )

    def aggregates_of(self, host: str) -> list[typing.Any]:
        """Return nova Aggregates of a host, as its HostState has them."""
        return self.host_manager._get_aggregates_info(host)


class ReportClient(report.SchedulerReportClient):
    """nova's client of placement, which only reads."""

    def post(self, url: str, *args: typing.Any, **kwargs: typing.Any) -> None:
        """Refuse to write.

        :raises RuntimeError: always; nova's own code came to write
        """
        raise RuntimeError(
            f'placement: expected only reads, got a write to {url}'
        )

    put = delete = post


class HostManager(host_manager.HostManager):
    """nova's, except for when it reads the servers of the hosts.

    nova-scheduler reads every server of the cloud in the background when it
    starts; a tool that runs once would wait for that, or judge without. Here
    they come with the host states, UUIDs alone, as nova has them where
    ``track_instance_changes`` is off: other fields of an Instance are loaded
    when a filter reads them.
    """

    def _init_instance_info(self, computes_by_cell: typing.Any = None) -> None:
        self._instances: dict[str, dict[str, typing.Any]] = {}

    def _get_host_states(
        self,
        context: typing.Any,
        compute_nodes: Mapping[str, Sequence[typing.Any]],
        services: Mapping[str, typing.Any],
    ) -> Iterator[typing.Any]:
        self._instances = {}
        for cell_uuid, computes in compute_nodes.items():
            hosts = sorted({compute.host for compute in computes})
            self.host_to_cell_uuid.update(dict.fromkeys(hosts, cell_uuid))
            cell = self.cells[cell_uuid]
            with nova_context.target_cell(context, cell) as cctxt:
                for some in _batches(hosts, _HOSTS_AT_ONCE):
                    found = objects.InstanceList.get_uuids_by_hosts(
                        cctxt, some
                    )
                    for host, uuids in found.items():
                        self._instances[host] = {
                            uuid: objects.Instance(cctxt, uuid=uuid)
                            for uuid in uuids
                        }
        return super()._get_host_states(context, compute_nodes, services)

    def _get_instances_by_host(
        self, context: typing.Any, host_name: str
    ) -> dict[str, typing.Any]:
        return self._instances.get(host_name, {})


def cell_name(cell: typing.Any) -> str:
    """Return a cell's name, or its UUID where it has none."""
    return cell.name or cell.uuid


@main_db.pick_context_manager_reader
def _select_compute_nodes(
    context: typing.Any,
) -> list[tuple[str, str, str]]:
    node = models.ComputeNode
    query = sa.select(node.uuid, node.host, node.hypervisor_hostname).where(
        node.deleted == 0
    )
    return [tuple(row) for row in context.session.execute(query)]


def _batches(items: Iterable[str], size: int) -> Iterator[list[str]]:
    listed = list(items)
    for start in range(0, len(listed), size):
        yield listed[start : start + size]
