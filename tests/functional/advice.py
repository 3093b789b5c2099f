# SPDX-License-Identifier: Apache-2.0

"""What explain says would help, done by its commands on a real nova."""

import itertools
import os
import re
import shlex

from nova import context as nova_context
from nova.cmd import manage
from nova.tests import fixtures as nova_fixtures

from nova_ext_sched.cmd import make_room
from nova_ext_sched.dryrun.decision import refusals
from tests.functional import explain
from tests.functional import plans
from tests.functional import promises


class AdviceMixin(plans.MovesMixin):
    """Asks for servers that have no host, and does what is said to help."""

    arguments = promises.Row.arguments

    def setUp(self):
        super().setUp()
        self.openstack = self.use_client()
        #: What was said of each request: its first act, and whether tried.
        self.acts = []
        #: Numbers of hosts that are added.
        self.added = itertools.count(len(self.computes) + 6)

    def ask(self, **server):
        """Explain a request that has no host; return its answer."""
        answer = explain.read(*self.arguments(**server))
        self.assertFalse(answer.document['answer']['finds_host'], answer)
        return answer.document['answer']

    def run_commands(self, commands):
        """Do what a shell would do with the lines; return make-room's plan."""
        plan = None
        for line in commands:
            program, *words = shlex.split(line)
            if program == 'openstack':
                status, said = self.openstack.run(*words)
                self.assertEqual(0, status, f'{line}: {said}')
                if words[:2] == ['server', 'migrate']:
                    self.wait_until_idle({'id': words[-1]})
                    self.sync_instances()
            elif words == ['placement', 'sync_aggregates']:
                self.assertEqual(
                    0, manage.PlacementCommands().sync_aggregates()
                )
            elif words[0] == 'make-room':
                plan = explain.ask(make_room.MakeRoom, *words).plan
                self.carry_out(plan)
            else:
                self.assertEqual(['cell_v2', 'discover_hosts'], words)
                manage.CellV2Commands().discover_hosts()
        return plan

    def do(self, said, server):
        """Do an act by its commands, or by what its words say.

        :param said: the act, as the document has it
        :param server: the request, see ``boot``
        :returns: the request to make then
        """
        parts = said['act'].split(', and ')
        if said['commands']:
            plan = self.run_commands(said['commands'])
            if plan is None or plan['room_on']:
                return server
            # No move makes room.
            parts = [one for one in parts if one.startswith('free ')]
        for words in parts:
            for pattern, do in _DONE.items():
                if found := re.fullmatch(pattern, words):
                    server = server | (do(self, server, *found.groups()) or {})
                    break
            else:
                self.fail(f'Nobody knows how to {words}')
        return server

    def free(self, server, amounts, hosts):
        """Delete the fewest servers of a host that hold as much."""
        wanted = {
            name: int(number)
            for number, name in (one.split() for one in amounts.split(', '))
        }
        uuid = self._get_provider_uuid_by_host(_names(hosts)[0])
        known = {one['id'] for one in self.admin_api.get_servers()}
        if group := (server.get('hints') or {}).get('group'):
            url = f'/os-server-groups/{group}'
            known -= {*self.api.api_get(url).body['server_group']['members']}
        held = {
            consumer: body['resources']
            for consumer, body in self._get_allocations_by_provider_uuid(
                uuid
            ).items()
            if consumer in known
        }

        def least(consumer):
            return [held[consumer].get(name, 0) for name in wanted]

        order = sorted(held, key=least)
        enough = [
            one
            for one in order
            if all(held[one].get(name, 0) >= n for name, n in wanted.items())
        ]
        for consumer in enough[:1] or reversed(order):
            if all(number <= 0 for number in wanted.values()):
                break
            self._delete_server({'id': consumer})
            for name in wanted:
                wanted[name] -= held[consumer].get(name, 0)

    def add_another(self, _, host):
        """Start a nova-compute like another: its aggregates and traits."""
        # nova 29 lists no host that comes again after its service was deleted.
        name = f'host{next(self.added)}'
        self._start_compute(name)
        for one in self.admin_api.api_get('/os-aggregates').body['aggregates']:
            if host in one['hosts']:
                self.admin_api.add_host_to_aggregate(one['id'], name)
        mine, its = map(self._get_provider_uuid_by_host, (name, host))
        self._set_provider_traits(
            mine,
            # nova 29's helper takes no set.
            sorted(
                {*self._get_provider_traits(its)} - {'COMPUTE_STATUS_DISABLED'}
            ),
        )
        for class_, one in self._get_provider_inventory(its).items():
            self.limit(name, class_, **one)

    def add_domain(self, server, host):
        """Start a nova-compute like another, in a further domain."""
        self.add_another(server, host)
        *_, name = self.computes
        for one in self.admin_api.api_get('/os-aggregates').body['aggregates']:
            if name in one['hosts'] and 'failure_domain' in one['metadata']:
                self.admin_api.remove_host_from_aggregate(one['id'], name)
        self.aggregate('another', [name], failure_domain='another')

    def ask_group(self, _, limit):
        return {'hints': {'group': self.create_group(int(limit))}}

    def configure(self, *hosts, **values):
        """Let nova-computes have options until the row ends."""

        def report():
            for host in hosts or self.computes:
                self.computes[host].manager.update_available_resource(
                    nova_context.get_admin_context()
                )

        self.undone.append(report)
        self.option(None, **values)
        report()

    def change_amount(self, _, option, value, host):
        self.configure(host, **{option: float(value)})

    def raise_option(self, _, group, name, value):
        self.option(group, **{name: int(value)})

    def change_services(self, hosts, **fields):
        for host in _names(hosts):
            self.set_service(host, **fields)

    def restart(self, _, hosts):
        for host in _names(hosts):
            compute = self.computes[host]
            self.computes[host] = self.restart_compute_service(compute)

    def take_out(self, _, hosts, names):
        for name in _names(names):
            for host in _names(hosts):
                self.remove_host(name, host)

    def ask_no_host(self, server):
        # One that is forced is part of the zone.
        return {'host': None} if server.get('host') else {'az': None}

    def ask_flavor(self, _, name):
        flavors = self.api.api_get('/flavors').body['flavors']
        return {
            'flavor': next(one['id'] for one in flavors if one['name'] == name)
        }

    def check(
        self,
        cause,
        *acts,
        kind='repair',
        which=0,
        do=None,
        then=None,
        **server,
    ):
        """Check what is said of a request, do an act, and boot it.

        :param cause: the first one, with its number of hosts
        :param acts: the first ones; None where there is none
        :param kind: of the one that is done
        :param which: its place among them
        :param do: what does it where neither a command nor its words do
        :param then: what the request has instead
        """
        answer = self.ask(**server)
        said = [one['act'] for one in answer['advice']]
        [first, *_] = answer['reasons'] or [None]
        shown = (
            refusals.say_number(first['hosts'], first['reason'])
            if first
            else answer['sentence']
        )
        self.assertEqual(cause, shown)
        # Not all are refused by the scheduler.
        self.boot(expected_state='ERROR', **server)
        if acts == (None,):
            self.assertEqual([], said)
            self.acts.append(None)
            return
        self.assertEqual([*acts], said[: len(acts)])
        done = answer['advice'][which]
        self.assertEqual(kind, done['kind'])
        self.assertNotEqual(0, done['hosts'])
        if do is None:
            server = self.do(done, server)
        else:
            do()
        self.boot(**(server | (then or {})))
        self.acts.append(done['hosts'] or 'untried')

    def option(self, group, **values):
        """Let options have values until the row ends."""
        patched = nova_fixtures.ConfPatcher(group=group, **values)
        patched.setUp()
        self.undone.append(patched.cleanUp)


