# SPDX-License-Identifier: Apache-2.0

"""maintain's rounds on nova in process, in a night in which all goes wrong.

At each question of the applier something may happen: a user stops or starts
a server, a service does not answer, the applier is killed, another one runs.
``tests.cloud.test_night`` has that with services in processes.
"""

import collections
import itertools
import json
import re

import fixtures
from keystoneauth1 import exceptions
from nova.tests.functional.api import client

from nova_ext_sched import waiting
from nova_ext_sched.cmd import drain
from nova_ext_sched.cmd import maintain
from nova_ext_sched.osc import moves_cloud
from nova_ext_sched.osc import moves_making
from tests.functional import explain
from tests.functional import test_osc_moves

#: One of so many questions is answered with 503, and before one of so many a
#: user acts; a service is away for so many after one of so many.
BUSY, ACTS, GOES, AWAY = 20, 5, 67, 12
#: Questions before which appliers are killed, or another one runs.
KILLS, OTHERS = {9, 24, 43, 61, 86, 102, 131}, {30, 75, 120}
#: How often a request is carried out, and its answer lost.
LOST = 4
MOST_TRIES = 30
KILLED = 137
FREE = re.compile('resource provider allocation delete ([0-9a-f-]{36})')


class Killed(BaseException):
    """Stands for SIGKILL."""


