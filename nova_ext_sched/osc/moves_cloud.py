# SPDX-License-Identifier: Apache-2.0

"""Reads servers and migrations from nova, and requests moves."""

from collections.abc import Callable
import contextlib
import typing

from keystoneauth1 import exceptions as keystone_exceptions
from openstack import exceptions
from openstack.compute.v2 import migration
from openstack.compute.v2 import server
from openstack.compute.v2 import service

from nova_ext_sched import waiting
from nova_ext_sched.osc import moves_plan

# The microversion of most requests, whatever the client's default is. From
# 2.68 on, a move cannot bypass nova-scheduler; from 2.80 on, migrations show
# their user. It is below 2.95, which leaves an evacuated server stopped.
_MICROVERSION = '2.80'
# The first microversion in which the events of an instance action have
# details, which name the failure.
_WITH_DETAILS = '2.84'

#: The errors of a service that refuses a request, or does not answer.
ERRORS: tuple[type[Exception], ...] = (
    exceptions.SDKException,
    keystone_exceptions.ClientException,
)

# The instance actions of a move and of its confirmation.
_ACTIONS = ('live-migration', 'migrate', 'evacuate', 'confirmResize')

T = typing.TypeVar('T')

#: The command that deletes an allocation.
FREE = 'openstack resource provider allocation delete'


