# SPDX-License-Identifier: Apache-2.0

"""What nova is asked to carry out moves, and what it is told to do."""

import contextlib
import typing

from keystoneauth1 import exceptions as keystone_exceptions
from openstack import exceptions
from openstack.compute.v2 import migration
from openstack.compute.v2 import server
from openstack.compute.v2 import service

from nova_ext_sched.osc import moves_plan

# Whatever the client's own is. From 2.68 on nova-api moves no server past the
# scheduler; 2.80 says whose a migration is; from 2.95 on a server is stopped
# once it was evacuated. An event says since 2.84 what failed.
_MICROVERSION = '2.80'
_WITH_DETAILS = '2.84'

#: nova did not do what it was asked, or did not answer.
ERRORS: tuple[type[Exception], ...] = (
    exceptions.SDKException,
    keystone_exceptions.ClientException,
)

# What the actions of moves are in the history of a server.
_ACTIONS = ('live-migration', 'migrate', 'evacuate', 'confirmResize')


class Cloud:
    """Asks nova, with the resources of openstacksdk.

    :param connection: of openstacksdk
    :ivar user: the ID of the user as whom nova is asked
    """

    def __init__(self, connection: typing.Any) -> None:
        self._compute = connection.compute
        self._placement = connection.placement
        session = connection.session
        self.user: str = session.auth.get_user_id(session)

    def read_services(self) -> dict[str, service.Service]:
        """Return each nova-compute, by its host."""
        found = self._compute.services(
            binary='nova-compute', microversion=_MICROVERSION
        )
        return {one.host: one for one in found}

    def set_disabled(self, uuid: str, reason: str = '') -> None:
        """Disable a nova-compute for a reason; enable it without one."""
        body = {'status': 'disabled', 'disabled_reason': reason}
        if not reason:
            body = {'status': 'enabled'}
        self._tell('PUT', f'/os-services/{uuid}', body)

    def read_server(self, uuid: str) -> server.Server | None:
        """Return a server, None if there is none."""
        with contextlib.suppress(exceptions.NotFoundException):
            found: server.Server = self._compute.get_server(uuid)
            return found
        return None

    def read_migrations(self, uuid: str) -> list[migration.Migration]:
        """Return the migrations of a server, the oldest first."""
        found = self._compute.migrations(
            server_id=uuid, microversion=_MICROVERSION
        )
        return sorted(found, key=lambda one: one.id)

    def holds(self, one: migration.Migration) -> bool:
        """Return whether a migration holds room of the host that was left."""
        response = self._placement.get(f'/allocations/{one.uuid}')
        exceptions.raise_from_response(response)
        return bool(response.json()['allocations'])

    def find_reason(self, uuid: str) -> str:
        """Return why the last move of a server failed; empty if unknown."""
        for action in self._compute.server_actions(uuid):
            if action.action in _ACTIONS:
                response = self._compute.get(
                    f'/servers/{uuid}/os-instance-actions/{action.request_id}',
                    microversion=_WITH_DETAILS,
                )
                exceptions.raise_from_response(response)
                events = response.json()['instanceAction']['events']
                said = filter(None, (one['details'] for one in events))
                return next(said, '')
        return ''

    def begin(self, move: moves_plan.Move) -> None:
        """Ask nova for a move; nova-scheduler looks at the host again."""
        host = {'host': move.to}
        self._act(
            move,
            {
                'live': {'os-migrateLive': host | {'block_migration': 'auto'}},
                'cold': {'migrate': host},
                'evacuate': {'evacuate': host if move.to else {}},
            }[move.kind],
        )

    def confirm(self, move: moves_plan.Move) -> None:
        """Confirm the migration of a server that waits for that."""
        self._act(move, {'confirmResize': None})

    def _act(self, move: moves_plan.Move, body: object) -> None:
        self._tell('POST', f'/servers/{move.server}/action', body)

    def _tell(self, method: str, url: str, body: object) -> None:
        response = self._compute.request(
            url, method, json=body, microversion=_MICROVERSION
        )
        exceptions.raise_from_response(response)
