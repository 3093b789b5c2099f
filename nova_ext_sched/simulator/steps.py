# SPDX-License-Identifier: Apache-2.0

"""Runs the steps of a scenario on a cloud."""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import time
import typing

from nova.tests.functional.api import client

from nova_ext_sched.simulator import cloud
from nova_ext_sched.simulator import expectation
from nova_ext_sched.simulator import explanations
from nova_ext_sched.simulator import hostnames
from nova_ext_sched.simulator import scenario

# Seconds between two looks at a server: the first pause and the longest.
_PAUSES = 0.05, 0.4
# Seconds after which a server is given up.
_PATIENCE = 120

# The beginning of nova's words for expectation.NO_VALID_HOST.
_NOVA_SAYS = 'No valid host'

HOST = 'OS-EXT-SRV-ATTR:host'
TASK = 'OS-EXT-STS:task_state'

# The instance action of each API action whose failure only the events of the
# instance action show.
_INSTANCE_ACTIONS = {
    'resize': 'resize',
    'migrate': 'migrate',
    'os-migrateLive': 'live-migration',
    'evacuate': 'evacuate',
    'unshelve': 'unshelve',
}
# API actions after which the server waits for confirmation.
_CONFIRMED = {'resize', 'migrate'}

Body = dict[str, typing.Any]
Placement = expectation.Placement
Placements = list[Placement]


