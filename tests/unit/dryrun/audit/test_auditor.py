# SPDX-License-Identifier: Apache-2.0

import types
from unittest import mock

import ddt
from nova import objects
from oslo_utils import eventletutils
import testtools

from nova_ext_sched import exception
from nova_ext_sched.dryrun.audit import auditor
from nova_ext_sched.dryrun.audit import policies
from nova_ext_sched.dryrun.cloud import cells
from nova_ext_sched.dryrun.cloud import servers
from nova_ext_sched.dryrun.cloud import snapshot
from tests.unit.dryrun.cloud import clouds

AGGREGATE = types.SimpleNamespace(name='rack1')
HOST = types.SimpleNamespace(host='host1', aggregates=[AGGREGATE])
STAY = 'return_value.stay.side_effect'


def server(uuid):
    return policies.Standing(uuid, f'name{uuid}', 'project', HOST, object())


class Policies:
    names = ('even',)

    def judge(self, judged):
        if judged.fault:
            yield policies.NOT_JUDGED, judged.fault
        elif int(judged.uuid) % 2:
            yield 'even', 'odd'


class Scheduler(mock.Mock):
    faults = snapshot.Snapshot.faults


class AuditorTestCase(testtools.TestCase):
    def make(self, hosts=None, **cells):
        """Make an auditor of cells.

        Each is what its reads yield or raise, or why it does not answer.
        """
        self.read = []
        silent = {n: why for n, why in cells.items() if isinstance(why, str)}

        def read(cell, hosts, wanted):
            for one in cells[cell]:
                if wanted is not None and one.uuid not in wanted:
                    continue
                if isinstance(one, Exception):
                    # As a Snapshot does.
                    silent[cell] = one.cause
                    raise one
                self.read.append(one.uuid)
                yield one

        cloud = Scheduler(cell_name=str, silent_cells=silent, doubts=[])
        with (
            mock.patch.object(servers, 'Reader') as reading,
            mock.patch.object(policies, 'Policies') as judging,
        ):
            judging.return_value = Policies()
            made = auditor.Auditor(cloud, ['even'], hosts)
        judging.assert_called_once_with(cloud, ['even'])
        reading.assert_called_once_with(cloud, hosts, None)
        made._read = read
        reading.return_value.count.return_value = {
            name: {'host1': len(found)}
            for name, found in cells.items()
            if name not in silent
        }
        return made

    def test_findings(self):
        auditing = self.make(a=[server('1'), server('2')], b=[server('3')])
        self.assertEqual(3, auditing.count())
        steps = mock.Mock()
        found = [(one.uuid, one.violated) for one in auditing.judge(steps)]
        odd = [('even', 'odd')]
        self.assertEqual([('1', odd), ('3', odd)], found)
        self.assertEqual(3, steps.call_count)
        totals = auditing.totals
        self.assertEqual('2 of 3 servers violate a policy', totals.head)
        self.assertEqual([(2, 'even')], totals.counts)

    def test_one_that_is_deleted_meanwhile(self):
        """Only of those that cannot be judged it makes a difference."""
        first, *others = map(server, '1234')
        for one in others[:2]:
            one.fault = 'its volume is gone'
        auditing = self.make(a=[first, *others])
        auditing.count()
        with mock.patch.object(auditor.gone, 'find') as find:
            find.return_value = {'2'}
            found = [one.uuid for one in auditing.judge()]
        find.assert_called_once_with(auditing.cloud, {'2': 0, '3': 0}.keys())
        self.assertEqual(['1', '3'], found)
        totals = auditing.totals
        self.assertEqual((3, 1), (totals.servers, totals.not_judged))

    def test_jobs(self):
        """As of one process, with the numbers and in the order."""
        if eventletutils.is_monkey_patched('thread'):
            self.skipTest('AloneTestCase of test_jobs runs it')
        of_cells = {
            'a': [server('1')],
            'b': [server('2'), server('3'), server('5')],
            'c': [server('7'), server('4')],
        }
        alone = self.make(**of_cells)
        self.assertEqual(6, alone.count())
        expected = [one.uuid for one in alone.judge()]
        auditing = self.make(**of_cells)
        auditing.cloud.cells = of_cells
        auditing.count()
        self.assertEqual(['b', 'c', 'a'], auditing.list_cells())
        found = [
            uuid
            for some in auditing.judge_in_jobs(
                2, lambda standing: [one.uuid for one in standing]
            )
            for uuid in some
        ]
        self.assertEqual(expected, found)
        self.assertEqual([], self.read)
        self.assertEqual(vars(alone.totals), vars(auditing.totals))
        wanted = [
            ('b', 'host1', '3'),
            ('b', 'host1', '2'),
            ('c', 'host1', '7'),
        ]
        again = [one.uuid for one in auditing.judge_again(wanted)]
        self.assertEqual(['3', '7'], again)
        self.assertEqual(6, auditing.totals.servers)

    def test_stream(self):
        """A finding is there before the next server is read."""
        auditing = self.make(a=[server('1'), server('2'), server('3')])
        auditing.count()
        next(auditing.judge())
        self.assertEqual(['1'], self.read)

    def test_other_hosts(self):
        self.make(hosts={'host2'}, a=[])

    def test_cells_that_are_down(self):
        failed = cells.CellFailed(cell='b', cause='going')
        one, other, third = map(server, '135')
        auditing = self.make(a='gone', b=[one, failed, other], c=[third])
        auditing.count()
        self.assertEqual(['1', '5'], [one.uuid for one in auditing.judge()])
        said = 'Cell {} cannot be read, and its servers are not checked: {}.'
        expected = [said.format('a', 'gone'), said.format('b', 'going')]
        self.assertEqual(expected, auditing.faults)
        self.assertEqual(2, auditing.totals.servers)


