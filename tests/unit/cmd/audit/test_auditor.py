# SPDX-License-Identifier: Apache-2.0

import types
from unittest import mock

import ddt
from nova.objects import aggregate as nova_aggregate
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_ext_sched import exception
from nova_ext_sched.cmd import kept_hosts
from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.audit import auditor
from nova_ext_sched.cmd.audit import command
from nova_ext_sched.cmd.audit import destinations
from nova_ext_sched.cmd.audit import policies
from nova_ext_sched.cmd.audit import servers
from nova_ext_sched.cmd.audit import totals

AGGREGATE = types.SimpleNamespace(name='rack1')
HOST = types.SimpleNamespace(host='host1', aggregates=[AGGREGATE])


def server(uuid, fault=''):
    return servers.Server(
        uuid, f'name{uuid}', 'project', HOST, object(), fault
    )


class Policies:
    names = ('even',)

    def judge(self, judged):
        number = int(judged.uuid)
        if judged.fault:
            yield totals.NOT_JUDGED, judged.fault
        elif number % 2:
            yield 'even', 'odd'


class AuditorTestCase(testtools.TestCase):
    def make(self, hosts=None, **cells):
        """Make an auditor of cells.

        Each is what its reads yield or raise, or why it does not answer.
        """
        self.read = []

        test = self

        class Servers:
            def __init__(self, scheduler, hosts, project):
                test.chosen = (hosts, project)

            def count(self):
                return {
                    name: {'host1': len(found)}
                    for name, found in cells.items()
                    if not isinstance(found, str)
                }

            def read(_, cell, host):
                for one in cells[cell]:
                    if isinstance(one, Exception):
                        raise one
                    self.read.append(one.uuid)
                    yield one

        self.scheduler = mock.Mock(
            cell_name=str,
            silent_cells={
                name: found
                for name, found in cells.items()
                if isinstance(found, str)
            },
        )
        with (
            mock.patch.object(servers, 'Servers', Servers),
            mock.patch.object(destinations, 'Destinations') as destination,
            mock.patch.object(policies, 'Policies') as judging,
        ):
            judging.return_value = Policies()
            self.find = destination.return_value.find
            self.destinations = destination
            made = auditor.Auditor(self.scheduler, ['even'], hosts)
        judging.assert_called_once_with(self.scheduler, ['even'])
        return made

    def findings(self, auditing, *args):
        """Return what is found, server by server, as the rows have it."""
        for one in auditing.judge(*args):
            for why in one.found:
                yield one.uuid, one.name, one.project_id, one.host, *why

    def test_findings(self):
        auditing = self.make(a=[server('1'), server('2')], b=[server('3')])
        self.assertEqual(3, auditing.count())
        steps = mock.Mock()
        self.assertEqual(
            [
                ('1', 'name1', 'project', 'host1', 'even', 'odd'),
                ('3', 'name3', 'project', 'host1', 'even', 'odd'),
            ],
            list(self.findings(auditing, steps)),
        )
        self.assertEqual(3, steps.call_count)
        self.assertEqual(
            '2 of 3 servers violate a policy: even 2.',
            auditing.totals.sentence,
        )
        self.assertEqual(
            [
                ('aggregate', 'rack1', 2, {'even': 2}),
                ('project', 'project', 2, {'even': 2}),
                ('host', 'host1', 2, {'even': 2}),
            ],
            list(auditing.totals.lines()),
        )

    def test_stream(self):
        """A finding is there before the next server is read."""
        auditing = self.make(a=[server('1'), server('2'), server('3')])
        auditing.count()
        next(auditing.judge())
        self.assertEqual(['1'], self.read)

    def test_other_hosts(self):
        self.make(hosts={'host2'}, a=[])
        self.assertEqual(({'host2'}, None), self.chosen)

    def test_what_cannot_be_judged(self):
        auditing = self.make(a=[server('1', 'no request spec'), server('2')])
        auditing.count()
        self.assertEqual(
            [('not-judged', 'no request spec')],
            [finding[4:] for finding in self.findings(auditing)],
        )
        self.assertEqual(
            '0 of 2 servers violate a policy (judged by even). 1 server '
            'cannot be judged.',
            auditing.totals.sentence,
        )
        self.assertEqual([], list(auditing.totals.lines()))
        self.assertEqual([], auditing.faults)

    def test_cells_that_are_down(self):
        auditing = self.make(
            a='gone',
            b=[
                server('1'),
                nova_scheduler.CellFailed(cell='b', cause='going'),
                server('3'),
            ],
            c=[server('5')],
        )
        auditing.count()
        self.assertEqual(['1', '5'], [one.uuid for one in auditing.judge()])
        self.assertEqual(
            [
                'Cell a cannot be read, and its servers are not judged: gone.',
                'Cell b cannot be read, and its servers are not judged: '
                'going.',
            ],
            auditing.faults,
        )
        self.assertEqual(2, auditing.totals.servers)

    def test_destinations(self):
        auditing = self.make(a=[server('1', 'no request spec'), server('3')])
        auditing.count()
        unjudged, judged = auditing.judge()
        self.assertEqual(([], ['even']), (unjudged.policies, judged.policies))
        self.assertEqual([('even', 'odd')], judged.found)
        self.find.side_effect = [['host2'], *[OSError('no answer')] * 2]
        self.assertIsNone(
            auditing.find_destinations(unjudged, totals.NOT_JUDGED)
        )
        self.assertEqual(['host2'], auditing.find_destinations(judged, 'even'))
        self.assertEqual([], auditing.faults)
        for count in ('1 server', '2 servers'):
            self.assertIsNone(auditing.find_destinations(judged, 'even'))
            self.assertEqual(
                [
                    f'The hosts for {count} are unknown, 3 for example: '
                    f'OSError: no answer.'
                ],
                auditing.faults,
            )
        self.destinations.assert_called_once_with(self.scheduler)
        self.find.assert_called_with('3')