class Steps:
    """Carries out steps, and returns their outcomes.

    :param simulated: a cloud that has been started
    """

    def __init__(self, simulated: cloud.Cloud) -> None:
        self._cloud = simulated
        self._api = simulated.client(scenario.DEFAULT_PROJECT)
        # UUIDs of servers, by the name in the scenario.
        self._ids: dict[str, str] = {}
        self._groups: dict[str, str | None] = {}

    def run(self, step: scenario.Step) -> expectation.Outcome:
        """Carry out one step and wait for its end."""
        if step.action == 'boot':
            placements = self._boot(step)
        elif step.action == 'aggregate':
            placements = [self._change_aggregate(step)]
        else:
            placements = self._act(step)
        outcome = expectation.Outcome(
            # A shelved or deleted server has no host, although nova may still
            # show the last one.
            [
                one if step.places else dataclasses.replace(one, host=None)
                for one in placements
            ],
            warnings=self._cloud.readable(self._cloud.warnings.take()),
            domains={
                key: self._cloud.domains(key, self._find_group_hosts(step))
                for key in step.domain_keys
            },
        )
        explained = self._cloud.explanations.take()
        unused: list[str] = []
        if explained:
            # Explain the last server: it found the least room.
            uuid, last = [*explained.items()][-1]
            landed = next(
                (
                    one.host
                    for one in outcome.placements
                    if self._ids.get(str(one.server)) == uuid
                ),
                None,
            )
            hosts = step.expect.find_unused(outcome)
            unused = explanations.say_unused(last, hosts, landed)
        reasons = self._reasons(outcome.placements, explained)
        return dataclasses.replace(
            outcome,
            reasons=self._cloud.readable(reasons),
            unused=self._cloud.readable(unused),
        )

    def _reasons(
        self,
        placements: Sequence[Placement],
        explained: dict[str, explanations.Document],
    ) -> list[str]:
        """Return why the first server that failed did so.

        The reason is in nova's words, unless the scheduler found no host and
        an explanation agrees. If no server failed, return why the last one
        landed on its host.
        """
        for placement in placements:
            if placement.failure:
                uuid = self._ids.get(str(placement.server), '')
                document = explained.get(uuid)
                if (
                    placement.failure != expectation.NO_VALID_HOST
                    or document is None
                    or document['answer']['finds_host']
                ):
                    return [placement.detail]
                return explanations.say_lines(document)
        if explained:
            return explanations.say_lines([*explained.values()][-1])
        return []

    def _find_group_hosts(self, step: scenario.Step) -> list[str]:
        """Return the hosts of the step's servers and their groups' members."""
        groups = {self._groups.get(name) for name in step.servers} - {None}
        members = {
            *step.servers,
            *(name for name, group in self._groups.items() if group in groups),
        }
        return [host for name in members if (host := self._show(name)[HOST])]

    def _boot(self, step: scenario.Step) -> Placements:
        # One after the other, so that each gets the room that the ones before
        # it left.
        requests = [(name, [name]) for name in step.servers]
        if step.arguments.get('multi_create'):
            requests = [(str(step.target), [*step.servers])]
        return [
            placement
            for name, names in requests
            for placement in self._create(name, names, step)
        ]

    def _create(
        self, name: str, names: list[str], step: scenario.Step
    ) -> Placements:
        """Create servers in one request, and wait for them.

        :param name: the name in the request; if it makes several servers, nova
            derives their names from it
        :param names: the names of the servers, as nova derives them
        """
        api = self._cloud.client(
            step.arguments.get('project', scenario.DEFAULT_PROJECT)
        )
        body = self._boot_body(name, len(names), step.arguments)
        try:
            made = api.api_post('/servers', body).body
        except client.OpenStackApiException as exc:
            return [_refusal(name, exc) for name in names]
        if 'server' in made:
            servers = {name: made['server']['id']}
        else:
            url = f'/servers?reservation_id={made["reservation_id"]}'
            servers = {
                server['name']: server['id']
                for server in api.api_get(url).body['servers']
            }
        for server, id_ in servers.items():
            self._ids[server] = id_
            self._cloud.names[id_] = server
            if 'group' in step.arguments:
                self._groups[server] = step.arguments['group']
        placements = []
        for server in names:
            placements.append(self._wait_until_settled(server))
            self._cloud.progress('Placing servers')
        return placements

    def _boot_body(self, name: str, count: int, arguments: Body) -> Body:
        image = arguments.get('image', cloud.DEFAULT_IMAGE)
        server: Body = {
            'name': name,
            'flavorRef': self._cloud.flavor_ids[arguments['flavor']],
            'networks': 'none',
            'min_count': count,
            'max_count': count,
            # Without it nova-api's answer has only the first server.
            'return_reservation_id': count > 1,
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
                    'uuid': self._cloud.create_volume(image),
                }
            ]
        else:
            server['imageRef'] = self._cloud.image_ids[image]
        hints = {
            key: self._hint(value)
            for key, value in arguments.get('hints', {}).items()
        }
        if 'group' in arguments:
            hints['group'] = self._cloud.group_ids[arguments['group']]
        return {'server': server, 'os:scheduler_hints': hints}

    def _hint(self, value: typing.Any) -> typing.Any:
        if isinstance(value, list):
            return [self._hint(item) for item in value]
        # same_host and similar hints have the UUIDs of servers.
        return self._ids.get(value, value)

    def _change_aggregate(self, step: scenario.Step) -> Placement:
        name = str(step.target)
        url = f'/os-aggregates/{self._cloud.aggregate_ids[name]}'
        try:
            for action in _aggregate_actions(step.arguments):
                self._api.api_post(f'{url}/action', action)
        except client.OpenStackApiException as exc:
            return _refusal(None, exc)
        # If the scenario implies traits, the hosts of the aggregate get those
        # that it requires; new hosts lack them.
        self._cloud.give_implied_traits()
        return Placement(None)

    def _act(self, step: scenario.Step) -> Placements:
        """Request an action of nova-api for each server of a step."""
        body = self._action_body(step)
        # The only key of the body is the API action; a deletion has none.
        action = next(iter(body or ()), None)
        if step.action == 'evacuate':
            # nova evacuates only from a host that is down. Servers without a
            # host (None) have none to force down.
            hosts = {self._show(name)[HOST] for name in step.servers}
            for host in hosts - {None}:
                for service in self._api.get_services('nova-compute', host):
                    self._api.put_service(service['id'], {'forced_down': True})
        placements = []
        for name in step.servers:
            try:
                self._request(name, body)
            except client.OpenStackApiException as exc:
                placements.append(_refusal(name, exc))
            else:
                placements.append(self._wait_for_action(name, action))
                self._cloud.progress('Placing servers')
        if action in _CONFIRMED and step.arguments.get('confirm', True):
            for placement in placements:
                if placement.failure is None:
                    name = str(placement.server)
                    self._request(name, {'confirmResize': None})
                    # nova frees the source host's allocation last, so wait for
                    # the event.
                    self._wait_for_events(name, 'confirmResize')
        return placements

    def _wait_for_action(self, name: str, action: str | None) -> Placement:
        """Wait for the end of an action on a server; return its placement."""
        placement = self._wait_until_settled(name)
        if action in _INSTANCE_ACTIONS and placement.failure is None:
            error = self._wait_for_events(name, _INSTANCE_ACTIONS[action])
            if error is not None:
                return _failure(name, error)
            # The server may have been read before the action had set its task:
            # read it again.
            return self._wait_until_settled(name)
        return placement

    def _action_body(self, step: scenario.Step) -> Body | None:
        """Return the body of the request to nova-api; None to delete."""
        arguments = step.arguments
        host = arguments.get('host')
        match step.action:
            case 'rebuild':
                image = self._cloud.image_ids[arguments['image']]
                return {'rebuild': {'imageRef': image}}
            case 'resize':
                flavor = self._cloud.flavor_ids[arguments['flavor']]
                return {'resize': {'flavorRef': flavor}}
            case 'migrate' if arguments.get('live'):
                live = {'host': host, 'block_migration': 'auto'}
                return {'os-migrateLive': live}
            case 'migrate':
                return {'migrate': {'host': host} if host else None}
            case 'evacuate':
                return {'evacuate': {}}
            case 'reset':
                return {'os-resetState': {'state': 'active'}}
            case 'delete':
                return None
        # shelve, unshelve
        return {step.action: None}

    def _request(self, name: str, body: Body | None) -> None:
        # A server that nova refused to make has no UUID: nova answers 404 to
        # its name.
        url = f'/servers/{self._ids.get(name, name)}'
        if body is None:
            self._api.api_delete(url)
        else:
            self._api.api_post(f'{url}/action', body)

    def _show(self, name: str) -> Body:
        try:
            return self._api.get_server(self._ids.get(name, name))
        except client.OpenStackApiNotFoundException:
            return {'status': 'DELETED', TASK: None, HOST: None}

    def _wait_until_settled(self, name: str) -> Placement:
        """Wait until a server has no task; return its host or failure.

        A server that keeps its task for too long has failed.
        """
        server = _look_until(_is_settled, lambda: self._show(name))
        status, task = server['status'], server[TASK]
        if not _is_settled(server):
            return Placement(
                name,
                failure=expectation.FAILED,
                detail=f'still {status}, task {task}, after {_PATIENCE} '
                'seconds',
            )
        if status == 'ERROR':
            return _failure(name, server['fault']['message'])
        return Placement(name, host=server[HOST])

    def _wait_for_events(self, name: str, action: str) -> str | None:
        """Wait for the end of a server's newest instance action of a name.

        :param action: the name of the instance action
        :returns: the failure in its events; None if they have none
        """

        def read_events() -> list[Body]:
            newest = next(
                item
                for item in self._api.get_instance_actions(self._ids[name])
                if item['action'] == action
            )
            return self._api.get_instance_action_details(
                self._ids[name], newest['request_id']
            )['events']

        events = _look_until(
            lambda seen: seen and all(event['result'] for event in seen),
            read_events,
        )
        for event in events:
            if str(event['result']).lower() == 'error':
                text = event.get('details') or event.get('traceback') or ''
                return text.strip() or f'{event["event"]} failed'
        return None