@ddt.ddt
class RequestTestCase(testtools.TestCase):
    """What each server is judged by; tests/long reads real ones."""

    def read(self, text='text', moved_to='h', **problems):
        """Return the servers of a host, a among them, with its problems.

        :param moved_to: where b is since the host was read
        """
        cloud = mock.Mock()
        cloud.aggregates_of.return_value = [AGGREGATE]
        cloud.host_state_cls = lambda host, *_: types.SimpleNamespace(
            host=host
        )
        reader, stored = mock.Mock(), []
        for uuid, name, host in (('a', 'web', 'h'), ('b', None, moved_to)):
            one = types.SimpleNamespace(
                display_name=name, project_id='p', host=host
            )
            known = uuid, one, objects.CellMapping(), text
            stored.append(servers.Stored(*known))
        reader.list_on.return_value = {'h': ['a', 'b'], 'other': ['c']}
        reader.read_on.return_value = stored
        with (
            mock.patch.object(servers, 'Reader', return_value=reader),
            mock.patch.object(policies, 'Policies'),
            mock.patch.object(auditor.server, 'Server') as made,
        ):
            made.return_value.configure_mock(spec_obj='spec')
            made.configure_mock(**problems)
            hosts = ['h', 'other']
            found = [*auditor.Auditor(cloud)._read('cell', hosts, None)]
        # All of a page at once, and what they boot from.
        reader.read_on.assert_called_once_with(
            'cell', hosts, [*'abc'], ['flavor'], with_disks=True
        )
        return found

    def test_servers(self):
        first, second = self.read()
        for one, name, other in ((first, 'web', 'b'), (second, '', 'a')):
            found = one.name, one.project_id, one.request_spec, one.fault
            self.assertEqual((name, 'p', 'spec', ''), found)
            # Beside the others of its host, as if it were placed there now.
            self.assertEqual({other}, {*one.host_state.instances})
        self.assertEqual([AGGREGATE], first.host_state.aggregates)

    def test_one_that_moves_meanwhile(self):
        """It is judged where it is, of which nothing may be known yet."""
        for host, beside in ('other', {'c'}), ('a third one', set()):
            _, moved = self.read(moved_to=host)
            self.assertEqual(host, moved.host)
            self.assertEqual(beside, {*moved.host_state.instances})

    @ddt.data(
        ({'text': None},
         'nova has no request spec of the server, and nova cannot move it '
         'either'),
        ({'side_effect': ValueError('no JSON')},
         'its request spec cannot be read, and nova cannot move it either: '
         'ValueError: no JSON'),
        ({STAY: exception.RequestRefused('no volume')}, 'no volume'),
        ({STAY: KeyError('x')}, "KeyError: 'x'"),
    )  # fmt: skip
    @ddt.unpack
    def test_one_of_which_the_request_is_unknown(self, problems, fault):
        first, _ = self.read(**problems)
        self.assertIsNone(first.request_spec)
        self.assertEqual(fault, first.fault)


class MakeTestCase(testtools.TestCase):
    """The hosts that a name and an aggregate choose."""

    def setUp(self):
        super().setUp()
        names = {'id': 1, 'uuid': 'uuid1', 'name': 'rack1'}
        rack = types.SimpleNamespace(hosts=['a', 'b'], metadata={}, **names)
        hosts = {f'node {name}': name for name in 'abc'}
        self.cloud = clouds.stub(hosts, aggs_by_id={1: rack})
        # A host of servers, without a compute node.
        self.cloud.ask_cells.return_value = {'cell': {'d': 2}}

    def make(self, **chosen):
        with mock.patch.object(auditor, 'Auditor') as made:
            auditor.make(self.cloud, **chosen)
        given, self.names, hosts, self.project = made.call_args.args
        self.assertIs(self.cloud, given)
        return hosts

    def test_hosts(self):
        for chosen, hosts in (
            ({}, None),
            ({'hosts': ['a']}, {'a'}),
            ({'hosts': ['d']}, {'d'}),
            ({'aggregates': ['rack1']}, {'a', 'b'}),
            # Those of both, as in drain and survive.
            ({'aggregates': ['1'], 'hosts': ['a']}, {'a', 'b'}),
            ({'aggregates': ['uuid1'], 'hosts': ['c']}, {'a', 'b', 'c'}),
        ):
            self.assertEqual(hosts, self.make(**chosen))

    def test_unknown_host(self):
        invalid = exception.InvalidValue
        error = self.assertRaises(invalid, self.make, hosts=['nohost'])
        self.assertEqual('There is no host nohost.', str(error))
        # It may be one of a cell that does not answer.
        self.cloud.silent_cells = {'cell': 'why'}
        self.assertEqual({'nohost'}, self.make(hosts=['nohost']))

    def test_project_and_policies(self):
        self.make(project='p', policies=['reservation'])
        self.assertEqual('p', self.project)
        self.assertEqual(['reservation'], self.names)