class MakeTestCase(testtools.TestCase):
    """The servers and the aggregates that the arguments choose."""

    def setUp(self):
        super().setUp()
        self.scheduler = mock.Mock(
            aggs_by_id={
                1: types.SimpleNamespace(
                    id=1,
                    uuid='uuid1',
                    name='rack1',
                    hosts=['a', 'b'],
                    metadata={'k': 'v'},
                )
            },
            hosts={
                f'uuid of {host}': types.SimpleNamespace(host=host)
                for host in 'abc'
            },
            silent_cells={},
        )

    def make(self, *argv):
        audit = command.Audit(mock.Mock(), None, cmd_name='audit')
        parsed = audit.get_parser('audit').parse_args(argv)
        with (
            mock.patch.object(kept_hosts, 'HostManager') as manager,
            mock.patch.object(auditor, 'Auditor') as made,
        ):
            manager.return_value = self.scheduler
            auditor.make(parsed)
        given, self.names, hosts, self.project = made.call_args.args
        self.assertIs(self.scheduler, given)
        return hosts

    def test_hosts(self):
        for argv, hosts in (
            ([], None),
            (['--host', 'a'], {'a'}),
            (['--aggregate', 'rack1'], {'a', 'b'}),
            (['--aggregate', '1', '--host', 'a'], {'a'}),
            (['--aggregate', 'uuid1', '--host', 'c'], set()),
        ):
            self.assertEqual(hosts, self.make(*argv))

    def test_unknown_host(self):
        self.assertRaises(
            exception.InvalidValue, self.make, '--host', 'nohost'
        )
        # It may be one of a cell that does not answer.
        self.scheduler.silent_cells = {'cell': 'why'}
        self.assertEqual({'nohost'}, self.make('--host', 'nohost'))

    def test_project_and_policies(self):
        self.make('--project', 'p', '--policy', 'reservation')
        self.assertEqual('p', self.project)
        self.assertEqual(['reservation'], self.names)

    def test_changed_aggregates(self):
        self.make(
            '--aggregate-property',
            'rack1',
            'x=y',
            '--no-aggregate-property',
            'rack1',
            'k',
        )
        self.assertEqual({'x': 'y'}, self.scheduler.aggs_by_id[1].metadata)


def make_aggregate(number, name, metadata):
    return nova_aggregate.Aggregate(
        id=number, uuid=getattr(uuids, name), name=name, metadata=metadata
    )


@ddt.ddt
class AggregateChangeTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.aggregates = [
            make_aggregate(1, 'gpu', {'a': '1'}),
            make_aggregate(2, 'bare', None),
            make_aggregate(3, '1', {}),
        ]

    def change(self, *argv):
        audit = command.Audit(mock.Mock(), None, cmd_name='audit')
        parsed = audit.get_parser('audit').parse_args(argv)
        scheduler = mock.Mock(aggs_by_id=dict(enumerate(self.aggregates)))
        with (
            mock.patch.object(
                kept_hosts, 'HostManager', return_value=scheduler
            ),
            mock.patch.object(auditor, 'Auditor'),
        ):
            auditor.make(parsed)

    def set(self, name, item):
        self.change('--aggregate-property', name, item)
        return [aggregate.metadata for aggregate in self.aggregates]

    def remove(self, name, key):
        self.change('--no-aggregate-property', name, key)
        return [aggregate.metadata for aggregate in self.aggregates]

    @ddt.named_data(['name', 'gpu'], ['uuid', uuids.gpu])
    def test_set(self, name):
        self.assertEqual(
            [{'a': '1', 'b': '2'}, None, {}], self.set(name, 'b=2')
        )

    def test_change(self):
        self.assertEqual([{'a': '2'}, None, {}], self.set('gpu', 'a=2'))

    def test_set_where_there_is_none(self):
        self.assertEqual([{'a': '1'}, {'a': '1'}, {}], self.set('2', 'a=1'))

    def test_remove(self):
        self.assertEqual([{}, None, {}], self.remove('gpu', 'a'))

    def test_remove_what_is_not_there(self):
        for name, known in (('gpu', 'a'), ('bare', 'it has none')):
            error = self.assertRaises(
                exception.InvalidValue, self.remove, name, 'b'
            )
            self.assertIn(known, str(error))
            self.assertIn(f'aggregate {name}', str(error))

    @ddt.data(
        ('a=', 'a', ''), ('b=c', 'b', 'c'), ('trait:A=b=c', 'trait:A', 'b=c')
    )
    @ddt.unpack
    def test_forms(self, item, key, value):
        self.assertEqual(value, self.set('gpu', item)[0][key])

    @ddt.data('a', '=b', '')
    def test_malformed(self, item):
        self.assertRaises(exception.InvalidValue, self.set, 'gpu', item)