def _is_settled(server: Body) -> bool:
    return (
        server['status'] != 'BUILD'
        and server[TASK] is None
        # nova sets the status before it records the reason.
        and (server['status'] != 'ERROR' or 'fault' in server)
    )


def _look_until(
    is_final: Callable[[typing.Any], typing.Any],
    look: Callable[[], typing.Any],
) -> typing.Any:
    """Look until the result is final or time is over; return the last one."""
    deadline = time.monotonic() + _PATIENCE
    pause, longest = _PAUSES
    while not is_final(seen := look()) and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(2 * pause, longest)
    return seen


def _refusal(name: str | None, exc: client.OpenStackApiException) -> Placement:
    """Return the placement of a server whose request nova-api refused."""
    try:
        (fault,) = exc.response.json().values()
        detail = f'{exc.response.status_code}: {fault["message"]}'
    except (AttributeError, ValueError, TypeError, KeyError):
        detail = str(exc)
    return Placement(name, failure=expectation.REFUSED, detail=detail)


def _failure(name: str | None, detail: str) -> Placement:
    """Return the placement of a failed server.

    :param detail: nova's reason, which tells NO_VALID_HOST from FAILED
    """
    failure = expectation.FAILED
    if _NOVA_SAYS in detail or 'NoValidHost' in detail:
        failure = expectation.NO_VALID_HOST
    return Placement(name, failure=failure, detail=detail)


def _aggregate_actions(arguments: Body) -> list[Body]:
    """Return the bodies of the API requests that change an aggregate."""
    metadata: dict[str, str | None] = dict(arguments.get('set', {}))
    # nova-api removes a key that is set to null.
    metadata.update(dict.fromkeys(arguments.get('unset', ())))
    actions: list[Body] = []
    if metadata:
        actions.append({'set_metadata': {'metadata': metadata}})
    for key, verb in (('add_hosts', 'add'), ('remove_hosts', 'remove')):
        actions += [
            {f'{verb}_host': {'host': host}}
            for host in hostnames.expand_all(arguments.get(key, ()))
        ]
    return actions
