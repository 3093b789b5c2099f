# SPDX-License-Identifier: Apache-2.0

import contextlib
import datetime
import types
from unittest import mock

import ddt
import fixtures
from keystoneauth1 import exceptions as ks_exc
from nova import exception as nova_exception
from nova import objects
import nova.conf
from openstack import exceptions as sdk_exception
from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_utils.fixture import uuidsentinel as uuids
import sqlalchemy as sa
import testtools

from nova_ext_sched import conf
from nova_ext_sched import exception
from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.dryrun.cloud import placement
from nova_ext_sched.dryrun.decision import conclusion
from nova_ext_sched.dryrun.decision import explanation
from nova_ext_sched.dryrun.decision import matrix
from nova_ext_sched.dryrun.decision import request
from nova_ext_sched.watch import explainer
from nova_ext_sched.watch import interrupt
from nova_ext_sched.watch import metrics
from nova_ext_sched.watch import refusals

CONF = nova.conf.CONF
conf.register_opts(CONF)
objects.register_all()


TIME = datetime.datetime(2026, 1, 2, 3, 4, 5)
RETRIES = 'Exceeded maximum number of '
WORDS = 'No valid host was found. There are not enough hosts available.'


def document(hosts, left=0, *causes, end=None, after=0, finds=True):
    """Return what a constraint is read from.

    :param causes: as they are ranked
    :param after: seconds after the refusal
    """
    time = TIME + datetime.timedelta(seconds=after)
    answer = {
        'hosts': hosts,
        'left': left,
        'finds_host': finds and left > 0,
        'end': end and {'cause': end},
        'cause': end or (causes or [None])[0],
        'label': 'its label',
    }
    return {'time': f'{time.isoformat()}Z', 'answer': answer}


def refuse(operation, time=None, words=WORDS):
    return refusals.Refusal(
        'cell', 'fault', 7, time, 'server', words, operation=operation
    )


@ddt.ddt
class ConstraintTestCase(testtools.TestCase):
    def find(self, words, answer):
        refusal = refuse('boot', TIME, f'No valid host was found. {words}')
        found = answer.find_constraint(refusal)
        label = answer.find_constraint(refusal, 'label')
        if label != found:
            self.assertEqual('its label', label)
            label = 'policy'
        return found, label

    @ddt.data(
        # As the answer ranks them.
        ('policy', document(9, 0, 'service that is down', 'isolation'),
         'service that is down'),
        ('policy', document(9, 0, 'isolation', 'service that is down'),
         'isolation'),
        ('none', document(9, 1, 'isolation'), 'none'),
        ('none', document(9, 9, after=60), 'none'),
        ('none', document(9, 9, after=-60), 'none'),
        ('none later', document(9, 9, after=61), 'none later'),
        ('too few hosts', document(9, 2, 'isolation', finds=False),
         'too few hosts'),
        ('no hosts', document(0), 'no hosts'),
        ('policy', document(9, 0, 'isolation', end='image traits'),
         'image traits'),
        ('policy', document(0, end='server group'), 'server group'),
    )  # fmt: skip
    @ddt.unpack
    def test_by_what_explain_says(self, label, found, expected):
        answer = explainer.Explained(found)
        words = 'There are not enough hosts available.'
        self.assertEqual((expected, label), self.find(words, answer))

    @ddt.data(
        # nova's words, hosts that are left, and the constraint.
        ('', 9, 'no candidates'),
        ('', 0, 'isolation'),
        ('isolate_aggregates cannot decide', 9, 'cannot decide'),
        ('isolate_aggregates cannot decide.', 0, 'cannot decide'),
        # What a member wrote.
        ("aggregate 'x cannot decide' is not there", 0, 'isolation'),
        ('no pool: x cannot decide', 9, 'none'),
    )
    @ddt.unpack
    def test_by_what_nova_said(self, words, left, expected):
        answer = explainer.Explained(document(9, left, 'isolation'))
        label = 'policy' if expected == 'isolation' else expected
        self.assertEqual((expected, label), self.find(words, answer))


def stored(**fields):
    """Return a request as nova stores it."""
    request = {
        'id': 7,
        'instance_uuid': uuids.server,
        'project_id': 'a-project',
        'scheduler_hints': {'key': ['value']},
        'flavor': objects.Flavor(id=3, vcpus=4),
        'image': image(uuids.image, traits_required=['HW_A']),
        'numa_topology': topology({0, 1}),
    }
    return objects.RequestSpec(**request | fields)


def image(image_id, **properties):
    return objects.ImageMeta(
        id=image_id, properties=objects.ImageMetaProps(**properties)
    )


def topology(*cells, server=uuids.server, first=0):
    made = [
        objects.InstanceNUMACell(id=number, cpuset=cpus, memory=64)
        for number, cpus in enumerate(cells, first)
    ]
    return objects.InstanceNUMATopology(instance_uuid=server, cells=made)


