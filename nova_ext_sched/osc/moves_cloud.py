# SPDX-License-Identifier: Apache-2.0

"""Asks nova about servers and migrations, and requests moves."""

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

# Instead of the client's own. From 2.68 on nova-api moves no server past the
# scheduler; 2.80 shows the user of a migration; from 2.95 on a server is
# stopped once it was evacuated. Since 2.84 an event has the failure.
_MICROVERSION = '2.80'
_WITH_DETAILS = '2.84'

#: nova did not do what it was asked, or did not answer.
ERRORS: tuple[type[Exception], ...] = (
    exceptions.SDKException,
    keystone_exceptions.ClientException,
)

# The names of moves in the history of a server.
_ACTIONS = ('live-migration', 'migrate', 'evacuate', 'confirmResize')

#: The command that deletes an allocation.
FREE = 'openstack resource provider allocation delete'


class Cloud:
    """Asks nova, with the resources of openstacksdk.

    A question is repeated where a service is away; a change is not.

    :param connection: of openstacksdk
    :param say: called with a line, where a service is away
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
        """Seconds in which services were away."""
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

    def set_disabled(self, uuid: str, reason: str = '') -> None:
        """Disable a nova-compute for a reason; enable it without one."""
        body = {'status': 'disabled', 'disabled_reason': reason}
        if not reason:
            body = {'status': 'enabled'}
        # Doing it twice has the same effect.
        self._ask(
            'nova', lambda: self._tell('PUT', f'/os-services/{uuid}', body)
        )

    def read_server(self, uuid: str) -> server.Server | None:
        """Return a server, None if there is none."""
        with contextlib.suppress(exceptions.NotFoundException):
            found: server.Server = self._ask(
                'nova', lambda: self._compute.get_server(uuid)
            )
            return found
        return None

    def read_servers_on(self, host: str) -> list[server.Server]:
        """Return the servers of a host, softly deleted ones too."""
        # The client has no name for the second.
        params = {'all_tenants': '1', 'soft_deleted': '1', 'deleted': '0'}
        params['host'] = host
        found: list[server.Server] = []
        while page := self._ask('nova', lambda: self._get_servers(params)):
            found += page
            params['marker'] = page[-1].id
        return found

    def _get_servers(self, params: dict[str, str]) -> list[server.Server]:
        response = self._compute.get(
            '/servers/detail', params=params, microversion=_MICROVERSION
        )
        exceptions.raise_from_response(response)
        return [
            server.Server.existing(**one) for one in response.json()['servers']
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
        """Return whether a migration holds room of the host that was left."""
        return bool(
            self._ask('placement', lambda: self._get_allocations(one.uuid))
        )

    def _get_allocations(self, consumer: str) -> typing.Any:
        response = self._connection.placement.get(f'/allocations/{consumer}')
        exceptions.raise_from_response(response)
        return response.json()['allocations']

    def wait_for_placement(self, uuid: str) -> None:
        """Wait until placement answers."""

        def ask() -> None:
            try:
                self._get_allocations(uuid)
            except ERRORS as exc:
                if waiting.is_away(exc):
                    raise

        self._ask('placement', ask)

    def find_silent(self, uuid: str) -> list[str]:
        """Return the services that do not answer now, of placement and nova.

        Each is asked once about a server; a refusal counts as an answer.
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
        """Return why the last move of a server failed; empty if unknown."""

        def ask() -> str:
            for action in self._compute.server_actions(uuid):
                if action.action in _ACTIONS:
                    response = self._compute.get(
                        f'/servers/{uuid}/os-instance-actions/'
                        f'{action.request_id}',
                        microversion=_WITH_DETAILS,
                    )
                    exceptions.raise_from_response(response)
                    events = response.json()['instanceAction']['events']
                    said = filter(None, (one['details'] for one in events))
                    return next(said, '')
            return ''

        found: str = self._ask('nova', ask)
        return found

    def begin(self, move: moves_plan.Move) -> None:
        """Ask nova once for a move; nova-scheduler looks at the host again."""
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
        """Ask nova once to confirm the migration of a server."""
        self._act(move, {'confirmResize': None})

    @property
    def _compute(self) -> typing.Any:
        # Where nova was away the client has none, and makes it anew.
        return self._connection.compute

    def _act(self, move: moves_plan.Move, body: object) -> None:
        self._tell('POST', f'/servers/{move.server}/action', body)

    def _tell(self, method: str, url: str, body: object) -> None:
        # keystoneauth may ask twice where it has no answer.
        response = self._compute.request(
            url,
            method,
            json=body,
            microversion=_MICROVERSION,
            connect_retries=0,
            status_code_retries=0,
        )
        exceptions.raise_from_response(response)

    def _ask(
        self, name: str, question: Callable[[], typing.Any]
    ) -> typing.Any:
        """Return an answer of a service, which is asked again while away.

        The service that is away may be keystone.
        """
        asked = self._waiting[name]
        while True:
            try:
                answer = question()
            except ERRORS as exc:
                text = f'{exc} {getattr(exc, "url", "")}'
                is_keystone = self._keystone and self._keystone in text
                service_ = self._waiting['keystone'] if is_keystone else asked
                if not service_(exc):
                    raise
            else:
                for service_ in (asked, self._waiting['keystone']):
                    service_.note_answer()
                return answer
