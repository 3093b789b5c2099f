# SPDX-License-Identifier: Apache-2.0

from keystoneauth1 import exceptions as ks_exc
from openstack import exceptions as sdk_exc
from osc_lib import exceptions as osc_exc
import requests
import testtools

from nova_ext_sched import exception
from nova_ext_sched.osc import base


def refusal(status, body, content_type='application/json'):
    response = requests.Response()
    response.status_code = status
    response.headers['content-type'] = content_type
    response.headers['x-openstack-request-id'] = 'req-1'
    response._content = body.encode()
    response.url = 'http://nova/os-aggregates'
    response.request = requests.Request('GET', response.url).prepare()
    try:
        sdk_exc.raise_from_response(response)
    except sdk_exc.HttpException as exc:
        return exc


class DescribeTestCase(testtools.TestCase):
    def test_forbidden(self):
        exc = refusal(403, '{"forbidden": {"message": "no admin"}}')
        self.assertEqual(
            'the service does not allow this to the user: no admin (GET '
            'http://nova/os-aggregates, status 403, request id req-1)',
            base.describe(exc),
        )

    def test_unauthorized_in_html(self):
        exc = refusal(401, '<p>Log\n in</p>', 'text/html')
        told = base.describe(exc)
        self.assertIn('the token, which may have expired: ', told)
        self.assertNotIn('<p>', told)
        self.assertNotIn('\n', told)

    def test_other(self):
        exc = refusal(400, '{"badRequest": {"message": "what?"}}')
        self.assertIn('refuses the request: what? (', base.describe(exc))

    def test_every_kind_becomes_a_command_error(self):
        for exc in (
            exception.InvalidValue(where='x', expected='y', got='z'),
            sdk_exc.SDKException('sdk'),
            ks_exc.ConnectFailure('no route'),
        ):

            def fail(exc=exc):
                with base.reported():
                    raise exc

            error = self.assertRaises(osc_exc.CommandError, fail)
            self.assertEqual(str(exc), str(error))

    def test_a_fault_of_ours_is_not_dressed_up(self):
        def fail():
            with base.reported():
                raise ValueError

        self.assertRaises(ValueError, fail)
