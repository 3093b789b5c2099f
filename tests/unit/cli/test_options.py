# SPDX-License-Identifier: Apache-2.0

import argparse

import ddt
import testtools

from nova_ext_sched.cli import options
from nova_ext_sched.cli import report


@ddt.ddt
class SupposedTestCase(testtools.TestCase):
    def parse(self, *argv):
        parser = argparse.ArgumentParser()
        options.add_change(parser)
        return parser.parse_args(argv)

    @ddt.data(
        ((), '', []),
        (
            ('--option', 'scheduler.workers=3'),
            'If [scheduler] workers were 3: ',
            [('--option', 'scheduler.workers=3')],
        ),
        (
            ('--option', 'debug=1', '--aggregate-host', 'a', 'h1'),
            'If [DEFAULT] debug were 1 and aggregate a had h1: ',
            [('--option', 'debug=1'), ('--aggregate-host', 'a h1')],
        ),
        (
            (
                *('--no-aggregate-property', 'a', 'trait:X'),
                *('--aggregate-property', 'b', 'k=v'),
                *('--no-aggregate-host', 'b', 'h2'),
            ),
            'If aggregate b had k=v and aggregate a had no trait:X and '
            'aggregate b did not have h2: ',
            [
                ('--aggregate-property', 'b k=v'),
                ('--no-aggregate-property', 'a trait:X'),
                ('--no-aggregate-host', 'b h2'),
            ],
        ),
        # What nobody is to see.
        (
            ('--option', 'placement.password=p1'),
            'If [placement] password were ***: ',
            [('--option', 'placement.password=***')],
        ),
        (
            ('--option', 'neutron.metadata_proxy_shared_secret=p1'),
            'If [neutron] metadata_proxy_shared_secret were ***: ',
            [('--option', 'neutron.metadata_proxy_shared_secret=***')],
        ),
        (
            ('--option', 'transport_url=rabbit://a:p1@host'),
            'If [DEFAULT] transport_url were rabbit://a:***@host: ',
            [('--option', 'transport_url=rabbit://a:***@host')],
        ),
    )
    @ddt.unpack
    def test_said(self, argv, clause, supposed):
        parsed = self.parse(*argv)
        self.assertEqual(clause, options.say_supposed(parsed))
        self.assertEqual(
            supposed,
            [(one.option, one.value) for one in options.list_supposed(parsed)],
        )

    def test_a_report(self):
        """The first line, the sentence and the document say it."""
        sentence, sections = report.begin('2 of 3 fail', 'A remark.')
        made = report.say_origin(
            report.Report(sentence, sections, (), lambda: {'format': 1}),
            self.parse('--aggregate-host', 'a', 'h1'),
            'nova-ext-sched audit',
        )
        clause = 'If aggregate a had h1: '
        self.assertEqual(f'{clause}2 of 3 fail. A remark.', made.sentence)
        self.assertEqual(
            [f'{clause}2 of 3 fail.', 'A remark.'],
            [one.title for one in made.sections],
        )
        self.assertEqual(
            {
                'format': 1,
                'command': 'nova-ext-sched audit',
                'supposed': [{'option': '--aggregate-host', 'value': 'a h1'}],
            },
            made.document(),
        )
