# SPDX-License-Identifier: Apache-2.0

"""Who holds the hosts that are to be empty, as the rows of a cell say."""

import datetime

from nova import context
from nova import objects
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_utils import timeutils
from oslo_utils.fixture import uuidsentinel as uuids
from sqlalchemy import orm
import testtools

from nova_ext_sched.dryrun.plan import drain
from nova_ext_sched.dryrun.plan import holders
from nova_ext_sched.dryrun.plan import plans
from tests import databases
from tests.unit.dryrun.cloud import clouds

objects.register_all()

DELETE = 'openstack resource provider allocation delete'


def minutes_ago(minutes):
    return timeutils.utcnow() - datetime.timedelta(minutes=minutes)


class RowsTestCase(testtools.TestCase):
    """The hosts host1 to host3, with the nodes a to c, and rows of a cell."""

    def setUp(self):
        super().setUp()
        database = self.useFixture(databases.Database('sqlite'))
        self.engine = database.replace(main_db.context_manager)
        models.BASE.metadata.create_all(self.engine)
        ctxt = context.get_admin_context()
        cloud = self.cloud = clouds.Cloud('')
        for number, uuid in enumerate('abc', 1):
            cloud.add_node(uuid, f'host{number}')
        cloud.ask_cells = lambda select, *args: {'cell1': select(ctxt, *args)}
        for number in (1, 2, 3):
            self.serve(f'host{number}')

    def add(self, row):
        with orm.Session(self.engine) as session, session.begin():
            session.add(row)

    def clear(self, *tables):
        with orm.Session(self.engine) as session, session.begin():
            for table in tables:
                session.query(table).delete()

    def serve(self, host, is_up=True):
        self.add(
            models.Service(
                host=host,
                binary='nova-compute',
                forced_down=not is_up,
                last_seen_up=timeutils.utcnow(),
                created_at=timeutils.utcnow(),
            )
        )

    def server(self, uuid, host, **fields):
        known = {'vm_state': 'active', 'created_at': minutes_ago(60)}
        known |= {'display_name': 'web', 'project_id': 'p', 'hidden': False}
        self.add(models.Instance(uuid=uuid, host=host, **known | fields))

    def move(self, uuid, status, source='a', dest='b', minutes=60, **fields):
        """Let a server migrate between the hosts of two nodes."""
        hosts = self.cloud.nodes
        known = {'instance_uuid': uuids.server, 'uuid': uuid, 'deleted': 0}
        known |= {'migration_type': 'migration', 'status': status}
        known |= {'created_at': minutes_ago(minutes)}
        for end, node in (('source', source), ('dest', dest)):
            known |= {
                f'{end}_compute': hosts[node].host,
                f'{end}_node': hosts[node].node,
            }
        self.add(models.Migration(**known | fields))

    def hold(self, consumer, *nodes):
        self.cloud.server.hold(consumer, **dict.fromkeys(nodes, {'VCPU': 1}))

    def read(self, *hosts):
        """Return who stands on hosts, and what is said of who holds them."""
        found = drain.read(self.cloud, {*hosts})
        self.held = found.migrating
        return (
            [(one.server, one.host) for one in found.leaving],
            [(one.server, one.host, one.reason) for one in found.migrating],
        )


