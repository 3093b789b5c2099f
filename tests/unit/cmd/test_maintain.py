# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
from unittest import mock

import ddt
import testtools

from nova_ext_sched.cmd import arguments
from nova_ext_sched.cmd import maintain
from nova_ext_sched.dryrun import progress
from tests.unit.dryrun.plan import small


@ddt.ddt
class MaintainTestCase(testtools.TestCase):
    def parse(self, *argv):
        called = maintain.Maintain(mock.Mock(), None, cmd_name='maintain')
        return called, called.get_parser('maintain').parse_args(argv)

    @ddt.data((1,), (7, '--round-size', '7'), (None, '--round-size', 'max'))
    @ddt.unpack
    def test_round_size(self, expected, *argv):
        _, parsed = self.parse(*argv)
        self.assertEqual(expected, parsed.round_size)

    @ddt.data('0', '-1', 'all', '1.5', '')
    def test_what_no_round_size_is(self, text):
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertRaises(SystemExit, self.parse, '--round-size', text)
        self.assertIn(
            f'expected a number of hosts, at least 1, or max, got: {text}',
            err.getvalue(),
        )

    def test_columns(self):
        called, parsed = self.parse()
        self.assertEqual('Round', called.get_columns(parsed)[0])
        called, parsed = self.parse('--round', '2')
        self.assertEqual('Turn', called.get_columns(parsed)[0])


@ddt.ddt
class RoundsTestCase(small.TestCase):
    """Each option changes the rounds of a small cloud."""

    def plan(self, described, *argv):
        called = maintain.Maintain(mock.Mock(), None, cmd_name='maintain')
        parsed = called.get_parser('maintain').parse_args(argv)
        cloud = self.small.build(described)
        read = mock.Mock(return_value=contextlib.nullcontext(cloud))
        with mock.patch.object(arguments, 'read_cloud', read):
            return maintain.plan(parsed, progress.silent).document()

    @ddt.data(
        ('b c a', ()),
        ('bc a', ('--round-size', 'max')),
        ('ba c', ('--round-size', 'max', '--keep-failover')),
        ('b a', ('a', 'b')),
        ('c a', ('--done', 'b')),
        ('b c', ('--not-to', 'b', '--not-to', 'c')),
    )
    @ddt.unpack
    def test_rounds(self, expected, argv):
        found = self.plan('a=4 x=3; b=4; c=4', *argv)
        rounds = (''.join(one['hosts']) for one in found['rounds'])
        self.assertEqual(expected, ' '.join(rounds))
