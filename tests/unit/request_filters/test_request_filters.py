# SPDX-License-Identifier: Apache-2.0

"""What an entry point of the request filters may be."""

import ddt
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