class NightTest(test_osc_moves.ApplyTestCase):
    weights = {f'host{n}': 700 - n for n in range(1, 7)}
    rack_limit = 3

    def setUp(self):
        super().setUp()
        for where, name, value in (
            (waiting, 'SECONDS', 0),
            (moves_making, 'QUIET', 0.2),
            (moves_making, 'HELD', 2),
        ):
            self.useFixture(fixtures.MockPatchObject(where, name, new=value))
        self.count = itertools.count(1)
        self.requests = itertools.count(1)
        self.away, self.is_other = 0, False
        self.seen = collections.Counter()
        #: What its user wants of each server; what nova was asked to move.
        self.wanted, self.asked = {}, []

    def test_every_host_is_empty_once(self):
        self.fill()
        users = itertools.cycle([*self.wanted])
        ask, tell = moves_cloud.Cloud._ask, moves_cloud.Cloud._tell

        def asked(cloud, name, question):
            return ask(cloud, name, lambda: self.happen(users) or question())

        def told(cloud, method, url, body):
            if method == 'POST':
                number = next(self.requests)
                if number % (2 * LOST) == 0:
                    raise exceptions.ConnectFailure('not sent')
                self.note(url.split('/')[2], body)
                tell(cloud, method, url, body)
                if number % LOST == 0:
                    self.seen['answer lost'] += 1
                    raise exceptions.ConnectFailure('lost')
            else:
                tell(cloud, method, url, body)

        done = set()
        with (
            fixtures.MockPatchObject(moves_cloud.Cloud, '_ask', asked),
            fixtures.MockPatchObject(moves_cloud.Cloud, '_tell', told),
        ):
            while done != {*self.weights}:
                done |= self.carry_out_round(done)
        for name in ('acted', 'busy', 'away', 'answer lost'):
            self.assertLess(1, self.seen[name], self.seen)
        self.assertLess(4, self.seen['killed'], self.seen)
        self.assertLess(1, self.seen['another'], self.seen)
        self.check_morning()

    def fill(self):
        """Create servers under policies."""
        self.isolate('windows', ['host1', 'host2'], 'CUSTOM_WINDOWS')
        reserved = {'reservation:lease': 'true'}
        self.aggregate('lease', ['host3', 'host4'], metadata=reserved)
        for number in (1, 2, 3):
            self.aggregate(
                f'rack{number}',
                [f'host{number}', f'host{number + 3}'],
                failure_domain=f'rack{number}',
            )
        plain = self.flavor(vcpu=1)
        licensed = self.flavor(specs={'trait:CUSTOM_WINDOWS': 'required'})
        leased = self.flavor(specs=reserved)
        hints = self.group(limit=2)
        servers = [self.running, self.stopped]
        for flavor, host, number, more in (
            (licensed, 'host1', 3, {}),
            (licensed, 'host2', 2, {}),
            (leased, 'host3', 3, {}),
            (leased, 'host4', 2, {}),
            (plain, 'host5', 3, {}),
            (plain, 'host6', 2, {}),
            (plain, 'host5', 1, {'hints': hints}),
            (plain, 'host6', 1, {'hints': hints}),
        ):
            servers += [
                self.boot(flavor=flavor, host=host, **more)
                for _ in range(number)
            ]
        self.turn_on()
        for one in servers:
            self.wanted[one['id']] = self.status(one['id'])

    def status(self, server):
        return self.admin_api.get_server(server)['status']

    def happen(self, users):
        """Let something go wrong before a question, or nothing."""
        if self.is_other:
            return
        number = next(self.count)
        if number % ACTS == 0:
            self.use(next(users))
        if number in OTHERS:
            self.is_other = True
            self.seen['another'] += 1
            self.run_apply()
            self.is_other = False
        if number in KILLS:
            self.seen['killed'] += 1
            raise Killed
        if number % GOES == 0:
            self.seen['away'] += 1
            self.away = AWAY
        if self.away:
            self.away -= 1
            raise exceptions.ConnectFailure('no connection')
        if number % BUSY == 0:
            self.seen['busy'] += 1
            raise exceptions.ServiceUnavailable

    def use(self, server):
        """Stop a server that runs, or start one that does not."""
        status = self.status(server)
        action, wanted = {
            'ACTIVE': ('os-stop', 'SHUTOFF'),
            'SHUTOFF': ('os-start', 'ACTIVE'),
        }.get(status, (None, None))
        if action:
            try:
                self.act({'id': server}, action)
            except client.OpenStackApiException as exc:
                # It moves.
                self.assertEqual(409, exc.response.status_code)
            else:
                self.seen['acted'] += 1
                self.wanted[server] = wanted
                self._wait_for_state_change({'id': server}, wanted)

    def note(self, server, body):
        """Note how a server was, which nova is asked to move."""
        if 'confirmResize' not in body:
            self.asked.append((server, [*body][0], self.status(server)))

    # A round.

    def carry_out_round(self, done):
        """Let the hosts of the next round be empty; return them."""
        names = [word for host in sorted(done) for word in ('--done', host)]
        plan = self.ask(maintain.Maintain, '--round', '1', *names)
        for _ in range(MOST_TRIES):
            if 'moves' in plan:
                break
            for one in plan['not_emptied']:
                self.do_what_helps(one['without_place'])
            plan = self.ask(maintain.Maintain, '--round', '1', *names)
        self.assertIn('moves', plan, plan['answer'])
        hosts = plan['to_be_empty']
        self.write(plan)
        for _ in range(MOST_TRIES):
            status, said = self.run_apply('--disable')
            if status == KILLED:
                continue
            if status == 1:
                self.assertRegex(
                    said, '[Rr]un the command again|make a new plan'
                )
            self.do(FREE, said)
            plan = self.ask(drain.Drain, *hosts)
            if not plan['moves'] and not plan['without_place']:
                break
            self.do_what_helps(plan['without_place'])
            self.write(plan)
        for host in hosts:
            provider = self._get_provider_uuid_by_host(host)
            self.assertEqual(
                {}, self._get_allocations_by_provider_uuid(provider), said
            )
        while (found := self.run_apply('--enable'))[0] == KILLED:
            pass
        self.assertEqual(0, found[0], found)
        enabled = self.admin_api.get_services(binary='nova-compute')
        self.assertEqual({'enabled'}, {one['status'] for one in enabled})
        return {*hosts}

    def ask(self, command, *argv):
        """Return the document of a command."""
        found = explain.ask(command, 'maintain', *argv)
        self.assertIn(found.status, (0, 3), found.err)
        return found.plan

    def write(self, plan):
        self.path = f'{self.useFixture(fixtures.TempDir()).path}/plan.json'
        with open(self.path, 'w') as file:
            json.dump(plan, file)

    def run_apply(self, *options):
        """Run an applier; return its exit status and what it says."""
        try:
            status, output, errors = self.openstack.run_apart(
                *test_osc_moves.APPLY, self.path, '--at-once', '2', *options
            )
        except Killed:
            return KILLED, ''
        self.assertIn(status, (0, 1, 3), errors)
        return status, ' '.join((output + errors).split())

    def do_what_helps(self, stuck):
        for one in stuck:
            self.do(FREE, one['would_help'])

    def do(self, pattern, said):
        """Free the room that a text names."""
        for uuid in pattern.findall(said):
            self.placement.delete(f'/allocations/{uuid}')

    # What is true in the morning.

    def check_morning(self):
        """Nobody was shut down, nothing is lost, nothing is in between."""
        methods = {'migrate': 'SHUTOFF', 'os-migrateLive': 'ACTIVE'}
        self.assertLess(20, len(self.asked))
        for server, method, status in self.asked:
            self.assertEqual(methods[method], status, server)
        for server, wanted in self.wanted.items():
            found = self.admin_api.get_server(server)
            self.assertEqual(
                (wanted, None),
                (found['status'], found['OS-EXT-STS:task_state']),
            )
            held = self._get_allocations_by_server_uuid(server)
            self.assertEqual(
                [self._get_provider_uuid_by_host(self.host_of(found))], [*held]
            )
        self.assertEqual(
            {('live-migration', 'completed'), ('migration', 'confirmed')},
            {*self.migrations()},
        )
        self.assertEqual([], self.found())