class Cloud:
    """Reads and changes servers, migrations and services.

    Reads (except :meth:`find_silent`) and :meth:`set_status`, which can be
    repeated safely, are retried while a service is away. Requests for moves
    and their confirmations are sent once.

    :param connection: a connection of openstacksdk
    :param say: called with a line while a service is away
    :ivar user: the ID of the user who asks nova
    """

    def __init__(
        self,
        connection: typing.Any,
        say: Callable[[str], object] = print,
    ) -> None:
        self._connection = connection
        self._waiting = {
            name: waiting.Waiting(name, say)
            for name in ('nova', 'placement', 'keystone')
        }
        session = connection.session
        self._keystone = getattr(session.auth, 'auth_url', None)
        self.user: str = self._ask(
            'keystone', lambda: session.auth.get_user_id(session)
        )

    @property
    def lost(self) -> float:
        """Seconds spent waiting for services that were away."""
        return sum(one.lost for one in self._waiting.values())

    def read_services(self) -> dict[str, service.Service]:
        """Return each nova-compute, by its host."""
        services = self._ask(
            'nova',
            lambda: [
                *self._compute.services(
                    binary='nova-compute', microversion=_MICROVERSION
                )
            ],
        )
        return {one.host: one for one in services}

    def set_status(self, uuid: str, disabled_reason: str = '') -> None:
        """Disable a nova-compute with a reason, or enable it.

        :param uuid: the UUID of the service
        :param disabled_reason: empty to enable it
        """
        body = {'status': 'disabled', 'disabled_reason': disabled_reason}
        if not disabled_reason:
            body = {'status': 'enabled'}
        self._ask(
            'nova', lambda: self._tell('PUT', f'/os-services/{uuid}', body)
        )

    def read_server(self, uuid: str) -> server.Server | None:
        """Return a server; None if it does not exist."""
        with contextlib.suppress(exceptions.NotFoundException):
            return self._ask('nova', lambda: self._compute.get_server(uuid))
        return None

    def read_servers_on(self, host: str) -> list[server.Server]:
        """Return the servers of a host, soft-deleted ones too."""
        # openstacksdk has no parameter for soft_deleted.
        params = {'all_tenants': '1', 'soft_deleted': '1', 'deleted': '0'}
        params['host'] = host
        found: list[server.Server] = []
        while page := self._ask('nova', lambda: self._get_servers(params)):
            found += page
            params['marker'] = page[-1].id
        return found

    def _get_servers(self, params: dict[str, str]) -> list[server.Server]:
        return [
            server.Server.existing(**one)
            for one in _get(
                self._compute,
                '/servers/detail',
                params=params,
                microversion=_MICROVERSION,
            )['servers']
        ]

    def read_migrations(self, uuid: str) -> list[migration.Migration]:
        """Return the migrations of a server, the oldest first."""
        migrations = self._ask(
            'nova',
            lambda: [
                *self._compute.migrations(
                    server_id=uuid, microversion=_MICROVERSION
                )
            ],
        )
        return sorted(migrations, key=lambda one: one.id)

    def holds(self, one: migration.Migration) -> bool:
        """Return whether a migration still has an allocation."""
        return bool(
            self._ask('placement', lambda: self._get_allocations(one.uuid))
        )

    def _get_allocations(self, consumer: str) -> typing.Any:
        url = f'/allocations/{consumer}'
        return _get(self._connection.placement, url)['allocations']

    def wait_for_placement(self, uuid: str) -> None:
        """Wait until placement answers.

        :param uuid: a server whose allocations are read; an error is an answer
            too, unless it says that placement is away
        """

        def ask() -> None:
            try:
                self._get_allocations(uuid)
            except ERRORS as exc:
                if waiting.is_away(exc):
                    raise

        self._ask('placement', ask)

    def find_silent(self, uuid: str) -> list[str]:
        """Return the names of those of placement and nova that are away now.

        Each is asked once about a server. An error is an answer, too, unless
        it says that the service is away.
        """
        silent = []
        for name, ask in (
            ('placement', lambda: self._get_allocations(uuid)),
            ('nova', lambda: self._compute.get_server(uuid)),
        ):
            try:
                ask()
            except ERRORS as exc:
                if waiting.is_away(exc):
                    silent.append(name)
        return silent

    def find_reason(self, uuid: str) -> str:
        """Return the first details in the events of a server's last move.

        Its confirmation counts as a move. Details say why an event failed; the
        text is empty if there are none.
        """

        def ask() -> str:
            for action in self._compute.server_actions(uuid):
                if action.action in _ACTIONS:
                    done = _get(
                        self._compute,
                        f'/servers/{uuid}/os-instance-actions/'
                        f'{action.request_id}',
                        microversion=_WITH_DETAILS,
                    )['instanceAction']
                    said = (one['details'] for one in done['events'])
                    return next(filter(None, said), '')
            return ''

        return self._ask('nova', ask)

    def begin(self, move: moves_plan.Move) -> None:
        """Request a move, without a retry.

        nova-scheduler checks the host that the request names.
        """
        host = {'host': move.to}
        self._act(
            move,
            {
                'live': {'os-migrateLive': host | {'block_migration': 'auto'}},
                'cold': {'migrate': host},
                'evacuate': {'evacuate': host if move.to else {}},
            }[move.actual],
        )

    def confirm(self, move: moves_plan.Move) -> None:
        """Request the confirmation of a migration, without a retry."""
        self._act(move, {'confirmResize': None})

    @property
    def _compute(self) -> typing.Any:
        # Read from the connection each time: if nova did not answer at first,
        # the connection has no proxy yet, and makes one at the next access.
        return self._connection.compute

    def _act(self, move: moves_plan.Move, body: object) -> None:
        self._tell('POST', f'/servers/{move.server}/action', body)

    def _tell(self, method: str, url: str, body: object) -> None:
        # By default keystoneauth may send a request again if it gets no
        # answer.
        response = self._compute.request(
            url,
            method,
            json=body,
            microversion=_MICROVERSION,
            connect_retries=0,
            status_code_retries=0,
        )
        exceptions.raise_from_response(response)

    def _ask(self, name: str, question: Callable[[], T]) -> T:
        """Return a service's answer; ask again while it or keystone is away.

        An error with keystone's URL, in its text or as its own URL, counts as
        an error of keystone.
        """
        asked, keystone = self._waiting[name], self._waiting['keystone']
        while True:
            try:
                answer = question()
            except ERRORS as exc:
                text = f'{exc} {getattr(exc, "url", "")}'
                is_keystone = self._keystone and self._keystone in text
                silent = keystone if is_keystone else asked
                if not silent.wait(exc):
                    raise
            else:
                for service_ in (asked, keystone):
                    service_.note_answer()
                return answer


def _get(proxy: typing.Any, url: str, **more: typing.Any) -> typing.Any:
    """Return the JSON answer of a service to a GET."""
    response = proxy.get(url, **more)
    exceptions.raise_from_response(response)
    return response.json()