def _names(hosts):
    """Read the first hosts of those that an act names."""
    return re.sub(' and .*', '', hosts).split(', ')


def _ask_without(name):
    return lambda *_: {name: None}


# What does an act, by its words.
_DONE = {
    r'free (.*) on (?:one of )?(.*)': AdviceMixin.free,
    r'add a host like (.*)': AdviceMixin.add_another,
    r'add a failure domain, with a host like (.*)': AdviceMixin.add_domain,
    r'ask with another server group, of max_server_per_host (.*)': (
        AdviceMixin.ask_group
    ),
    r'(?:raise|lower) (\S+) to (\S+) on (.*)': AdviceMixin.change_amount,
    r'raise \[(.*)\] (.*) in nova.conf to (.*)': AdviceMixin.raise_option,
    # Where a pair has no command, as the other half of it has none.
    r'take (.*) out of (.*)': AdviceMixin.take_out,
    r'ask for flavor (.*)': AdviceMixin.ask_flavor,
    r'ask for no availability zone': _ask_without('az'),
    r'ask for no host': AdviceMixin.ask_no_host,
    r'ask without (?:the server group|the hint \S+)': _ask_without('hints'),
    r'ask for an image (?:without|of another) .*': _ask_without('image'),
    r'restart nova-compute on (.*)': AdviceMixin.restart,
    r'enable (.*), if meant to take servers again': lambda test, _, hosts: (
        test.change_services(hosts, status='enabled')
    ),
    r'evacuate (.*), or lift .*': lambda test, _, hosts: test.change_services(
        hosts, forced_down=False
    ),
}


