# SPDX-License-Identifier: Apache-2.0

"""What the commands say of a cloud, nova then does: five promises.

A row is a cloud, a class with :class:`Row`: the first line of its docstring
is its name in the table of contributor/testing.rst. It has a method for each
promise, or the reason why that has no meaning there
(tests/unit/test_promises.py). All are asked of one cloud in turn, so that
services start once.
"""

import functools
import json
import typing

from nova.virt import fake

from nova_ext_sched.cmd import audit
from nova_ext_sched.cmd import drain
from nova_ext_sched.cmd import make_room
from nova_ext_sched.cmd import mend
from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.osc import isolation_run
from tests.functional import base
from tests.functional import capacity
from tests.functional import decisions
from tests.functional import explain
from tests.functional import keystone
from tests.functional import plans
from tests.functional import test_survive

#: In this order: who finds no host is out of the way, and hosts fail late.
PROMISES = ('explain', 'isolation', 'moves', 'survive', 'capacity')
TRAIT = 'CUSTOM_PROMISED'


def _ask(name, *args, **kwargs):
    return lambda row: getattr(row, name)(*args, **kwargs)


# The methods of promises that say no more than this; see Row.
isolates = functools.partial(_ask, 'assertIsolates')
drains = functools.partial(_ask, 'assertDrained')
fails = functools.partial(_ask, 'assertFails')


def counts(**flavor):
    return lambda row: row.assertCounted(flavor=row.flavor(**flavor))


