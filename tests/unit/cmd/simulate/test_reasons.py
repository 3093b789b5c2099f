# SPDX-License-Identifier: Apache-2.0

import logging
import unittest

import ddt

from nova_ext_sched.cmd.simulate import reasons

HOST_FILTER = 'nova_ext_sched.filters.base'
OURS = (HOST_FILTER, 'OurFilter rejected 2 of 2 hosts: aggregate x is full')
ASKED = ('/allocation_candidates', 'with VCPU:1, not in windows')
NO_CANDIDATE = (
    'nova.scheduler.manager',
    'Got no allocation candidates from the Placement API. This could be',
)
NOT_FOUND = 'No valid host was found. There are not enough hosts available.'


class ReasonsTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.handler = reasons.Reasons()

    def log(self, name, level, *message):
        self.handler.handle(
            logging.LogRecord(
                name, level, '', 0, message[0], message[1:], None
            )
        )

    def test_ours(self):
        self.log('nova_ext_sched.x', logging.DEBUG, '%d of %d', 1, 2)
        self.log('nova_ext_sched.y', logging.ERROR, 'first\nsecond')
        self.assertEqual(
            [('nova_ext_sched.x', '1 of 2'), ('nova_ext_sched.y', 'first')],
            self.handler.take(),
        )
        self.assertEqual([], self.handler.take())

    def test_nova(self):
        for name, line in (
            ('nova.filters', 'Filter X returned 0 hosts'),
            ('nova.filters', 'Filtering removed all hosts'),
            ('nova.scheduler.host_manager', 'Host filter ignoring hosts: a'),
            NO_CANDIDATE,
            ('nova.compute.manager', 'Nothing of ours'),
        ):
            self.log(name, logging.INFO, line)
        self.assertEqual(
            [
                'nova.filters',
                'nova.scheduler.host_manager',
                'nova.scheduler.manager',
            ],
            [name for name, _ in self.handler.take()],
        )

    def test_queries(self):
        self.handler.add_query('/resource_providers?in_tree=a')
        self.handler.add_query(
            '/allocation_candidates?in_tree=a&limit=1000&'
            'member_of=%21in%3Ab%2Cc&member_of=in%3Ad%2Ce&member_of=f&'
            'required=%21COMPUTE_STATUS_DISABLED%2CCUSTOM_X%2COWNER_NOVA&'
            'required1=%21CUSTOM_Y&resources=VCPU%3A1'
        )
        self.assertEqual(
            [
                (
                    '/allocation_candidates',
                    'on a, not in b or c, in d or e, in f, with CUSTOM_X, '
                    'without CUSTOM_Y, with VCPU:1',
                )
            ],
            self.handler.take(),
        )

    def test_hosts_that_were_not_used(self):
        explain = self.handler.explain_unused
        self.assertEqual('', explain(['a']))
        self.handler.add_query('/resource_providers', {'a'})
        self.assertEqual('', explain(['a']))
        self.handler.add_query(
            '/allocation_candidates?member_of=!in:x', {'c', 'd', 'e'}
        )
        self.handler.add_refusal('c', 'OurFilter refused it: it is full')
        self.assertEqual('', explain([]))
        self.assertEqual(
            'a, b not used: placement returned only hosts not in x; '
            'c not used: OurFilter refused it: it is full; '
            'd not used: it passed every filter, another host weighed more',
            explain('abcd'),
        )
        # The next request begins anew, and the next step too.
        self.handler.add_query('/allocation_candidates?in_tree=c', {'c'})
        self.assertIn('c not used: it passed every filter', explain('c'))
        self.handler.take()
        self.assertEqual('', explain(['a']))

    def test_an_error_of_placement(self):
        url = '/allocation_candidates?member_of=!in:x'
        self.handler.add_query(url, status=500)
        self.assertEqual(
            'a not used: placement answered 500',
            self.handler.explain_unused('a'),
        )
        self.handler.add_query(url, status=414)
        said = 'placement answered 414, because the query is too long'
        self.assertEqual(
            f'a not used: {said}', self.handler.explain_unused('a')
        )
        self.log(NO_CANDIDATE[0], logging.INFO, NO_CANDIDATE[1])
        self.assertEqual(
            said, reasons.explain(self.handler.take(), [NOT_FOUND])
        )
        # It is of one request.
        self.handler.add_query(url)
        self.assertEqual(
            'a not used: placement returned only hosts not in x',
            self.handler.explain_unused('a'),
        )

    def log_spread(self, full):
        self.log(
            'nova_ext_sched.request_filters.failure_domains',
            logging.DEBUG,
            'limit %(limit)d of %(group)s, full: %(full)d',
            {'group': 'g', 'limit': 1, 'held': 'a: 1, b: 1', 'full': full},
        )

    def test_full_failure_domains(self):
        full = (
            'failure domains are full for server group g (limit 1 in each): '
            'a: 1, b: 1; '
        )
        for name, line, rest in (
            (*NO_CANDIDATE, 'placement has no host'),
            (
                'nova.filters',
                'Filter X returned 0 hosts',
                'X refused every host left',
            ),
        ):
            for number, beginning in ((2, full), (0, '')):
                self.log_spread(number)
                self.log(name, logging.INFO, line)
                self.assertEqual(
                    beginning + rest,
                    reasons.explain(self.handler.take(), [NOT_FOUND]),
                )

    def test_levels_for_every_logger(self):
        self.assertEqual(
            {'nova_ext_sched', *reasons._NOVA}, reasons.LEVELS.keys()
        )


@ddt.ddt
class ExplainTest(unittest.TestCase):
    @ddt.unpack
    @ddt.data(
        # nova-api or a compute service said no.
        ([OURS], ['409: locked'], '409: locked'),
        # A request filter ended the request.
        (
            [ASKED],
            ['No valid host was found. Scheduling failed: no such key'],
            'no such key',
        ),
        # A host filter of ours, of nova.
        (
            [
                ASKED,
                OURS,
                ('nova.filters', 'Filter OurFilter returned 0 hosts'),
            ],
            [NOT_FOUND],
            OURS[1],
        ),
        (
            [ASKED, OURS, ('nova.filters', 'Filter IoOps returned 0 hosts')],
            [NOT_FOUND],
            'IoOps refused every host left',
        ),
        # Placement, asked for something.
        (
            [ASKED, NO_CANDIDATE],
            [NOT_FOUND],
            'placement has no host with VCPU:1, not in windows',
        ),
        # A move has its own host left.
        (
            [('nova.scheduler.host_manager', 'Host filter ignoring hosts: a')],
            [NOT_FOUND],
            'no host is left but its own, a',
        ),
        # nova's own request filters.
        (
            [('nova.scheduler.request_filter', 'Tenant x has none')],
            ['No valid host'],
            'Tenant x has none',
        ),
        # Nothing was logged.
        ([], [NOT_FOUND], NOT_FOUND),
        ([ASKED], [NOT_FOUND], NOT_FOUND),
        # No server failed.
        ([OURS, ASKED], [], OURS[1]),
        ([], [], ''),
    )
    def test_explain(self, lines, details, reason):
        self.assertEqual(reason, reasons.explain(lines, details))

    def test_short(self):
        reason = reasons.explain([], ['many words ' * 100])
        self.assertLess(len(reason), 300)
        self.assertTrue(reason.endswith('many ...'), reason)
