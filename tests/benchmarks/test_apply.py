# SPDX-License-Identifier: Apache-2.0

"""What ``move plan apply`` asks of nova-api, on a real nova.

NOVA_EXT_SCHED_TEST_MOVES sets how many live migrations there are, 50 by
default; each takes about two seconds of CPU, nearly all of it nova's. Requests
that ask again whether a move has ended are counted apart: nova-compute decides
how many there are.
"""

import collections
import os
import re
import sys
import time

import fixtures
from nova.compute import manager
import requests

from nova_ext_sched.osc import moves_run
from tests.functional import test_osc_moves

MOVES = int(os.environ.get('NOVA_EXT_SCHED_TEST_MOVES', '50'))
#: Requests of a move, without those of looks while nova works.
MOST = 12
_UUID = re.compile('[0-9a-f-]{36}')


class ApplyBenchmark(test_osc_moves.ApplyTestCase):
    has_stopped = False
    compute_driver = 'fake.FakeDriver'

    def setUp(self):
        # Each server has one of them.
        cpus = 'nova.virt.fake.FakeDriver.vcpus'
        self.useFixture(fixtures.MonkeyPatch(cpus, MOVES))
        super().setUp()
        self.flags(instances=-1, cores=-1, ram=-1, group='quota')
        # One is there.
        for _ in range(MOVES - 1):
            self.boot(host='host1')
        # After each move both hosts count all of their servers, which no host
        # has as many of as this one: it would take longer than the moves.
        counting = 'update_available_resource'
        self.patch(manager.ComputeManager, counting, lambda *_, **__: None)

    def count(self, plan, *arguments, status=0):
        """Apply a plan; return requests by kind, and the CPU they took."""
        kinds = collections.Counter()
        send = requests.Session.send

        def counting(session, request, **kwargs):
            if request.url.startswith(self.api.base_url):
                path = request.path_url.partition('?')[0]
                parts = _UUID.sub('ID', path).strip('/').split('/')
                kinds[request.method, '/'.join(parts[1:])] += 1
            return send(session, request, **kwargs)

        with fixtures.MonkeyPatch('requests.Session.send', counting):
            begin = time.monotonic()
            results = self.apply(plan, *arguments, status=status)
            seconds = time.monotonic() - begin
        print(
            f'\napply {" ".join(arguments)}: {len(results)} moves, '
            f'{kinds.total()} requests in {seconds:.0f} s',
            file=sys.stderr,
        )
        for (method, path), number in kinds.most_common():
            each = number / len(results)
            print(f'{number:8} {each:5.1f} {method} {path}', file=sys.stderr)
        return results, kinds

    def test_requests(self):
        plan = self.drain()
        self.assertEqual(MOVES, len(plan['moves']))
        results, kinds = self.count(plan, '--dry-run', status=3)
        self.assertEqual({'planned'}, {*results})
        self.assertEqual({'GET'}, {method for method, _ in kinds})
        self.assertLess(kinds.total(), 4 * MOVES + 20)
        # As on a cloud; the tests look more often.
        self.patch(moves_run, 'SECONDS', 2)
        results, kinds = self.count(plan, '--at-once', '4')
        self.assertEqual({'moved'}, {*results})
        posts = {
            path: number
            for (method, path), number in kinds.items()
            if method == 'POST'
        }
        self.assertEqual(MOVES, sum(posts.values()))
        self.assertLess(kinds.total(), MOST * MOVES + 20)
