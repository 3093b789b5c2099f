# SPDX-License-Identifier: Apache-2.0

import argparse

import ddt
import testtools

from nova_ext_sched.cli import options


@ddt.ddt
class SupposedTestCase(testtools.TestCase):
    def parse(self, *argv):
        parser = argparse.ArgumentParser()
        options.add_change(parser)
        return parser.parse_args(argv)

    @ddt.data(
        ('', '', []),
        ('--option scheduler.workers=3', 'If [scheduler] workers were 3: ',
         [('--option', 'scheduler.workers=3')]),
        ('--aggregate-host a h1 --option debug=1 --option x=2',
         'If [DEFAULT] debug were 1 and [DEFAULT] x were 2 and aggregate a '
         'had h1: ',
         [('--option', 'debug=1'), ('--option', 'x=2'),
          ('--aggregate-host', 'a h1')]),
        ('--enable-host a --without-host b --add-host c:2@r',
         'If there were 2 more hosts like c in r and b were taken away and a '
         'were enabled: ',
         [('--add-host', 'c:2@r'), ('--without-host', 'b'),
          ('--enable-host', 'a')]),
        (
            '--no-aggregate-property a trait:X --aggregate-property b k=v '
            '--no-aggregate-host b h2',
            'If aggregate b had k=v and aggregate a had no trait:X and '
            'aggregate b did not have h2: ',
            [
                ('--aggregate-property', 'b k=v'),
                ('--no-aggregate-property', 'a trait:X'),
                ('--no-aggregate-host', 'b h2'),
            ],
        ),
    )  # fmt: skip
    @ddt.unpack
    def test_said(self, argv, clause, supposed):
        parsed = self.parse(*argv.split())
        self.assertEqual(clause, options.say_supposed(parsed))
        self.assertEqual(
            supposed,
            [(one.option, one.value) for one in options.list_supposed(parsed)],
        )

    @ddt.data(
        ('placement.password=', 'p1', '***'),
        ('neutron.metadata_proxy_shared_secret=', 'p1', '***'),
        ('transport_url=', 'rabbit://a:p1@host', 'rabbit://a:***@host'),
    )
    @ddt.unpack
    def test_what_nobody_is_to_see(self, name, secret, shown):
        parsed = self.parse('--option', f'{name}{secret}')
        self.assertIn(f' were {shown}: ', options.say_supposed(parsed))
        [supposed] = options.list_supposed(parsed)
        self.assertEqual(f'{name}{shown}', supposed.value)