class RowsMixin(AdviceMixin):
    """Runs each method ``row_...`` on one cloud, which it leaves as it was."""

    def setUp(self):
        super().setUp()
        self.undone = []
        self.flavors = [
            self.plain_flavor,
            *(
                one['id']
                for one in self.api.api_get('/flavors').body['flavors']
            ),
        ]
        self.providers = {
            one: self._get_provider_uuid_by_host(one) for one in self.computes
        }
        self.traits = {
            one: self._get_provider_traits(one)
            for one in self.providers.values()
        }
        self.inventories = {
            one: self._get_provider_inventory(one)
            for one in self.providers.values()
        }

    def _get_provider_uuid_by_host(self, host):
        # nova lists no host that no cell mapping has.
        known = getattr(self, 'providers', {})
        return known.get(host) or super()._get_provider_uuid_by_host(host)

    def test_rows(self):
        failed = []
        wanted = os.environ.get('NOVA_EXT_SCHED_TEST_ROWS', '')
        for name in sorted(dir(self)):
            if not re.match(f'row_({wanted})', name):
                continue
            try:
                getattr(self, name)()
            except Exception as exc:
                failed.append(f'{name}: {exc}'[:800])
                print('FAILED', failed[-1], flush=True)
            else:
                print('done', name, flush=True)
            self.restore()
        helped = [one for one in self.acts if one is not None]
        print(
            f'ROWS {len(self.acts)} with an act {len(helped)} untried '
            f'{helped.count("untried")}',
            flush=True,
        )
        self.assertEqual([], failed, '\n'.join(failed))

    def restore(self):
        """Leave the cloud as each row finds it."""
        while self.undone:
            self.undone.pop()()
        for host in self.computes:
            self.set_service(host, status='enabled')
            self.set_service(host, forced_down=False)
        for server in self.admin_api.get_servers():
            self._delete_server(server)
        for host in self.computes.keys() - {*self.weights}:
            self.computes.pop(host).stop()
            [service] = self.admin_api.get_services(host=host)
            self.admin_api.api_delete(f'/os-services/{service["id"]}')
        found = self.admin_api.api_get('/os-aggregates')
        for one in found.body['aggregates']:
            for host in one['hosts']:
                self.admin_api.remove_host_from_aggregate(one['id'], host)
            self.admin_api.delete_aggregate(one['id'])
        self.aggregate_ids.clear()
        for one in self.api.api_get('/flavors').body['flavors']:
            if one['id'] not in self.flavors:
                self.admin_api.api_delete(f'/flavors/{one["id"]}')
        for uuid in self.providers.values():
            for consumer in self._get_allocations_by_provider_uuid(uuid):
                self.placement.delete(f'/allocations/{consumer}')
            self._set_provider_traits(uuid, self.traits[uuid])
            for key, body in (
                ('aggregates', {'aggregates': []}),
                ('inventories', {'inventories': self.inventories[uuid]}),
            ):
                url = f'/resource_providers/{uuid}'
                read = self.placement.get(url, version='1.19').body
                body['resource_provider_generation'] = read['generation']
                answer = self.placement.put(
                    f'{url}/{key}', body, version='1.19'
                )
                self.assertEqual(200, answer.status, answer.body)