class Row(test_survive.EvacuationMixin, plans.MovesMixin, capacity.TruthMixin):
    """One cloud, of which five promises are asked."""

    allocation_ratio = 1.0
    #: Whether the hosts of a request may weigh the same.
    ties = False
    #: The promises that have no meaning in this cloud, and why.
    meaningless: typing.ClassVar[dict[str, str]] = {}
    #: The promises that are not kept yet, and what differs.
    broken: typing.ClassVar[dict[str, str]] = {}
    #: What each host has room for, as placement is asked.
    room = 'MEMORY_MB:1'

    def setUp(self):
        # SQLite takes one writer at a time.
        for module in (isolation_run, isolation_cloud):
            self.patch(module, 'WORKERS', 1)
        # The scheduler answers each host that is left, not three.
        self.flags(max_attempts=20, group='scheduler')
        # nova-compute would refuse a group's servers on a forced host.
        self.flags(disable_group_policy_check_upcall=True, group='workarounds')
        self.decisions = decisions.record(self)
        #: The hosts of what becomes isolated.
        self.joined = set()
        super().setUp()
        self.openstack = self.use_client()

    def test_promises(self):
        self.useFixture(keystone.Projects(self.api.project_id, 'other'))
        self.build()
        for name in PROMISES:
            if name not in self.meaningless and name not in self.broken:
                getattr(self, f'promise_{name}')()

    def build(self):
        """Make the cloud what it is, after its services have started."""

    # explain

    def assertExplained(self, **server):
        """Let explain name hosts, and nova choose among these; return it.

        :param server: see ``boot``
        """
        is_found, server = self.explain(**server)
        self.assertTrue(is_found)
        return server

    def assertRefused(self, **server):
        """Let explain name no host, and nova find none."""
        is_found, _ = self.explain(**server)
        self.assertFalse(is_found)

    def explain(self, **server):
        """Let explain answer, and nova the same.

        :param server: see ``boot``
        :returns: whether there was a host, and the server
        """
        answer = explain.read(*self.arguments(**server))
        self.assertIn(answer.status, self.statuses, answer)
        is_found = answer.order != []
        self.assertEqual(self.statuses[not is_found], answer.status, answer)
        before = len(self.decisions)
        made = (self.boot if is_found else self.assertNoValidHost)(**server)
        # None where conductor refuses.
        for decision in self.decisions[before : before + 1]:
            found = (*decision.hosts, *decision.alternates)
            # nova's alternates are of one cell.
            said = [
                host
                for host in answer.order
                if self.cell_of(host) == self.cell_of(found[0])
            ]
            if self.ties:
                self.assertEqual(sorted(found), sorted(said), answer)
            else:
                self.assertEqual([*found], said, answer)
                self.assertEqual(answer.order[:1], [*decision.hosts])
        return is_found, made

    def cell_of(self, host):
        return getattr(self, 'cells', {}).get(host, 'cell1')

    def assertMoveExplained(self, server):
        """Let explain name hosts for a server that stands, and nova too.

        The server is where it was then.

        :returns: the answer
        """
        answer = explain.of_server(server, 'migrate')
        before = len(self.decisions)
        self.act(server, 'migrate', 'VERIFY_RESIZE')
        self.act(server, 'revertResize', 'ACTIVE')
        [decision] = self.decisions[before:]
        self.assertEqual(
            answer.order, [*decision.hosts, *decision.alternates], answer
        )
        return answer

    def arguments(
        self, *, flavor=None, image=None, hints=None, az=None, host=None
    ):
        """Yield the arguments that say what ``boot`` is told."""
        for name, value in (
            ('flavor', flavor or self.plain_flavor),
            ('image', image or self.plain_image),
            ('availability-zone', az),
            ('destination', host),
            ('project', self.api.project_id),
            *(('hint', f'{key}={one}') for key, one in (hints or {}).items()),
        ):
            if value is not None:
                yield from (f'--{name}', value)

    # capacity

    def assertCounted(self, least=1, **server):
        """Let capacity count, and nova make as many and refuse one more.

        :param least: how many there must be
        :param server: see ``boot``
        """
        _, flavor, *args = self.arguments(**server)
        server.pop('flavor', None)
        [one] = self.capacity('--flavor', flavor, *args).flavors
        self.assertIn(one['servers'], range(least, 12), one)
        self.assertTruth(one['servers'], flavor, *args, **server)

    # moves

    def assertDrained(self, *argv, kinds=('live',), stuck=()):
        """Let drain plan, and nova make the moves; hosts then hold the rest.

        :param argv: of the command; hosts
        :param kinds: of moves that the plan must have; None for any
        :param stuck: the causes of those that have no place; None for any
        """
        plan = self._plan(drain.Drain, 'drain', argv, kinds, stuck)
        self.carry_out(plan)
        self.sync_instances()
        # One that is resized is said to be on both of its hosts.
        self.assertLessEqual(
            {
                one['id']
                for one in self.admin_api.get_servers()
                if one['OS-EXT-SRV-ATTR:host'] in argv
            },
            {one['server'] for one in plan['without_place']},
        )
        return plan

    def assertMaintained(self, *hosts):
        """Let nova carry out maintain's rounds; each host is empty once."""
        rounds = self.maintain(*hosts)['rounds']
        self.assertEqual(
            sorted(hosts),
            sorted(host for one in rounds for host in one['hosts']),
        )

    def assertMended(self, *argv, kinds=('live',), stuck=()):
        """Let mend plan, and nova make the moves; audit then finds the rest.

        See assertDrained.
        """
        plan = self._plan(mend.Mend, 'mend', argv, kinds, stuck)
        self.carry_out(plan)
        out, err, status = explain.ask(audit.Audit, 'audit')
        stuck = plan['without_place']
        self.assertEqual(3 if stuck else 0, status, out + err)
        self.assertEqual(
            {one['server'] for one in stuck},
            {one['server'] for one in json.loads(out)['findings']},
            plan,
        )
        return plan

    def _plan(self, class_, name, argv, kinds, stuck):
        found = explain.ask(class_, name, *argv)
        plan = found.plan
        self.assertEqual(self.statuses == (1, 1), plan['faults'] != [])
        if kinds is not None:
            self.assertEqual(
                {*kinds}, {one['method'] for one in plan['moves']}, plan
            )
        if stuck is not None:
            self.assertStuck(stuck, plan)
        self.assertEqual(
            self.statuses[plan['without_place'] != []], found.status, found.err
        )
        return plan

    def assertStuck(self, causes, plan):
        """Check the causes of the servers that a plan has no place for."""
        self.assertEqual(
            sorted(causes),
            sorted(one['cause'] for one in plan['without_place']),
            plan,
        )

    def assertRoom(self, number, **server):
        """Let make-room plan, and nova make the moves and then the servers.

        :param number: how many are to fit
        :param server: see ``boot``
        :returns: the plan, and the servers
        """
        found = explain.call(
            make_room.MakeRoom,
            'make-room',
            *('--count', f'{number}', '-f', 'json'),
            *self.arguments(**server),
        )
        plan = found.plan
        hosts = plan['room_on']
        self.assertEqual(
            self.statuses[len(hosts) < number], found.status, found.err
        )
        self.assertEqual(len(hosts) < number, plan['in_the_way'] != [], plan)
        self.carry_out(plan)
        self.sync_instances()
        made = []
        for host in hosts:
            made.append(
                self.boot(**server, **({'host': host} if host else {}))
            )
            if host:
                self.assertEqual(host, self.host_of(made[-1]))
        return plan, made

    # survive

    def assertFails(self, *argv, stuck=()):
        """Let survive say how, and nova evacuate the servers; some must go.

        :param argv: of the command; what fails
        :param stuck: the causes of the servers that stay
        """
        [failure] = self.survive(*argv)['failures']
        self.assertNotEqual([], failure['moves'], failure)
        self.assertStuck(stuck, failure)
        self.fail_hosts(failure)

    # isolation

    def assertIsolates(self, *hosts, ready=(), without=()):
        """Let list and sync say which hosts placement offers, and ask it.

        Hosts become an isolated aggregate for a while.

        :param ready: those of them that have the trait
        :param without: those of them that sync cannot help, whose fault stays
        """
        self.join(*hosts)
        self.set_metadata('promised', {f'trait:{TRAIT}': 'required'})
        self._create_trait(TRAIT)
        for host in ready:
            self.add_traits(host, TRAIT)
        self.assertEqual(
            {*hosts} - {*ready},
            self._list_faults('trait-missing', 'no-provider'),
        )
        self.assertEqual({*ready}, self._offered())
        status, out, err = self.openstack.run_apart(
            'aggregate', 'isolation', 'sync', 'promised'
        )
        self.assertEqual(bool(without), status, out + err)
        self.assertEqual(
            {*without}, self._list_faults('trait-missing', 'no-provider')
        )
        self.assertEqual({*hosts} - {*without}, self._offered())
        self.set_metadata('promised', {f'trait:{TRAIT}': None})

    def join(self, *hosts):
        """Add hosts to what becomes isolated, those that it lacks."""
        if not self.joined:
            self.aggregate('promised')
        for host in {*hosts} - self.joined:
            self.add_host('promised', host)
        self.joined |= {*hosts}

    def _list_faults(self, *faults, name='promised'):
        """Return the hosts where no server can land, by the list."""
        [listed] = [
            one
            for one in self.openstack.json('aggregate', 'isolation', 'list')
            if one['Name'] == name
        ]
        return {
            host
            for fault in listed['Faults']
            if fault['fault'] in faults
            for host in fault['hosts']
        }

    def _offered(self, trait=TRAIT):
        """Return the hosts that placement offers to who requires a trait."""
        found = self.placement.get(
            f'/allocation_candidates?resources={self.room}&required={trait}',
            version='1.36',
        ).body['provider_summaries']
        return {
            one['service']['host']
            for one in self.admin_api.api_get('/os-hypervisors/detail').body[
                'hypervisors'
            ]
            if one['id'] in found
        }


class CloudRow(Row, base.CloudTestCase):
    """Four hosts of 10 CPUs, 8 GiB and 1 TiB; host1 is the first choice."""

    weights = {'host1': 400, 'host2': 300, 'host3': 200, 'host4': 100}

    def setUp(self):
        # nova's plainest fake keeps a server that has left, and refuses it
        # when it comes back.
        self.patch(
            fake.FakeDriver,
            'post_live_migration',
            fake.FakeLiveMigrateDriver.post_live_migration,
        )
        super().setUp()
