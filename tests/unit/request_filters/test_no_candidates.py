# SPDX-License-Identifier: Apache-2.0

import gc
import logging
import threading

from nova.scheduler import manager
from oslo_utils.fixture import uuidsentinel as uuids

from nova_ext_sched.request_filters import base
from nova_ext_sched.request_filters import member_of
from nova_ext_sched.request_filters import no_candidates
from tests.unit.request_filters import base as test_base

#: Of nova.scheduler.manager; tests/functional shows that nova writes it.
LINE = (
    'Got no allocation candidates from the Placement API. This could be due '
    'to insufficient resources or a temporary occurrence as compute nodes '
    'start up.'
)


class NoCandidatesTestCase(test_base.RequestFilterTestCase):
    level = logging.INFO

    def setUp(self):
        super().setUp()
        no_candidates.install()
        self.spec = test_base.request_spec()

        # As nova does, for every request.
        self.spec.root_forbidden.add('COMPUTE_STATUS_DISABLED')
        self.remember()

    def remember(self):
        @base.fail_closed()
        def request_filter(ctxt, request_spec):
            return True

        request_filter(self.ctxt, self.spec)

    def lines(self, line=LINE):
        before = len(self.output.output)
        manager.LOG.info(line)
        return self.output.output[before:].splitlines()

    def forbid(self, *uuids):
        member_of._get_destination(self.spec).append_forbidden_aggregates(
            set(uuids)
        )

    def test_it_names_the_server(self):
        self.spec.instance_uuid = uuids.server
        ours, novas = self.lines()
        self.assertIn(
            f'nova got no host from placement for server {uuids.server} '
            f'(request {self.ctxt.global_id}).',
            ours,
        )
        self.assertIn(f'nova-ext-sched explain --server {uuids.server}', ours)
        self.assertEqual(LINE, novas)

    def assertAsked(self, expected):
        self.assertIn(
            f'placement was asked for: {expected}. nova-ext-sched explain',
            self.lines()[0],
        )

    def test_what_nova_asked_for(self):
        self.assertAsked('no host with COMPUTE_STATUS_DISABLED')

    def test_nothing_asked_for(self):
        self.spec.root_forbidden.clear()
        self.assertAsked('nothing more')

    def test_aggregates_and_traits(self):
        self.test_nothing_asked_for()
        self.spec.root_forbidden.update('DBAC')
        member_of.require(self.spec, ['a'])
        member_of.require(self.spec, ['b', 'c'])
        self.forbid('d')
        self.assertAsked(
            'a host in 1 aggregate, a host in one of 2 aggregates, no host '
            'of 1 aggregate, no host with A, B, C and 1 more'
        )

    def test_another_line_of_nova(self):
        self.assertEqual(['Else.'], self.lines('Else.'))

    def test_requests_of_other_threads(self):
        mine, self.spec = self.spec, test_base.request_spec()
        self.forbid('b')
        thread = threading.Thread(target=self.remember)
        thread.start()
        thread.join()
        self.assertNotIn('no host of 1 aggregate', self.lines()[0])
        self.assertIsNotNone(mine)

    def test_the_request_is_gone(self):
        self.spec = None
        gc.collect()
        self.assertEqual([LINE], self.lines())

    def test_one_line_if_installed_twice(self):
        no_candidates.install()
        self.assertEqual(2, len(self.lines()))