@ddt.ddt
class KeyTestCase(testtools.TestCase):
    """Which requests share an explanation."""

    def key(self, **fields):
        return explainer._make_key(stored(**fields))

    def test_of_two_servers_that_ask_for_the_same(self):
        other = {
            'id': 8,
            'instance_uuid': uuids.other,
            'numa_topology': topology({0, 1}, server=uuids.other),
            'image': image(uuids.another_image, traits_required=['HW_A']),
        }
        self.assertEqual(self.key(), self.key(**other))

    def test_where_a_policy_reads_the_image(self):
        """Glance is asked for more than nova knows of it."""
        option = 'member_sources', ['image'], 'nova_ext_sched'
        CONF.set_override(*option)
        self.addCleanup(CONF.clear_override, *option[::2])
        other = image(uuids.another_image, traits_required=['HW_A'])
        self.assertNotEqual(self.key(), self.key(image=other))

    @ddt.data(
        {'project_id': 'another'},
        {'scheduler_hints': {'key': ['other']}},
        # What a member may write, though nova writes it too.
        {'scheduler_hints': {'key': ['value'], 'id': ['1']}},
        {'scheduler_hints': {'key': ['value'], 'instance_uuid': ['1']}},
        {'scheduler_hints': {'key': ['value'], 'nova_object.changes': ['1']}},
        {'flavor': objects.Flavor(id=3, vcpus=5)},
        {'numa_topology': topology({0}, {1})},
        {'numa_topology': topology({0, 1}, first=1)},
        {'num_instances': 2},
        {'image': image(uuids.image)},
    )
    def test_what_a_request_asks_for_counts(self, fields):
        self.assertNotEqual(self.key(), self.key(**fields))


class Stored(str):
    """A request that is like others of its name."""

    flavor = 'old'


