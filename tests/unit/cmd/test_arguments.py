# SPDX-License-Identifier: Apache-2.0

import argparse
import contextlib
import types
from unittest import mock

import ddt
import fixtures
import nova.conf
import testtools

from nova_ext_sched import conf
from nova_ext_sched import exception
from nova_ext_sched.cli import base
from nova_ext_sched.cli import completion
from nova_ext_sched.cli import options
from nova_ext_sched.cmd import arguments
from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.dryrun.decision import request
from tests.unit.dryrun.cloud import clouds


@ddt.ddt
class ChangeTestCase(testtools.TestCase):
    def make(self, *argv):
        parser = argparse.ArgumentParser()
        options.add_change(parser)
        return arguments.make_change(parser.parse_args(argv))

    @ddt.data(
        ([], {}),
        (['--option', 'a.b=c=d'], {'options': [('a.b', 'c=d')]}),
        (['--aggregate-property', 'gpu', 'a=2=3'],
         {'metadata': [('gpu', 'a', '2=3')]}),
        (['--no-aggregate-property', 'gpu', 'a'],
         {'no_metadata': [['gpu', 'a']]}),
        (['--aggregate-host', 'gpu', 'h'], {'hosts': [['gpu', 'h']]}),
        (['--no-aggregate-host', 'gpu', 'h'], {'no_hosts': [['gpu', 'h']]}),
    )  # fmt: skip
    @ddt.unpack
    def test_each_option(self, argv, expected):
        self.assertEqual(
            {**dict.fromkeys(vars(change.Change()), []), **expected},
            vars(self.make(*argv)),
        )

    @ddt.data('a', '=a')
    def test_metadata_of_another_form(self, item):
        error = self.assertRaises(
            exception.InvalidValue,
            self.make,
            *('--aggregate-property', 'gpu', item),
        )
        self.assertEqual(
            f"--aggregate-property: expected KEY=VALUE, got '{item}'",
            str(error),
        )


class NamesTestCase(testtools.TestCase):
    """The shell completes what a command at a terminal has read."""

    def setUp(self):
        super().setUp()
        home = self.useFixture(fixtures.TempDir()).path
        self.useFixture(fixtures.EnvironmentVariable('XDG_CACHE_HOME', home))
        self.cloud = clouds.Cloud('ab')
        self.cloud.aggs_by_id = {
            1: types.SimpleNamespace(
                name='windows', metadata={'rack': 'r1'}, hosts=['a']
            )
        }
        self.flavors = mock.Mock(return_value=[mock.Mock()])
        self.flavors.return_value[0].name = 'm1.small'
        for name, fake in (
            ('nova.objects.FlavorList.get_all', self.flavors),
            ('nova_ext_sched.cmd.arguments.resolve_names', mock.Mock()),
            (
                'nova_ext_sched.dryrun.cloud.snapshot.read',
                lambda *_, **__: contextlib.nullcontext(self.cloud),
            ),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, fake))

    def read(self, is_terminal=True, saved=None):
        parser = argparse.ArgumentParser()
        options.add_change(parser)
        parsed = parser.parse_args([])
        parsed.saved = saved
        with mock.patch('sys.stderr') as stream:
            stream.isatty.return_value = is_terminal
            with arguments.read_cloud(parsed):
                return completion.read_kept()

    def test_kept(self):
        conf.register_opts(nova.conf.CONF)
        kept = self.read()
        self.assertEqual(['hosta', 'hostb'], kept['HOST'])
        self.assertEqual(['windows'], kept['AGGREGATE'])
        self.assertEqual(['m1.small'], kept['FLAVOR'])
        self.assertEqual({'VALUE', 'POLICY'} - kept.keys(), set())
        # Once a day, unless the others change.
        self.read()
        self.flavors.assert_called_once()
        self.cloud.add_node('c')
        self.assertIn('hostc', self.read()['HOST'])

    def test_not_kept(self):
        self.assertEqual({}, self.read(is_terminal=False))
        self.assertEqual({}, self.read(saved='file'))


class QuestionTestCase(testtools.TestCase):
    def make(self, *argv, **others):
        parser = argparse.ArgumentParser()
        base.add(parser, options.OF_SERVER)
        return arguments.make_question(parser.parse_args(argv), **others)

    def test_nothing_is_named(self):
        none = request.Question(image_properties=[], hints=[])
        self.assertEqual(none, self.make())

    def test_each_option(self):
        self.assertEqual(
            request.Question(
                image='i',
                image_properties=[('a', 'b'), ('a', 'c')],
                boot_from_volume=True,
                availability_zone='z:h',
                project='p',
                server_group='g',
                hints=[('k', '1'), ('k', '2')],
                flavor='f',
                instances=2,
            ),
            self.make(
                *('--image', 'i', '--image-property', 'a=b'),
                *('--image-property', 'a=c', '--boot-from-volume'),
                *('--availability-zone', 'z:h', '--project', 'p'),
                *('--server-group', 'g', '--hint', 'k=1', '--hint', 'k=2'),
                flavor='f',
                instances=2,
            ),
        )
