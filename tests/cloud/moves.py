# SPDX-License-Identifier: Apache-2.0

"""A plan of moves, carried out on a cloud of users.

Users fill the hosts while no policy closes any. Then the administrator turns
five policies on at once, and asks a command for a plan. Each server moves
within its cell.
"""

import collections
import contextlib
import json
import typing

from tests.cloud import nova
from tests.cloud import oracle
from tests.cloud import world

#: Two do not fit on a host of the fake driver, which has 800,000 MiB.
BIG_MB = 700_000
#: One of these beside a big one does not fit either.
MIDDLE_MB = 300_000
TAPE = 'aggregate_instance_extra_specs:tape'
BIG = {
    'big': {},
    'big-windows': {**world.WINDOWS, world.SSD: 'true'},
    'big-tape': {TAPE: 'true'},
    'middle': {},
    'middle-windows': world.WINDOWS,
}
#: Members of a group in a rack, by an option that is turned on at last.
RACK_LIMIT = 2
RACKS = {'nova_ext_sched': {'max_server_per_failure_domain': str(RACK_LIMIT)}}
APPLY_SECONDS = 3600
DELETE_SECONDS = 5
HOST, TASK = 'OS-EXT-SRV-ATTR:host', 'OS-EXT-STS:task_state'


class Row(typing.NamedTuple):
    """Servers that are created at once while one host alone takes them.

    :ivar violates: the policies that each of them violates in the end
    :ivar moves: how many of them a plan moves; None for all that must
    :ivar stays: why those that must move have no place
    :ivar status: what they are brought to
    :ivar to: the host that a resize brings them to
    """

    host: str
    number: int
    flavor: str = 'plain'
    user: str = 'member'
    violates: tuple[str, ...] = ()
    moves: int | None = None
    stays: str = ''
    group: str = ''
    zone: str = ''
    volume: bool = False
    status: str = 'ACTIVE'
    to: str = ''