@ddt.ddt
class ExplainerTestCase(testtools.TestCase):
    """What is explained, what is shared, and how often."""

    def setUp(self):
        super().setUp()
        self.now = 1000.0
        self.asked = []
        #: What asking a server's explanation, or its request, raises.
        self.problem = None
        self.unstored = None
        explains, dryrun = (
            'nova_ext_sched.watch.explainer',
            'nova_ext_sched.dryrun',
        )
        for name, replacement in {
            'oslo_utils.timeutils.now': lambda: self.now,
            'nova.objects.RequestSpec.get_by_instance_uuid': self.get_stored,
            f'{explains}._explain_refusal': lambda _, *args: self.ask(*args),
            f'{explains}._make_key': lambda one: one,
            f'{explains}._read_new_flavor': self.read_new_flavor,
            f'{dryrun}.cloud.process.context': lambda: 'context',
            f'{dryrun}.decision.document.make_request': self.describe,
        }.items():
            self.useFixture(fixtures.MonkeyPatch(name, replacement))
        self.log = self.useFixture(fixtures.FakeLogger())
        self.signals = interrupt.Interrupt()
        self.explainer = explainer.Explainer(
            metrics.Metrics(), self.signals, cells.Cells(), 3
        )

    @staticmethod
    def describe(stored, server, server_name=None):
        return {
            'of': stored,
            'server': server,
            'server_name': server_name,
            'image': f'image of {server}',
            'flavor': stored.flavor,
        }

    def get_stored(self, class_, context, server):
        if self.unstored:
            raise self.unstored
        # Servers that are named alike ask for the same.
        return Stored(server.rstrip('0123456789'))

    def read_new_flavor(self, context, refusal):
        if self.problem:
            raise self.problem
        return 'new'

    def ask(self, context, refusal, stored, bounds):
        self.asked.append(refusal.server)
        self.bounds = bounds
        with self.signals.may_interrupt():
            pass
        if self.problem:
            raise self.problem
        request = {'server': refusal.server, 'flavor': stored}
        lists = {'constraints': [], 'order': [{}] * 1000, 'remarks': []}
        return {'request': request, 'answer': {}, **lists}

    def test_what_helps_is_tried_while_nobody_waits(self):
        for others_wait, expected in ((False, 2), (True, 0)):
            self.explainer.others_wait = others_wait
            self.explain('busy' if others_wait else 'idle')
            self.assertEqual(expected, self.bounds.tries)

    def explain(self, server, operation='boot', message='No valid host was '):
        refusal = refusals.Refusal(
            *('cell', 'fault', server, None, server, f'{message}found.'),
            operation=operation,
            server_name=f'name of {server}',
        )
        return self.explainer.explain(refusal)

    def reasons(self, *servers):
        return [self.explain(server).reason for server in servers]

    @staticmethod
    def of(answer):
        """Return what a request that is not explained asked, and for whom."""
        return answer.request['of'], answer.request['server']

    def at(self, now):
        self.now = now
        self.explainer.begin_turn()

    def test_so_many_in_a_minute(self):
        self.at(1000)
        self.assertEqual(['', ''], self.reasons('a', 'b'))
        self.at(1030)
        self.assertEqual(['', 'limit', 'limit'], self.reasons('c', 'd', 'e'))
        answer = self.explain('d')
        self.assertIsNone(answer.document)
        self.assertEqual(
            'More than 3 different requests were refused within a minute.',
            answer.detail,
        )
        self.assertEqual(('d', 'd'), self.of(answer))
        self.at(1059.9)
        self.assertEqual(['limit'], self.reasons('d'))
        self.at(1060)
        self.assertEqual(['', '', 'limit'], self.reasons('d', 'e', 'f'))
        self.at(1090)
        self.assertEqual(['', 'limit'], self.reasons('f', 'g'))

    def test_so_many_in_a_turn(self):
        """However long that lasts."""
        self.at(1000)
        self.assertEqual(['', '', ''], self.reasons('a', 'b', 'c'))
        self.now = 1100
        self.assertEqual(['limit'], self.reasons('d'))

    def test_shared_for_a_minute(self):
        """From the beginning of its turn, and after the limit too."""
        self.at(1000)
        self.now = 1030
        self.reasons('a1', 'b', 'c')
        self.at(1059.9)
        self.assertEqual(['', 'limit'], self.reasons('a2', 'd'))
        self.assertEqual(['a1', 'b', 'c'], self.asked)
        self.at(1060)
        self.assertEqual([''], self.reasons('a3'))
        self.assertEqual(['a1', 'b', 'c', 'a3'], self.asked)

    def test_what_is_shared_says_whose_it_is(self):
        """And what this request asked for itself."""
        first, second = self.explain('a1'), self.explain('a2')
        self.assertEqual(
            (first.document, 'cell:fault:a1'), (second.document, second.source)
        )
        self.assertEqual('a1', first.request['server'])
        self.assertEqual('image of a2', second.request['image'])
        self.assertEqual(['a1'], self.asked)

    def test_operations_on_servers_that_exist_are_not_shared(self):
        """They depend on where the server is."""
        for _ in range(2):
            self.explain('a1', 'migrate')
        self.explain('a2')
        self.assertEqual(['a1', 'a1', 'a2'], self.asked)

    @ddt.data(('resize', 'new'), ('boot', 'old'), ('migrate', 'old'))
    @ddt.unpack
    def test_after_tries_on_hosts(self, operation, flavor):
        answer = self.explain('a1', operation, RETRIES)
        self.assertEqual(('retries', []), (answer.reason, self.asked))
        self.assertEqual(('a', 'a1'), self.of(answer))
        self.assertEqual(flavor, answer.request['flavor'])

    def test_after_tries_on_hosts_and_gone(self):
        """Its request, or the flavor of its resize."""
        self.problem = explainer._Gone('no migration')
        gone = nova_exception.RequestSpecNotFound(instance_uuid='a')
        for operation in ('resize', 'boot'):
            answer = self.explain('a', operation, RETRIES)
            self.assertEqual(
                ('retries', None), (answer.reason, answer.request)
            )
            self.unstored = gone

    @ddt.data(
        placement.PlacementFailed(query='/x', cause='503'),
        cells.CellFailed(cell='cell1', cause='no answer'),
        nova_exception.CellTimeout(),
        ks_exc.ConnectFailure('no route'),
        sdk_exception.SDKException('no route'),
        db_exception.DBConnectionError(),
        sa.exc.OperationalError('SELECT', {}, Exception('no route')),
    )
    def test_what_is_away(self, problem):
        """Tried again and again, it does not use up the minute."""
        self.problem = problem
        for _ in range(5):
            self.assertRaises(explainer.Unavailable, self.explain, 'a')
        self.problem = None
        self.assertEqual(['', '', '', 'limit'], self.reasons(*'abcd'))

    @ddt.data(
        nova_exception.InstanceNotFound(instance_id='a'),
        nova_exception.InstanceMappingNotFound(uuid='a'),
        nova_exception.RequestSpecNotFound(instance_uuid='a'),
        # The new one of a resize.
        nova_exception.FlavorNotFound(flavor_id=3),
        explainer._Gone('on no host'),
    )
    def test_what_is_gone(self, problem):
        self.problem = problem
        answer = self.explain('a')
        self.assertEqual(('gone', None), (answer.reason, answer.document))
        self.assertIn(str(problem), answer.detail)

    @ddt.data(
        exception.InvalidValue(where='[filter_scheduler]', expected='', got=1),
        exception.PluginError('a'),
        nova_exception.SchedulerHostFilterNotFound(filter_name='a'),
        cfg.ConfigFileValueError('x'),
    )
    def test_a_nova_conf_that_cannot_be_used(self, problem):
        """nova-scheduler would not start with it either."""
        self.problem = problem
        answer = self.explain('a')
        self.assertEqual(
            ('configuration', None, str(problem)),
            (answer.reason, answer.document, answer.detail),
        )
        self.assertIn('nova.conf cannot be used', self.log.output)

    def test_what_is_shared_is_short(self):
        """A minute holds many."""
        found = self.explain('a1').document
        [kept] = self.explainer._shared.values()
        for one in (found, kept.document, self.explain('a2').document):
            self.assertEqual(20, len(one['order']))

    def test_an_error(self):
        """explain is wrong: the record and the log say so."""
        self.problem = LookupError('x')
        answer = self.explain('a')
        found = answer.reason, answer.detail
        self.assertEqual(('error', 'LookupError: x'), found)
        self.assertIn('Refusal cell:fault:a cannot be', self.log.output)
        self.assertIn('Traceback', self.log.output)

    def test_a_signal_ends_an_explanation(self):
        self.signals.arrived = True
        self.assertRaises(interrupt.Stop, self.explain, 'a')
        self.assertEqual([], self.asked)


