# SPDX-License-Identifier: Apache-2.0

"""What explain says would help, done by its commands on a real nova."""

import os
import re
import shlex

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

    def ask(self, **server):
        """Explain a request that has no host; return its answer."""
        answer = explain.read(*self.arguments(**server))
        self.assertFalse(answer.document['answer']['finds_host'], answer)
        return answer.document['answer']

    def run_commands(self, commands):
        """Do what a shell would do with the lines."""
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
                found = explain.ask(make_room.MakeRoom, *words)
                self.carry_out(found.plan)
            else:
                self.assertEqual(['cell_v2', 'discover_hosts'], words)
                manage.CellV2Commands().discover_hosts()

    def check(
        self, cause, act, *others, kind='repair', do=None, then=None, **server
    ):
        """Check what is said of a request, do its first act, and boot it.

        :param cause: the first one, with its number of hosts
        :param act: None where there is none
        :param others: acts after it, as far as they matter
        :param do: what does it where no command does; True for nothing but
            the request as ``then`` has it
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
        if act is None:
            self.assertEqual([], said)
            self.acts.append(None)
            return
        self.assertEqual([act, *others], said[: 1 + len(others)])
        first = answer['advice'][0]
        self.assertEqual(kind, first['kind'])
        self.assertNotEqual(0, first['hosts'])
        if do is None:
            self.assertNotEqual([], first['commands'])
            self.run_commands(first['commands'])
        elif do is not True:
            # make-room finds no move here.
            self.run_commands(first['commands'])
            do()
        self.boot(**(server | (then or {})))
        self.acts.append(first['hosts'])

    def option(self, group, **values):
        """Let options have values until the row ends."""
        patched = nova_fixtures.ConfPatcher(group=group, **values)
        patched.setUp()
        self.undone.append(patched.cleanUp)


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

    def test_rows(self):
        failed = []
        wanted = os.environ.get('NOVA_EXT_SCHED_TEST_ROWS', '')
        for name in sorted(dir(self)):
            if not re.match(f'row_({wanted})', name):
                continue
            try:
                getattr(self, name)()
            except Exception as exc:
                failed.append(f'{name}: {exc}')
                print('FAILED', failed[-1], flush=True)
            else:
                print('done', name, flush=True)
            self.restore()
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
        if added := self.computes.pop('host9', None):
            added.stop()
            [service] = self.admin_api.get_services(host='host9')
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
