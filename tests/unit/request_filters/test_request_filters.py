# SPDX-License-Identifier: Apache-2.0

"""What an entry point of the request filters may be."""

import ddt
from nova.scheduler import request_filter as nova_request_filter
import testtools

from nova_ext_sched import request_filters


@ddt.ddt
class KindTestCase(testtools.TestCase):
    @ddt.data(
        (1, 'an object of type int'),
        (object, 'the class object'),
        (lambda request_spec: False, 'a function (request_spec)'),
        (lambda ctxt, spec, more: False, 'a function (ctxt, spec, more)'),
        (lambda ctxt, spec: False, None),
    )
    @ddt.unpack
    def test_kind(self, plugin, got):
        self.assertEqual(
            got, request_filters._not_a_request_filter('f', plugin)
        )


class InstallTestCase(testtools.TestCase):
    def test_beside_one_of_nova_s_with_the_same_name(self):
        found = [nova_request_filter.isolate_aggregates]
        self.patch(nova_request_filter, 'ALL_REQUEST_FILTERS', found)
        for _ in range(2):
            request_filters.install(['isolate_aggregates'])
        self.assertEqual(
            [
                'nova.scheduler.request_filter',
                'nova_ext_sched.request_filters.isolation',
            ],
            [one.__module__ for one in found],
        )
