#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""Running the steps of a scenario on a cloud."""

from collections.abc import Callable
import dataclasses
import time
import typing

from nova.tests.functional.api import client

from nova_ext_sched.simulator import cloud
from nova_ext_sched.simulator import expectation
from nova_ext_sched.simulator import hostnames
from nova_ext_sched.simulator import scenario

# Seconds between two looks at a server, and until one is given up.
_POLL = 0.03
_PATIENCE = 120

# Microversion 2.60 and later name these in a server's representation.
_HOST = 'OS-EXT-SRV-ATTR:host'
_TASK = 'OS-EXT-STS:task_state'

_NO_VALID_HOST = 'No valid host'

Server = dict[str, typing.Any]
Placements = list[expectation.Placement]


class Steps:
    """Does what steps say, and tells where their servers are afterwards.

    :param on: a cloud that stands
    :param placed: called whenever a server is where its step puts it
    """

    def __init__(
        self, on: cloud.Cloud, placed: Callable[[], None] = lambda: None
    ) -> None:
        self._cloud = on
        self._placed = placed
        self._api = on.client(scenario.DEFAULT_PROJECT)
        #: Ids of the servers that were booted, by name.
        self._ids: dict[str, str] = {}
        self._actions: dict[str, Callable[[scenario.Step], Placements]] = {
            'boot': self._boot,
            'rebuild': self._rebuild,
            'resize': self._resize,
            'migrate': self._migrate,
            'evacuate': self._evacuate,
            'shelve': self._shelve,
            'unshelve': self._unshelve,
            'delete': self._delete,
            'aggregate': self._aggregate,
        }

    def run(self, step: scenario.Step) -> tuple[expectation.Placement, ...]:
        """Do one step and wait for its end."""
        return tuple(
            dataclasses.replace(
                placement, detail=self._named(placement.detail)
            )
            for placement in self._actions[step.action](step)
        )

    def _named(self, text: str) -> str:
        # nova speaks of servers by id, which is another in each run.
        for name, server_id in self._ids.items():
            text = text.replace(server_id, name)
        return text

    def _boot(self, step: scenario.Step) -> Placements:
        names = step.servers
        if not step.arguments.get('multi_create'):
            # One after the other, so that each is placed by what the ones
            # before it left.
            return [
                self._create(name, [name], step)[0] for name in names
            ]
        return self._create(str(step.target), names, step)

    def _create(
        self, name: str, names: list[str], step: scenario.Step
    ) -> Placements:
        """Ask for servers in one request; nova names several itself."""
        api = self._cloud.client(
            step.arguments.get('project', scenario.DEFAULT_PROJECT)
        )
        body = self._boot_body(name, step.arguments)
        body['server'].update(
            min_count=len(names),
            max_count=len(names),
            return_reservation_id=True,
        )
        try:
            reservation = api.api_post('/servers', body).body[
                'reservation_id'
            ]
        except client.OpenStackApiException as exc:
            return [_refusal(name, exc) for name in names]
        self._ids.update(
            (server['name'], server['id'])
            for server in api.api_get(
                f'/servers?reservation_id={reservation}'
            ).body['servers']
        )
        return [self._after_boot(name) for name in names]

    def _boot_body(
        self, name: str, arguments: dict[str, typing.Any]
    ) -> dict[str, typing.Any]:
        image = arguments.get('image', cloud.DEFAULT_IMAGE)
        server: dict[str, typing.Any] = {
            'name': name,
            'flavorRef': self._cloud.flavor_ids[arguments['flavor']],
            'networks': 'none',
        }
        for key in ('availability_zone', 'host'):
            if key in arguments:
                server[key] = arguments[key]
        if arguments.get('volume'):
            server['block_device_mapping_v2'] = [
                {
                    'boot_index': 0,
                    'source_type': 'volume',
                    'destination_type': 'volume',
                    'uuid': self._cloud.volumes.create(
                        self._cloud.image_properties[image]
                    ),
                }
            ]
        else:
            server['imageRef'] = self._cloud.image_ids[image]
        body: dict[str, typing.Any] = {'server': server}
        hints = {
            key: self._hint(value)
            for key, value in arguments.get('hints', {}).items()
        }
        if 'group' in arguments:
            hints['group'] = self._cloud.group_ids[arguments['group']]
        if hints:
            body['os:scheduler_hints'] = hints
        return body

    def _hint(self, value: typing.Any) -> typing.Any:
        if isinstance(value, list):
            return [self._hint(item) for item in value]
        # same_host and the like name servers, by id.
        return self._ids.get(value, value)

    def _after_boot(self, name: str) -> expectation.Placement:
        server = self._wait(
            name, lambda server: server['status'] in ('ACTIVE', 'ERROR')
        )
        return self._placement(name, server)

    def _rebuild(self, step: scenario.Step) -> Placements:
        image = self._cloud.image_ids[step.arguments['image']]
        return self._act(step, {'rebuild': {'imageRef': image}})

    def _resize(self, step: scenario.Step) -> Placements:
        flavor = self._cloud.flavor_ids[step.arguments['flavor']]
        return self._move(step, {'resize': {'flavorRef': flavor}})

    def _migrate(self, step: scenario.Step) -> Placements:
        host = step.arguments.get('host')
        if step.arguments.get('live'):
            return self._act(
                step,
                {'os-migrateLive': {'host': host, 'block_migration': 'auto'}},
                event_of='live-migration',
            )
        return self._move(step, {'migrate': {'host': host} if host else None})

    def _move(self, step: scenario.Step, body: Server) -> Placements:
        (action,) = body
        placements = self._act(step, body, event_of=action)
        if step.arguments.get('confirm', True):
            for placement in placements:
                if placement.failure is None and placement.server:
                    self._confirm(placement.server)
        return placements

    def _confirm(self, name: str) -> None:
        self._post(name, {'confirmResize': None})
        self._wait(name, lambda server: server['status'] == 'ACTIVE')
        # The source host's allocation goes after the server's status.
        self._events(name, 'confirmResize')

    def _evacuate(self, step: scenario.Step) -> Placements:
        for name in step.servers:
            host = self._show(name).get(_HOST, '')
            for service in self._api.get_services('nova-compute', host):
                self._api.put_service(service['id'], {'forced_down': True})
        return self._act(step, {'evacuate': {}}, event_of='evacuate')

    def _shelve(self, step: scenario.Step) -> Placements:
        return self._act(
            step,
            {'shelve': None},
            done=lambda server: (
                server['status'] in ('SHELVED_OFFLOADED', 'ERROR')
            ),
            hosted=False,
        )

    def _unshelve(self, step: scenario.Step) -> Placements:
        return self._act(step, {'unshelve': None})

    def _delete(self, step: scenario.Step) -> Placements:
        placements = []
        for name in step.servers:
            try:
                self._api.api_delete(f'/servers/{self._id(name)}')
            except client.OpenStackApiException as exc:
                placements.append(_refusal(name, exc))
                continue
            self._wait(name, lambda server: server['status'] == 'DELETED')
            placements.append(expectation.Placement(name))
        return placements

    def _aggregate(self, step: scenario.Step) -> Placements:
        name = str(step.target)
        url = f'/os-aggregates/{self._cloud.aggregate_ids[name]}'
        arguments = step.arguments
        metadata: dict[str, str | None] = {
            key: str(value) for key, value in arguments.get('set', {}).items()
        }
        metadata.update(dict.fromkeys(arguments.get('unset', ())))
        actions: list[Server] = []
        if metadata:
            actions.append({'set_metadata': {'metadata': metadata}})
        for key, verb in (('add_hosts', 'add'), ('remove_hosts', 'remove')):
            actions += [
                {f'{verb}_host': {'host': host}}
                for host in hostnames.expand_all(arguments.get(key, ()))
            ]
        for action in actions:
            try:
                self._api.api_post(f'{url}/action', action)
            except client.OpenStackApiException as exc:
                return [_refusal(None, exc)]
        self._cloud.imply_traits()
        wanted = self._api.api_get(url).body['aggregate']
        self._until(lambda: self._scheduler_knows(name, wanted))
        return [expectation.Placement(None)]

    def _scheduler_knows(self, name: str, wanted: Server) -> bool:
        # nova-api tells the scheduler of the change by a cast.
        known = self._cloud.scheduler_aggregate(name)
        return (
            known is not None
            and known.metadata == wanted['metadata']
            and set(known.hosts) == set(wanted['hosts'])
        )

    def _act(
        self,
        step: scenario.Step,
        body: Server,
        event_of: str | None = None,
        done: Callable[[Server], bool] | None = None,
        hosted: bool = True,
    ) -> Placements:
        """Do one action of nova-api to each server of a step.

        :param event_of: the instance action whose events tell a failure that
            leaves the server as it was
        :param done: when the action is over; by default when the server has
            no task
        :param hosted: whether the server has a host afterwards
        """
        placements = []
        for name in step.servers:
            try:
                self._post(name, body)
            except client.OpenStackApiException as exc:
                placements.append(_refusal(name, exc))
                continue
            server = self._wait(
                name, done or (lambda server: server[_TASK] is None)
            )
            placement = self._placement(name, server, hosted)
            if event_of and placement.failure is None:
                placement = self._failed_quietly(placement, event_of)
            placements.append(placement)
        return placements

    def _failed_quietly(
        self, placement: expectation.Placement, action: str
    ) -> expectation.Placement:
        assert placement.server is not None
        for event in self._events(placement.server, action):
            if str(event['result']).lower() == 'error':
                detail = event.get('details') or event.get('traceback') or ''
                return _failure(placement.server, detail.strip())
        return placement

    def _events(self, name: str, action: str) -> list[Server]:
        """Return the events of a server's newest action of a kind.

        Waits until each has its result.
        """
        server_id = self._ids[name]
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

        self._until(finished)
        return events

    def _post(self, name: str, body: Server) -> None:
        self._api.api_post(f'/servers/{self._id(name)}/action', body)

    def _id(self, name: str) -> str:
        # A server that nova refused to make is one that nova does not know.
        return self._ids.get(name, name)

    def _show(self, name: str) -> Server:
        try:
            return self._api.get_server(self._id(name))
        except client.OpenStackApiNotFoundException:
            return {'status': 'DELETED', _TASK: None, _HOST: None}

    def _wait(self, name: str, done: Callable[[Server], bool]) -> Server:
        server = self._show(name)

        def look() -> bool:
            server.clear()
            server.update(self._show(name))
            return done(server)

        if not self._until(look):
            server['timed_out'] = True
        return server

    @staticmethod
    def _until(done: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + _PATIENCE
        while not done():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL)
        return True

    def _placement(
        self, name: str, server: Server, hosted: bool = True
    ) -> expectation.Placement:
        self._placed()
        if server.get('timed_out'):
            return expectation.Placement(
                name,
                failure=expectation.FAILED,
                detail=f'still {server["status"]}, task {server[_TASK]}, '
                f'after {_PATIENCE} seconds',
            )
        if server['status'] == 'ERROR':
            fault = server.get('fault', {}).get('message', '')
            return _failure(name, fault)
        host = server.get(_HOST)
        if hosted and not host:
            # unshelve leaves a server that fits nowhere as it was.
            return _failure(name, _NO_VALID_HOST)
        return expectation.Placement(name, host=host if hosted else None)


def _refusal(
    name: str | None, exc: client.OpenStackApiException
) -> expectation.Placement:
    return expectation.Placement(
        name, failure=expectation.REFUSED, detail=cloud.api_message(exc)
    )


def _failure(name: str, detail: str) -> expectation.Placement:
    no_valid_host = _NO_VALID_HOST in detail or 'NoValidHost' in detail
    return expectation.Placement(
        name,
        failure=(
            expectation.NO_VALID_HOST if no_valid_host else expectation.FAILED
        ),
        detail=detail,
    )