@ddt.ddt
class AskTestCase(testtools.TestCase):
    """What explain is asked; tests/functional has each operation."""

    def setUp(self):
        super().setUp()
        self.spec = types.SimpleNamespace(num_instances=3, image='stored')
        #: What explain raises.
        self.problem = None
        self.asked = []
        self.found = explanation.Explanation('request', matrix.Matrix({}))
        for name, replacement in {
            'dryrun.cloud.snapshot.Snapshot': lambda *given: given,
            'dryrun.decision.explanation.explain': self.explain,
            'dryrun.decision.document.build': lambda *given: given,
            'watch.explainer._describe_image': lambda image: f'{image} image',
            'watch.explainer._read_new_flavor': lambda *given: given,
        }.items():
            path = f'nova_ext_sched.{name}'
            self.useFixture(fixtures.MonkeyPatch(path, replacement))

    def explain(self, *given, closely, bounds):
        if self.problem:
            raise self.problem
        self.asked += [*given, closely, bounds]
        return self.found

    def ask(self, operation):
        self.refusal = refuse(operation)
        return explainer._explain_refusal(
            *('cells', 'context', self.refusal, self.spec), 'bounds'
        )

    def test_what_is_gone(self):
        """What else is invalid is of nova.conf."""
        for kind, expected in (
            (request.InvalidQuestion, explainer._Gone),
            (exception.InvalidValue, exception.InvalidValue),
        ):
            self.problem = kind(where='x', expected='', got='')
            self.assertRaises(expected, self.ask, 'migrate')

    def test_what_changes_a_policy_has_no_command(self):
        advice = [
            conclusion.Advice(kind, 'do', 1, '', ['openstack'], [])
            for kind in ('repair', 'policy')
        ]
        self.found.matrix.advice = advice
        self.ask('migrate')
        self.assertEqual([['openstack'], []], [one.commands for one in advice])

    def test_a_filter_whose_database_is_away(self):
        self.found.matrix.failure = db_exception.DBError()
        self.assertRaises(db_exception.DBError, self.ask, 'migrate')
        # Another failure is the answer.
        self.found.matrix.failure = LookupError()
        self.ask('migrate')


class ImageTestCase(testtools.TestCase):
    def test_of_a_volume(self):
        """It may have no more than properties."""
        image = objects.ImageMeta(properties=objects.ImageMetaProps())
        self.assertEqual({'properties': {}}, explainer._describe_image(image))


class NewFlavorTestCase(testtools.TestCase):
    """The flavor of a resize; tests/functional has two, one after another."""

    def test_none_that_had_begun(self):
        time = datetime.datetime(2026, 1, 2, 3, 4, 11, tzinfo=datetime.UTC)
        later = mock.Mock(id=9, new_instance_type_id=9, created_at=time)
        asked, mapping = [], mock.Mock(cell_mapping='cell')

        def get_by_filters(*args):
            asked.append(args[-1])
            return [later]

        for name, replacement in {
            'objects.InstanceMapping.get_by_instance_uuid': lambda *_: mapping,
            'objects.MigrationList.get_by_filters': get_by_filters,
            'context.target_cell': lambda _, cell: contextlib.nullcontext(
                cell
            ),
        }.items():
            self.useFixture(fixtures.MonkeyPatch(f'nova.{name}', replacement))
        refusal = refuse('resize', datetime.datetime(2026, 1, 2, 3, 4, 10))
        error = self.assertRaises(
            explainer._Gone, explainer._read_new_flavor, 'context', refusal
        )
        self.assertIn('server server', str(error))
        self.assertEqual(
            [{'instance_uuid': 'server', 'migration_type': 'resize'}], asked
        )