class MovesTestCase(world.WorldTestCase):
    """Base of the tests of a command's plans.

    :cvar command: what makes the plan, with its arguments
    :cvar rows: what users create
    :cvar rules: by the name of a group, members that a host may have when
        they are created, and after
    :cvar closing: the hosts of each aggregate, by what it closes them with
    :cvar zones: the hosts of availability zones, which stand before the first
        server
    """

    closed = False
    command: str
    rows: tuple[Row, ...]
    rules: dict[str, tuple[int, int]]
    closing: dict[str, tuple[str, ...]]
    zones: dict[str, tuple[str, ...]] = {}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, extra_specs in BIG.items():
            ram = MIDDLE_MB if name.startswith('middle') else BIG_MB
            cls.world.create_flavor(name, ram, extra_specs)

    def setUp(self):
        super().setUp()
        self.addCleanup(world.remove_servers_and_aggregates, self.world.admin)
        self.addCleanup(self.world.enable, self.world.hosts)
        #: The row of each server, and how it was.
        self.row_of, self.before = {}, {}
        self.groups = {}

    # What comes before the plan.

    def misplace(self, most=None):
        """Create the servers, then turn the policies on.

        :param most: servers of a row without a group
        """
        self.world.aggregates = {
            name: oracle.Aggregate(hosts, {'availability_zone': name})
            for name, hosts in self.zones.items()
        }
        self.world.create_aggregates()
        for name, (rule, _) in self.rules.items():
            self.groups[name] = self.world.create_group(
                'other' if name == 'racks' else 'member',
                policy='anti-affinity',
                rules={'max_server_per_host': rule},
            )
        for row in self.rows:
            self.put(row, row.number if row.group else most or row.number)
        self.world.enable(self.world.hosts)
        metadata = {
            'windows': world.WINDOWS,
            'lease': self.world.lease,
            'fast': {'ssd': 'true'},
            'tape': {'tape': 'true'},
        }
        self.world.aggregates = {
            **{
                name: oracle.Aggregate(hosts, metadata[name])
                for name, hosts in self.closing.items()
            },
            **world.RACKS,
        }
        self.world.create_aggregates()
        for name, (_, rule) in self.rules.items():
            # nova's API changes no rule.
            self.cloud.mariadb.execute(
                'UPDATE nova_api.instance_group_policy SET rules = '
                f'\'{{"max_server_per_host": "{rule}"}}\' WHERE group_id = '
                '(SELECT id FROM nova_api.instance_groups WHERE uuid = '
                f"'{self.groups[name]}')"
            )
        self.addCleanup(self.cloud.nova.wait_for_schedulers)
        self.addCleanup(self.cloud.nova.start_schedulers, nova.EVERYTHING)
        self.cloud.nova.start_schedulers(nova.EVERYTHING, RACKS)
        self.cloud.nova.wait_for_schedulers()

    def put(self, row, most):
        """Create the servers of a row on its host."""
        number = min(row.number, most)
        self.world.enable([row.host])
        body = {'min_count': number, 'max_count': number}
        if row.group:
            body['hints'] = {'group': self.groups[row.group]}
        if row.zone:
            body['availability_zone'] = row.zone
        if row.volume:
            body |= self.world.volume('linux')
        with self.taking(row):
            servers = self.world.boot(
                row.flavor, None if row.volume else 'linux', row.user, **body
            )
        self.assertEqual(number, len(servers))
        for server in servers:
            self.assertEqual(
                ('ACTIVE', row.host),
                (server.status, server.hypervisor_hostname),
                (row, server.fault),
            )
            if row.status != 'ACTIVE':
                self.bring(server.id, row)
            self.row_of[server.id] = row
            self.before[server.id] = self.state(server.id)

    def bring(self, server, row):
        """Bring a server to the status of its row, and to its host."""
        if row.to:
            self.world.enable([row.to])
            # nova-api waits for nova-compute to confirm it: not while that
            # deletes all others.
            self.addCleanup(self.world.delete, server)
        larger = f'{row.flavor}-large'
        action = {
            'SHUTOFF': lambda: {'os-stop': None},
            'ERROR': lambda: {'os-resetState': {'state': 'error'}},
            'VERIFY_RESIZE': lambda: {
                'resize': {'flavorRef': self.world.flavor(larger)}
            },
        }[row.status]()
        self.world.act(server, action)
        found = self.world.wait(
            server, lambda found: found.status == row.status
        )
        self.assertEqual(row.to or row.host, found.hypervisor_hostname)

    @contextlib.contextmanager
    def taking(self, row):
        """Give a host for a while what a flavor asks for."""
        specs = (world.FLAVORS | BIG)[row.flavor]
        asked = {key.rpartition('specs:')[2]: specs[key] for key in specs}
        admin = self.world.admin
        licensed = asked.pop(f'trait:{world.TRAIT}', None)
        if licensed:
            admin.placement.put(
                f'/traits/{world.TRAIT}', headers=world.PLACEMENT
            )
            world.change_traits(
                admin,
                lambda name: [world.TRAIT] if name == row.host else [],
            )
        past = admin.compute.create_aggregate(name='past')
        if asked:
            admin.compute.set_aggregate_metadata(past, asked)
        admin.compute.add_host_to_aggregate(past, row.host)
        yield
        admin.compute.remove_host_from_aggregate(past, row.host)
        admin.compute.delete_aggregate(past)
        if licensed:
            world.change_traits(admin, lambda _name: [])

    @contextlib.contextmanager
    def deleting(self, servers):
        """Let users delete servers, one after the other, while others move.

        :yields: those that they have deleted; it grows until the block ends
        """
        deleted = []
        # A connection of its own for each user.
        users = {
            user: self.cloud.connect(user)
            for user in {self.row_of[server].user for server in servers}
        }

        def delete(stop):
            for server in servers:
                deleted.append(server)
                user = self.row_of[server].user
                users[user].compute.delete_server(server)
                if stop.wait(DELETE_SECONDS):
                    break

        with world.beside(delete):
            yield deleted
        # Until placement does not know them either.
        self.world.delete(*deleted)
        for server in deleted:
            del self.before[server], self.row_of[server]

    # What is checked.

    def state(self, server):
        """Return what a move leaves as it is, and the server's host."""
        found = self.world.admin.compute.get(f'/servers/{server}').json()
        kept = ('status', TASK, 'os-extended-volumes:volumes_attached')
        return [found['server'][key] for key in (*kept, HOST)]

    def hosts(self, server):
        """Return the hosts where placement has a server."""
        placement = self.world.admin.placement
        answer = placement.get(
            f'/allocations/{server}', headers=world.PLACEMENT
        )
        names = {one.id: one.name for one in placement.resource_providers()}
        return [names[uuid] for uuid in answer.json()['allocations']]

    def held(self, names):
        """Return the servers that hold room of hosts in placement."""
        admin = self.world.admin
        moving = {
            one['uuid']: one['instance_uuid'] for one in self.list_migrations()
        }
        return {
            (moving.get(uuid, uuid), provider.name)
            for provider in admin.placement.resource_providers()
            if provider.name in names
            for uuid in admin.placement.get(
                f'/resource_providers/{provider.id}/allocations'
            ).json()['allocations']
        }

    def list_migrations(self):
        """Return those that nova shows."""
        return self.world.admin.compute.get(
            '/os-migrations', microversion='2.59'
        ).json()['migrations']

    def disabled(self):
        """Return the hosts that are disabled."""
        services = self.world.admin.compute.services(binary='nova-compute')
        return {one.host for one in services if one.status == 'disabled'}

    def allowed(self, row):
        """Return the hosts where the servers of a row may stand."""
        request = oracle.Request(
            (world.FLAVORS | BIG)[row.flavor],
            {},
            self.world.projects[row.user],
        )
        return oracle.hosts(
            request, self.world.aggregates.values(), self.world.hosts
        )

    def plan(self, command=None, name='plan.json', status=3):
        """Make a plan as the page types it; return it.

        :param command: another than the tests'
        :param name: of the file that it is written to
        :param status: the exit status that it must have; None is any
        """
        path = self.cloud.folder / name
        path.unlink(missing_ok=True)
        done = self.cloud.execute(
            f'nova-ext-sched {command or self.command} '
            f'--config-file {self.cloud.nova.scheduler_conf} '
            f'--output {name}',
            user='admin',
            status=status,
        )
        self.assertTrue(path.exists(), done.stderr)
        return json.loads(path.read_text())

    def carry_out(self, name='plan.json', options=''):
        """Carry a plan out as the page types it.

        :returns: the exit status, what was said, and the moves
        """
        done = self.cloud.execute(
            f'openstack move plan apply {name} {options} -f json',
            user='admin',
            status=None,
            seconds=APPLY_SECONDS,
        )
        return done.returncode, done.stderr, json.loads(done.stdout or '[]')

    def go_on(self):
        """Carry plans out until one is not stopped; make the first ones.

        :returns: the last one, how many were stopped, and as ``carry_out``
        """
        made, stops = [], 0
        while True:
            plan = self.plan()
            status, said, rows = self.carry_out()
            made += rows
            if status != 1 or stops == 4:
                return plan, stops, status, said, made
            # It says where it stopped, and nova refused that move.
            self.assertIn(
                'then make a new plan: nova-ext-sched', ' '.join(said.split())
            )
            stops += 1

    def check_moves(self, plan):
        """Check how many servers of each row a plan moves, and how."""
        kinds = collections.Counter(
            (self.row_of[move['server']], move['method'])
            for move in plan['moves']
        )
        self.assertEqual(
            {
                (row, 'cold' if row.status == 'SHUTOFF' else 'live'): number
                for row in self.rows
                if (number := self.movable(row))
            },
            kinds,
        )

    def movable(self, row):
        """Return how many servers of a row a plan moves."""
        raise NotImplementedError

    def check_whole(self, made):
        """Check that each server is as it was, where the moves say."""
        moved = {
            one['Server']: one['To']
            for one in made
            if one['Result'] == 'moved'
        }
        for server, (*kept, host) in self.before.items():
            *now, stands = self.state(server)
            self.assertEqual(kept, now, self.row_of[server])
            self.assertEqual(moved.get(server, host), stands, made)
            self.assertEqual([stands], self.hosts(server), server)

    def check_by_oracle(self, stuck):
        """Check where servers stand by the sentences of the documentation."""
        racks = self.world.racks
        members = {name: [] for name in ('', *self.rules)}
        for server in {*self.row_of} - stuck:
            row = self.row_of[server]
            (host,) = self.hosts(server)
            self.assertIn(host, self.allowed(row), row)
            if row.zone:
                self.assertIn(host, self.zones[row.zone])
            members[row.group].append(host)
        for name, (_, rule) in self.rules.items():
            counts = collections.Counter(members[name])
            self.assertTrue(oracle.group_fits(counts, rule), name)
            counts = collections.Counter(racks[h] for h in members[name])
            self.assertTrue(oracle.group_fits(counts, RACK_LIMIT), name)

    def check_others(self, asked):
        """Check where the servers of a stream stand."""
        self.assertLess(60, len(asked))
        allowed = self.world.allowed('plain', 'linux')
        for server in filter(asked.get, asked):
            found = self.world.show(server)
            self.assertEqual('ACTIVE', found.status, found.fault)
            self.assertIn(found.hypervisor_hostname, allowed)
