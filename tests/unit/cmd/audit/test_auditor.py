# SPDX-License-Identifier: Apache-2.0

import types
from unittest import mock

import testtools

from nova_ext_sched.cmd.audit import auditor
from nova_ext_sched.cmd.audit import destinations
from nova_ext_sched.cmd.audit import servers
from nova_ext_sched.policy import verdict

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
        if number == 9:
            yield 'EvenFilter', ValueError('nine\nis odd')
        else:
            yield (
                'even',
                verdict.reject('odd') if number % 2 else verdict.PASS,
            )


class AuditorTestCase(testtools.TestCase):
    def make(self, hosts=None, **cells):
        """Make an auditor of cells.

        Each is what its reads yield or raise, or why it does not answer.
        """
        self.read = []

        class Servers(mock.Mock):
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
        ):
            self.find = destination.return_value.find
            self.destinations = destination
            return auditor.Auditor(None, self.scheduler, Policies(), hosts)

    def test_findings(self):
        auditing = self.make(a=[server('1'), server('2')], b=[server('3')])
        self.assertEqual(3, auditing.count())
        steps = mock.Mock()
        self.assertEqual(
            [
                ('1', 'name1', 'project', 'host1', 'even', 'odd'),
                ('3', 'name3', 'project', 'host1', 'even', 'odd'),
            ],
            list(auditing.findings(steps)),
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
        next(auditing.findings())
        self.assertEqual(['1'], self.read)

    def test_other_hosts(self):
        auditing = self.make(hosts={'host2'}, a=[server('1')])
        self.assertEqual(0, auditing.count())
        self.assertEqual([], list(auditing.findings()))

    def test_what_cannot_be_judged(self):
        auditing = self.make(a=[server('1', 'no request spec'), server('9')])
        auditing.count()
        self.assertEqual(
            [
                ('not-judged', 'no request spec'),
                ('not-judged', 'EvenFilter fails: ValueError: nine'),
            ],
            [finding[4:] for finding in auditing.findings()],
        )
        self.assertEqual(
            '0 of 2 servers violate a policy (judged by even). 2 servers '
            'cannot be judged.',
            auditing.totals.sentence,
        )
        self.assertEqual([], list(auditing.totals.lines()))
        self.assertEqual([], auditing.faults)

    def test_cells_that_are_down(self):
        auditing = self.make(
            a='gone',
            b=[server('1'), servers.CellDown('going'), server('3')],
            c=[server('5')],
        )
        auditing.count()
        self.assertEqual(
            ['1', '5'], [finding.server for finding in auditing.findings()]
        )
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
        unjudged, judged = auditing.findings()
        self.find.side_effect = [['host2'], *[OSError('no answer')] * 2]
        self.assertIsNone(auditing.find_destinations(unjudged))
        self.assertEqual(['host2'], auditing.find_destinations(judged))
        self.assertEqual([], auditing.faults)
        for count in ('1 server', '2 servers'):
            self.assertIsNone(auditing.find_destinations(judged))
            self.assertEqual(
                [
                    f'The hosts for {count} are unknown, 3 for example: '
                    f'OSError: no answer.'
                ],
                auditing.faults,
            )
        self.destinations.assert_called_once_with(self.scheduler)
        self.find.assert_called_with('3')
