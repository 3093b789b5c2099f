# SPDX-License-Identifier: Apache-2.0

"""Running the steps of a scenario on a cloud."""

from collections.abc import Callable
import dataclasses
import typing

from nova.tests.functional.api import client

from nova_ext_sched.simulator import cloud
from nova_ext_sched.simulator import expectation
from nova_ext_sched.simulator import hostnames
from nova_ext_sched.simulator import reasons as sim_reasons
from nova_ext_sched.simulator import scenario
from nova_ext_sched.simulator import servers

Body = dict[str, typing.Any]
Placements = list[expectation.Placement]


class Steps:
    """Does what steps say, and shows where their servers are afterwards.

    :param simulated: a cloud that stands
    :param reasons: collects what its scheduler logs
    :param progress: called when a server is where its step puts it
    """

    def __init__(
        self,
        simulated: cloud.Cloud,
        reasons: sim_reasons.Reasons,
        progress: Callable[[], None],
    ) -> None:
        self._cloud = simulated
        self._reasons = reasons
        self._progress = progress
        self._api = simulated.client(scenario.DEFAULT_PROJECT)
        self._groups: dict[str, str] = {}
        self._servers = servers.Servers(self._api)

    def run(self, step: scenario.Step) -> expectation.Outcome:
        """Do one step and wait for its end."""
        self._reasons.take()
        placements = [
            dataclasses.replace(
                placement,
                # nova still shows where a deleted server was.
                host=placement.host if step.places else None,
                detail=self._cloud.readable(placement.detail),
            )
            for placement in getattr(self, f'_{step.action}')(step)
        ]
        return expectation.Outcome(
            placements,
            reason=self._cloud.readable(
                sim_reasons.explain(
                    self._reasons.take(),
                    [item.detail for item in placements if item.failure],
                )
            ),
            domains={
                key: self._cloud.domains(key, self._hosts_of_groups(step))
                for key in step.domain_keys
            },
        )

    def _hosts_of_groups(self, step: scenario.Step) -> list[str]:
        """Return where the members of the step's groups stand."""
        groups = {self._groups.get(name) for name in step.servers} - {None}
        members = {
            *step.servers,
            *(name for name, group in self._groups.items() if group in groups),
        }
        shown = [self._servers.show(name)[servers.HOST] for name in members]
        return [host for host in shown if host]

    def _boot(self, step: scenario.Step) -> Placements:
        names = list(step.servers)
        if not step.arguments.get('multi_create'):
            # One after the other, so that each is placed by what the ones
            # before it left.
            return [self._create(name, [name], step)[0] for name in names]
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
            reservation = api.api_post('/servers', body).body['reservation_id']
        except client.OpenStackApiException as exc:
            return [servers.refusal(name, exc) for name in names]
        for server in api.api_get(
            f'/servers?reservation_id={reservation}'
        ).body['servers']:
            self._servers.ids[server['name']] = server['id']
            self._cloud.names[server['id']] = server['name']
            if 'group' in step.arguments:
                self._groups[server['name']] = step.arguments['group']
        return [
            self._settled(
                name, lambda server: server['status'] in ('ACTIVE', 'ERROR')
            )
            for name in names
        ]

    def _boot_body(
        self, name: str, arguments: dict[str, typing.Any]
    ) -> dict[str, Body]:
        image = arguments.get('image', cloud.DEFAULT_IMAGE)
        server: Body = {
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
        # same_host and the like name servers, by id.
        return self._servers.ids.get(value, value)

    def _rebuild(self, step: scenario.Step) -> Placements:
        image = self._cloud.image_ids[step.arguments['image']]
        return self._act(step, {'rebuild': {'imageRef': image}})

    def _resize(self, step: scenario.Step) -> Placements:
        flavor = self._cloud.flavor_ids[step.arguments['flavor']]
        return self._move(step, {'resize': {'flavorRef': flavor}})

    def _migrate(self, step: scenario.Step) -> Placements:
        host = step.arguments.get('host')
        if step.arguments.get('live'):
            body = {'host': host, 'block_migration': 'auto'}
            return self._act(step, {'os-migrateLive': body}, 'live-migration')
        return self._move(step, {'migrate': {'host': host} if host else None})

    def _move(self, step: scenario.Step, body: Body) -> Placements:
        (action,) = body
        placements = self._act(step, body, action)
        if step.arguments.get('confirm', True):
            for placement in placements:
                if placement.failure is None and placement.server:
                    self._confirm(placement.server)
        return placements

    def _confirm(self, name: str) -> None:
        self._servers.post(name, {'confirmResize': None})
        self._servers.wait(name, lambda server: server['status'] == 'ACTIVE')
        # The source host's allocation goes after the server's status.
        self._servers.wait_for_events(name, 'confirmResize')

    def _evacuate(self, step: scenario.Step) -> Placements:
        for name in step.servers:
            # nova evacuates from a host that is down.
            host = self._servers.show(name)[servers.HOST]
            for service in self._api.get_services('nova-compute', host):
                self._api.put_service(service['id'], {'forced_down': True})
        return self._act(step, {'evacuate': {}}, 'evacuate')

    def _reset(self, step: scenario.Step) -> Placements:
        return self._act(step, {'os-resetState': {'state': 'active'}})

    def _shelve(self, step: scenario.Step) -> Placements:
        return self._act(
            step,
            {'shelve': None},
            done=lambda server: (
                server['status'] in ('SHELVED_OFFLOADED', 'ERROR')
                and server[servers.TASK] is None
            ),
        )

    def _unshelve(self, step: scenario.Step) -> Placements:
        return [
            # A server that fits nowhere stays as it was, without an event.
            servers.failure(placement.server, servers.NO_VALID_HOST)
            if placement.server
            and placement == expectation.Placement(placement.server)
            else placement
            for placement in self._act(step, {'unshelve': None})
        ]

    def _delete(self, step: scenario.Step) -> Placements:
        placements = []
        for name in step.servers:
            try:
                self._servers.delete(name)
            except client.OpenStackApiException as exc:
                placements.append(servers.refusal(name, exc))
            else:
                placements.append(
                    self._settled(
                        name, lambda server: server['status'] == 'DELETED'
                    )
                )
        return placements

    def _aggregate(self, step: scenario.Step) -> Placements:
        name = str(step.target)
        url = f'/os-aggregates/{self._cloud.aggregate_ids[name]}'
        for action in _aggregate_actions(step.arguments):
            try:
                self._api.api_post(f'{url}/action', action)
            except client.OpenStackApiException as exc:
                return [servers.refusal(None, exc)]
        self._cloud.imply_traits()
        wanted = self._api.api_get(url).body['aggregate']
        servers.until(lambda: self._scheduler_knows(name, wanted))
        return [expectation.Placement(None)]

    def _scheduler_knows(self, name: str, wanted: Body) -> bool:
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
        body: Body,
        event_of: str | None = None,
        done: Callable[[servers.Server], bool] = (
            lambda server: server[servers.TASK] is None
        ),
    ) -> Placements:
        """Do one action of nova-api to each server of a step.

        :param event_of: the instance action whose events tell a failure that
            leaves the server as it was
        :param done: when the action is over; by default when the server has
            no task
        """
        placements = []
        for name in step.servers:
            try:
                self._servers.post(name, body)
            except client.OpenStackApiException as exc:
                placements.append(servers.refusal(name, exc))
                continue
            placement = self._settled(name, done)
            if event_of and placement.failure is None:
                events = self._servers.wait_for_events(name, event_of)
                # An evacuated server has no task before it has its new host.
                placement = servers.failed_event(
                    name, events
                ) or servers.placement(self._servers.show(name), name)
            placements.append(placement)
        return placements

    def _settled(
        self, name: str, done: Callable[[servers.Server], bool]
    ) -> expectation.Placement:
        server = self._servers.wait(name, done)
        self._progress()
        return servers.placement(server, name)


def _aggregate_actions(arguments: dict[str, typing.Any]) -> list[Body]:
    """Return the bodies of the API requests that change an aggregate."""
    metadata: dict[str, str | None] = {
        key: str(value) for key, value in arguments.get('set', {}).items()
    }
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
