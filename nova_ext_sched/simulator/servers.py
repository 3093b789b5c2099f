# SPDX-License-Identifier: Apache-2.0

"""The servers of a run: where each is, and how each step left it."""

from collections.abc import Callable
import time
import typing

from nova.tests.functional.api import client

from nova_ext_sched.simulator import cloud
from nova_ext_sched.simulator import expectation

# Seconds between two looks at a server, and until one is given up.
_POLL = 0.03
_PATIENCE = 120

HOST = 'OS-EXT-SRV-ATTR:host'
TASK = 'OS-EXT-STS:task_state'

NO_VALID_HOST = 'No valid host'

Server = dict[str, typing.Any]
Placement = expectation.Placement


class Servers:
    """Looks at servers by name, as nova-api shows them.

    :param api: an administrator's client
    """

    def __init__(self, api: client.TestOpenStackClient) -> None:
        self._api = api
        #: Ids of the servers that were booted, by name.
        self.ids: dict[str, str] = {}

    def post(self, name: str, body: Server) -> None:
        """Ask nova-api for an action.

        :raises client.OpenStackApiException: it refuses
        """
        self._api.api_post(f'/servers/{self._id(name)}/action', body)

    def delete(self, name: str) -> None:
        """Ask nova-api to delete a server.

        :raises client.OpenStackApiException: it refuses
        """
        self._api.api_delete(f'/servers/{self._id(name)}')

    def show(self, name: str) -> Server:
        """Return what nova-api shows; the status DELETED for no server."""
        try:
            return self._api.get_server(self._id(name))
        except client.OpenStackApiNotFoundException:
            return {'status': 'DELETED', TASK: None, HOST: None}

    def wait(self, name: str, done: Callable[[Server], bool]) -> Server:
        """Return a server once it is as it should be.

        Its key ``timed_out`` says that it was given up.
        """
        server: Server = {}

        def look() -> bool:
            server.clear()
            server.update(self.show(name))
            # nova sets the status before it records the reason.
            recorded = server['status'] != 'ERROR' or 'fault' in server
            return recorded and done(server)

        if not until(look):
            server['timed_out'] = True
        return server

    def wait_for_events(self, name: str, action: str) -> list[Server]:
        """Return the events of a server's newest action of a kind.

        :returns: each with its result
        """
        server_id = self._id(name)
        events: list[Server] = []

        def finished() -> bool:
            newest = next(
                item
                for item in self._api.get_instance_actions(server_id)
                if item['action'] == action
            )
            events[:] = self._api.get_instance_action_details(
                server_id, newest['request_id']
            )['events']
            return all(event['result'] for event in events)

        until(finished)
        return events

    def _id(self, name: str) -> str:
        # A server that nova refused to make is one that nova does not know.
        return self.ids.get(name, name)


def until(done: Callable[[], bool]) -> bool:
    """Wait for something; return False where it was given up."""
    deadline = time.monotonic() + _PATIENCE
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL)
    return True


def placement(server: Server, name: str) -> Placement:
    """Return where a server is, or how it failed."""
    if server.get('timed_out'):
        detail = (
            f'still {server["status"]}, task {server[TASK]}, after '
            f'{_PATIENCE} seconds'
        )
        return Placement(name, failure=expectation.FAILED, detail=detail)
    if server['status'] == 'ERROR':
        return failure(name, server['fault']['message'])
    return Placement(name, host=server.get(HOST))


def failed_event(name: str, events: list[Server]) -> Placement | None:
    """Return the failure that the events of an action tell, if any.

    A move that fails leaves the server where it was and says so nowhere
    else.
    """
    for event in events:
        if str(event['result']).lower() == 'error':
            text = event.get('details') or event.get('traceback') or ''
            return failure(name, text.strip())
    return None


def refusal(name: str | None, exc: client.OpenStackApiException) -> Placement:
    """Return the placement of a server whose request nova-api refused."""
    return Placement(
        name, failure=expectation.REFUSED, detail=cloud.api_message(exc)
    )


def failure(name: str, detail: str) -> Placement:
    """Return the placement of a server that failed as nova tells."""
    no_valid_host = NO_VALID_HOST in detail or 'NoValidHost' in detail
    return Placement(
        name,
        failure=(
            expectation.NO_VALID_HOST if no_valid_host else expectation.FAILED
        ),
        detail=detail,
    )
