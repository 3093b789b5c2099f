# SPDX-License-Identifier: Apache-2.0

"""nova-scheduler's code in this process, for tools that only read.

:func:`configure` makes the process what nova-scheduler's is: its nova.conf,
its databases, its objects. :class:`ReadOnlyHostManager` then uses nova, and
needs nothing but a configured process; nova's functional tests are one as
they are. Nothing here writes to a database or to placement, or sends a
message.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import functools
import os
import typing

from keystoneauth1 import exceptions as ks_exc
from nova import config
from nova import context as nova_context
from nova import objects
import nova.conf
from nova.db.main import api as main_db
from nova.db.main import models
from nova.scheduler import host_manager
from nova.scheduler.client import report
from openstack import config as openstack_config
from openstack import exceptions as sdk_exception
from oslo_config import cfg
from oslo_db import exception as db_exception
import sqlalchemy as sa

from nova_ext_sched import conf
from nova_ext_sched import exception
from nova_ext_sched import messages
from nova_ext_sched.cmd import cells
from nova_ext_sched.queries import aggregates

CONF = nova.conf.CONF

# Each auth type of keystoneauth needs one of these: most an URL of keystone,
# those without keystone (admin_token, http_basic, none) their type or an
# endpoint.
_CREDENTIALS = (
    'OS_CLOUD',
    'OS_AUTH_URL',
    'OS_AUTH_TYPE',
    'OS_AUTH_PLUGIN',
    'OS_ENDPOINT',
)

_SHOWN = (
    *_CREDENTIALS,
    'OS_USERNAME',
    'OS_USER_ID',
    'OS_PROJECT_NAME',
    'OS_PROJECT_ID',
    'OS_APPLICATION_CREDENTIAL_ID',
)

# Databases limit the number of values in one statement.
_HOSTS_AT_ONCE = 1000

# What a server answers that does not take a query for its length.
_TOO_LONG = (413, 414, 431)

# Characters of a query that every server takes. A longer one may end in any
# other status, or in a closed connection.
_TAKEN_BY_ALL = 1000


class PlacementFailed(exception.NovaExtSchedError):
    """Placement did not answer, or not as it should.

    :param query: what it was asked
    :param cause: what came back
    """

    query: str
    cause: str

    message = (
        '[placement] in nova.conf: expected an answer to GET {query}, got: '
        '{cause}'
    )


class QueryRefused(PlacementFailed):
    """The server in front of placement does not take a query of this length.

    That is an answer: nova-scheduler gets no other, and finds no host.
    """

    @property
    def reason(self) -> str:
        """The same in words."""
        return (
            f'{len(self.query)} characters are too many for placement or a '
            'server in front of it'
        )


class CellFailed(exception.NovaExtSchedError):
    """A cell's database does not answer.

    :param cell: its name
    :param cause: what it said
    """

    message = (
        'the database of cell {cell} (nova-manage cell_v2 list_cells): '
        'expected an answer, got {cause}'
    )
    cause: str


class CredentialsFailed(exception.NovaExtSchedError):
    """A service does not answer to the user's credentials, or not at all.

    It says whose they are, without a secret.

    :param service: its name
    :param cause: what it said
    """

    message = '{service}: expected an answer with {credentials}, got {cause}'

    def __init__(self, **data: typing.Any) -> None:
        named = [
            f'{name}={messages.clean(os.environ[name])}'
            for name in _SHOWN
            if name in os.environ
        ]
        whose = f'the credentials of {", ".join(named) or "nobody"}'
        super().__init__(credentials=whose, **data)


class FilterFailed(exception.NovaExtSchedError):
    """A filter raised what nova does not expect.

    :param name: of the filter
    :param cause: type and text of the exception
    """

    message = (
        '{name}: expected an answer, got {cause}; nova-scheduler would fail '
        'the request with this error'
    )
    name: str
    cause: str


class Host(typing.NamedTuple):
    """One compute node of a cell's database."""

    host: str
    node: str
    cell_uuid: str

    @property
    def name(self) -> str:
        """The host, and the node where it has another name (ironic)."""
        if self.host == self.node:
            return self.host
        return f'{self.host}:{self.node}'


