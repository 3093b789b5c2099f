# SPDX-License-Identifier: Apache-2.0

import argparse

import ddt
import testtools

from nova_ext_sched import exception
from nova_ext_sched.cli import options
from nova_ext_sched.cmd import arguments
from nova_ext_sched.dryrun.cloud import change
from nova_ext_sched.dryrun.decision import question


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


class QuestionTestCase(testtools.TestCase):
    def make(self, *argv, **others):
        parser = argparse.ArgumentParser()
        options.add_server(parser)
        return arguments.make_question(parser.parse_args(argv), **others)

    def test_nothing_is_named(self):
        none = question.Question(image_properties=[], hints=[])
        self.assertEqual(none, self.make())

    def test_each_option(self):
        self.assertEqual(
            question.Question(
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