class ReadTestCase(RowsTestCase):
    def test_who_stands_there(self):
        """By host; however many are asked about at once."""
        self.server(uuids.two, 'host2')
        self.server(uuids.one, 'host1', vm_state='soft-delete')
        self.server(uuids.other, 'host3')
        self.server(uuids.gone, 'host1', deleted=1)
        for at_once in (1, 100):
            self.patch(drain, '_HOSTS_AT_ONCE', at_once)
            standing, held = self.read('host1', 'host2')
            self.assertEqual([], held)
            expected = [(uuids.one, 'host1'), (uuids.two, 'host2')]
            self.assertEqual(expected, standing)

    def test_a_migration_that_holds_a_host(self):
        """Its source while it is on the other, and the other way round."""
        for stands_on, asked in (('host2', 'host1'), ('host1', 'host2')):
            self.cloud.server.held.clear()
            self.clear(models.Instance, models.Migration)
            self.server(uuids.server, stands_on)
            self.move(uuids.move, 'running', minutes=1)
            standing, held = self.read(asked)
            expected = uuids.server, asked, 'its migration is running'
            self.assertEqual(([], [expected]), (standing, held))
            self.assertEqual('web', self.held[0].name)
            # On its own host it is one of those that leave.
            standing, held = self.read(stands_on)
            self.assertEqual(
                ([(uuids.server, stands_on)], []), (standing, held)
            )

    def test_of_each_host(self):
        """However many are asked about at once."""
        for number, node in ((1, 'a'), (2, 'b')):
            server = getattr(uuids, f'server{number}')
            self.server(server, 'host3')
            move = getattr(uuids, f'move{number}')
            moves = {'minutes': 1, 'instance_uuid': server}
            self.move(move, 'running', node, 'c', **moves)
        for at_once in (1, 100):
            self.patch(drain, '_HOSTS_AT_ONCE', at_once)
            _, held = self.read('host1', 'host2')
            self.assertEqual(['host1', 'host2'], [one for _, one, _ in held])

    def test_migrations_that_hold_none(self):
        """Of another host, over, or of a server that is gone."""
        self.server(uuids.server, 'host2')
        self.move(uuids.of_others, 'running', 'c', 'b')
        self.move(uuids.over, 'error')
        self.move(uuids.orphan, 'running', instance_uuid=uuids.gone)
        self.assertEqual(([], []), self.read('host1'))

    def test_how_one_ends(self):
        """It tells what to do, and first to start what is down."""
        self.server(uuids.server, 'host2', updated_at=minutes_ago(1))
        wait = 'wait until it has ended'
        abort = f'{wait}, or abort it (openstack server migration abort)'
        look = 'check in the nova-compute log of host1 whether it goes on'
        for status, minutes, expected in (
            ('finished', 60, 'confirm or revert it'),
            ('running', 1, abort),
            ('queued', 1, abort),
            ('preparing', 1, abort),
            ('post-migrating', 1, wait),
            ('confirming', 9, wait),
            ('confirming', 11, look),
        ):
            self.clear(models.Migration)
            self.move(uuids.move, status, minutes=minutes)
            self.read('host1')
            [found] = self.held
            self.assertEqual(plans.STATE, found.cause)
            if expected == look:
                self.assertIn(look, found.would_help)
            else:
                self.assertEqual(expected, found.would_help)

    def test_a_service_that_is_down(self):
        """Or is of another cell, which nobody knows to be down."""
        self.server(uuids.server, 'host2')
        self.move(uuids.move, 'finished')
        self.add(
            models.Service(
                host='away', binary='nova-compute', forced_down=True
            )
        )
        for fields, expected in (
            ({'dest_compute': 'elsewhere'}, 'confirm or revert it'),
            (
                {'dest_compute': 'away'},
                'start nova-compute on away, then confirm or revert it',
            ),
        ):
            with orm.Session(self.engine) as session, session.begin():
                session.query(models.Migration).update(fields)
            self.read('host1')
            self.assertEqual([expected], [one.would_help for one in self.held])

    def test_a_migration_that_nova_lost(self):
        """What it holds is taken away, if it holds the host at all."""
        self.server(uuids.server, 'host2', updated_at=minutes_ago(60))
        self.move(uuids.move, 'running')
        self.hold(uuids.server, 'b')
        self.assertEqual(([], []), self.read('host1'))
        self.hold(uuids.move, 'a')
        _, held = self.read('host1')
        self.assertEqual(1, len(held))
        self.assertEqual(
            [f'{DELETE} {uuids.move}'], [one.would_help for one in self.held]
        )


class EndedTestCase(RowsTestCase):
    """A migration is over, and its allocation is still there."""

    def setUp(self):
        super().setUp()
        self.server(uuids.server, 'host2')

    def test_room_that_is_not_freed(self):
        self.move(uuids.move, 'confirmed')
        self.hold(uuids.move, 'a')
        _, held = self.read('host1')
        reason = 'its migration is confirmed, and nova has not freed its room'
        self.assertEqual([(uuids.server, 'host1', reason)], held)
        [found] = self.held
        self.assertEqual(f'{DELETE} {uuids.move}', found.would_help)
        self.assertEqual(('web', 'p'), (found.name, found.project))

    def test_room_that_keeps_no_host(self):
        """Of where it stands, one under way, or what is deleted."""
        self.move(uuids.here, 'confirmed')
        self.hold(uuids.here, 'b')
        self.move(uuids.deleted, 'confirmed', deleted=1)
        self.move(uuids.of_gone, 'confirmed', instance_uuid=uuids.gone)
        self.server(uuids.gone, 'host3', deleted=1)
        for consumer in (uuids.deleted, uuids.of_gone, uuids.stranger):
            self.hold(consumer, 'a')
        self.assertEqual([], self.read('host1')[1])
        self.assertEqual([], self.read('host2')[1])


class NameOwnTestCase(RowsTestCase):
    """A server without a place, which fills a host that it is not on."""

    def name(self, **fields):
        known = {'reason': 'full', 'cause': 'VCPU', 'would_help': 'grow'}
        stuck = plans.Stuck(
            uuids.server, 'web', 'p', 'host2', [], **known | fields
        )
        [self.found] = holders.name_own(self.cloud, [stuck])
        return self.found is not stuck

    def test_what_it_holds_elsewhere(self):
        self.server(uuids.server, 'host2', updated_at=minutes_ago(60))
        self.hold(uuids.server, 'b')
        self.assertFalse(self.name())
        self.hold(uuids.server, 'b', 'c', 'a')
        self.assertTrue(self.name())
        self.assertEqual(
            'full. It holds room on host1, host3 itself', self.found.reason
        )
        self.assertEqual('VCPU', self.found.cause)
        unset = 'resource provider allocation unset --provider'
        for node in 'ac':
            self.assertIn(f'{unset} {node} ', self.found.would_help)

    def test_nothing_ends_what_it_holds(self):
        """nova may work on it: what helped before helps still."""
        self.server(uuids.server, 'host2', updated_at=minutes_ago(1))
        self.hold(uuids.server, 'b', 'a')
        self.assertTrue(self.name())
        self.assertEqual('grow', self.found.would_help)

    def test_who_is_not_asked_about(self):
        """Whoever has no place for another reason than room."""
        self.server(uuids.server, 'host2', updated_at=minutes_ago(60))
        self.hold(uuids.server, 'b', 'a')
        for cause in (
            plans.STATE,
            plans.FAULT,
            plans.NOT_KNOWN,
            'left out',
            'never migrated',
        ):
            self.assertFalse(self.name(cause=cause), cause)