def configure(config_files: Sequence[str], config_dirs: Sequence[str]) -> None:
    """Make this process what nova-scheduler's is, once.

    As nova.cmd.scheduler does before it starts its service, except that the
    log is left alone: a tool must not write into the scheduler's. What must
    come before nova is imported is nova_ext_sched.cmd.nova_command's.

    :param config_files: paths; without any those that nova-scheduler finds
    :param config_dirs: likewise, directories of ``*.conf``
    :raises exception.InvalidValue: there is no nova.conf
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
    argv += [f'--config-file={path}' for path in files]
    argv += [f'--config-dir={path}' for path in dirs]
    # It registers what osprofiler needs, connects the databases, and prepares
    # RPC without a connection.
    config.parse_args(argv)
    objects.register_all()
    objects.Service.enable_min_version_cache()
    conf.register_opts(CONF)


def override(options: Mapping[str, str]) -> None:
    """Let options of nova.conf have other values in this process.

    Call it before a :class:`ReadOnlyHostManager` is made.

    :param options: texts as in nova.conf, by ``name`` for ``[DEFAULT]`` or
        ``group.name``
    :raises exception.InvalidValue: an option is unknown, or its value
        malformed
    """
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


@contextlib.contextmanager
def target_cell(ctxt: typing.Any, cell: typing.Any) -> Iterator[typing.Any]:
    """Yield a context of a cell's database, as nova's function of the name.

    :param cell: a nova CellMapping
    :raises CellFailed: the database does not answer
    """
    try:
        with nova_context.target_cell(ctxt, cell) as cctxt:
            yield cctxt
    except (db_exception.DBError, sa.exc.SQLAlchemyError) as exc:
        raise CellFailed(
            cell=messages.clean(cell.name or cell.uuid),
            cause=messages.describe(exc),
        ) from exc


def context(project_id: str | None = None) -> typing.Any:
    """Return an administrator's nova RequestContext.

    It has the credentials of the ``OS_*`` variables or of a cloud of
    clouds.yaml, where there are any. nova asks Glance as the user, whose
    credentials nova.conf does not have; and Cinder too where ``[cinder]`` has
    none, because a request of a user needs none there.
    """
    auth = _user_auth()
    return nova_context.RequestContext(
        project_id=project_id,
        is_admin=True,
        user_auth_plugin=auth,
        # nova.volume.cinder takes the user's for a context with a token; the
        # token itself is the plugin's to get.
        auth_token='of the plugin'
        if auth is not None and CONF.cinder.auth_type is None
        else None,
        overwrite=False,
    )


@functools.cache
def _user_auth() -> typing.Any:
    if not any(name in os.environ for name in _CREDENTIALS):
        return None
    try:
        return openstack_config.OpenStackConfig().get_one().get_auth()
    except (sdk_exception.SDKException, ks_exc.ClientException) as exc:
        raise exception.InvalidValue(
            where='the OS_* variables',
            expected='credentials that keystoneauth knows',
            got=messages.describe(exc),
        ) from exc


class ReadOnlyHostManager(host_manager.HostManager):
    """What nova-scheduler has in memory, and what it asks.

    It is nova's HostManager, except for when it reads the servers of the
    hosts. nova-scheduler reads every server of the cloud in the background
    when it starts; a tool that runs once would wait for that, or judge
    without. Here they come with the host states, UUIDs alone, as nova has them
    where ``track_instance_changes`` is off: other fields of an Instance are
    loaded when a filter reads them.

    A new one reads the aggregates and cells anew; it is not meant to be kept.

    :raises exception.PluginError: a plugin of ours cannot be used
    :raises nova.exception.SchedulerHostFilterNotFound: an enabled filter is
        not available; nova-scheduler would not start
    """

    def __init__(self) -> None:
        super().__init__()
        #: Cells that did not answer when all were asked last: the reason by
        #: UUID.
        self.silent_cells: dict[str, str] = {}

    @functools.cached_property
    def placement(self) -> 'ReportClient':
        """nova's client of placement, with the session of nova.conf."""
        # It asks placement when it is made, and not every tool needs it.
        return ReportClient()

    @functools.cached_property
    def hosts(self) -> dict[str, Host]:
        """Every compute node of every cell; a light query each.

        By UUID, which is that of its resource provider too.

        Those of disabled cells are among them: the scheduler leaves them out
        (``enabled_cells``).
        """
        return {
            uuid: Host(host, node, cell)
            for cell, rows in self.ask_cells(_select_compute_nodes).items()
            for uuid, host, node in rows
        }

    @functools.cached_property
    def aggregates_copy(self) -> typing.Any:
        """The aggregates in memory, for :func:`.queries.aggregates.use`.

        Made once; an aggregate that is changed afterwards is as before in it.
        """
        return aggregates.copy(self.aggs_by_id.values())

    def ask_cells(
        self, select: Callable[..., typing.Any], *args: typing.Any
    ) -> dict[str, typing.Any]:
        """Ask the database of every cell, disabled ones included.

        Those that do not answer are in :attr:`silent_cells`.

        :param select: called with a context of the cell and ``args``
        :returns: what each call returned, by UUID of the cell
        """

        found, self.silent_cells = cells.ask(
            self.cells.values(),
            lambda cctxt: select(cctxt, *args),
            nova_context.CELL_TIMEOUT,
        )
        return found

    def cell_name(self, uuid: str) -> str:
        """Return a cell's name for messages; its UUID where it has none."""
        return messages.clean(self.cells[uuid].name or uuid)

    def aggregates_of(self, host: str) -> list[typing.Any]:
        """Return nova Aggregates of a host, as its HostState has them."""
        return self._get_aggregates_info(host)

    def _init_instance_info(self, computes_by_cell: typing.Any = None) -> None:
        pass

    def _get_host_states(
        self,
        context: typing.Any,
        compute_nodes: Mapping[str, Sequence[typing.Any]],
        services: Mapping[str, typing.Any],
    ) -> Iterator[typing.Any]:
        self._instances: dict[str, dict[str, typing.Any]] = {}
        for cell_uuid, computes in compute_nodes.items():
            hosts = sorted({compute.host for compute in computes})
            with target_cell(context, self.cells[cell_uuid]) as cctxt:
                for start in range(0, len(hosts), _HOSTS_AT_ONCE):
                    found = objects.InstanceList.get_uuids_by_hosts(
                        cctxt, hosts[start : start + _HOSTS_AT_ONCE]
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


class ReportClient(report.SchedulerReportClient):
    """nova's client of placement, which only reads."""

    #: What placement said when it last refused a query.
    refusal = ''

    def get(
        self, url: str, *args: typing.Any, **kwargs: typing.Any
    ) -> typing.Any:
        """Ask placement.

        :returns: a response of status 200, or of placement's own 400
        :raises QueryRefused: it is too long for the server
        :raises PlacementFailed: there is no answer, or another one
        """
        try:
            response = super().get(url, *args, **kwargs)
        except ks_exc.ClientException as exc:
            raise self._failure(url, messages.describe(exc)) from exc
        status = response.status_code
        if status == 200:
            return response
        # Of placement itself, or else of a server in front of it.
        detail, is_definite = response.text or response.reason, False
        with contextlib.suppress(ValueError, LookupError, TypeError):
            detail = response.json()['errors'][0]['detail']
            is_definite = status == 400
        self.refusal = f'{status} {messages.clean(detail.strip())}'
        if is_definite:
            return response
        raise self._failure(url, self.refusal, status in _TOO_LONG)

    def _failure(
        self, url: str, cause: str, is_too_long: bool = False
    ) -> PlacementFailed:
        """Return what is wrong where a query failed for whatever reason."""
        if len(url) > _TAKEN_BY_ALL and not is_too_long:
            # Where it takes no other query either, it is away.
            with contextlib.suppress(ks_exc.ClientException):
                short = super().get('/resource_providers?name=')
                is_too_long = short.status_code < 500
        failure = QueryRefused if is_too_long else PlacementFailed
        return failure(query=url, cause=cause)

    def post(self, url: str, *args: typing.Any, **kwargs: typing.Any) -> None:
        """Refuse to write.

        :raises RuntimeError: always; nova's own code came to write
        """
        raise RuntimeError(
            f'placement: expected only reads, got a write to {url}'
        )

    put = delete = post


@main_db.pick_context_manager_reader
def _select_compute_nodes(context: typing.Any) -> list[tuple[str, str, str]]:
    node = models.ComputeNode
    query = sa.select(node.uuid, node.host, node.hypervisor_hostname).where(
        node.deleted == 0
    )
    return [tuple(row) for row in context.session.execute(query)]
