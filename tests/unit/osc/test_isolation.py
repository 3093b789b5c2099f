# SPDX-License-Identifier: Apache-2.0

import types

from keystoneauth1 import exceptions as ks_exc
from openstack import exceptions as sdk_exc
from osc_lib import exceptions as osc_exc
import requests
import testtools

from nova_ext_sched import exception
from nova_ext_sched.osc import isolation
from nova_ext_sched.osc import isolation_faults

HOSTS = [f'host{number:02}' for number in range(12)]
TEN = ', '.join(HOSTS[:10])


class ColumnsTestCase(testtools.TestCase):
    def test_people_see_ten_names_and_programs_all(self):
        column = isolation.NamesColumn(HOSTS)
        self.assertEqual(f'{TEN} and 2 more', column.human_readable())
        self.assertEqual(HOSTS, column.machine_readable())
        self.assertEqual(
            TEN, isolation.NamesColumn(HOSTS[:10]).human_readable()
        )

    def test_faults(self):
        column = isolation.FaultsColumn(
            [
                isolation_faults.Fault('one', 'a problem'),
                isolation_faults.Fault('two', 'another', HOSTS),
            ]
        )
        self.assertEqual(
            f'a problem\nanother: {TEN} and 2 more', column.human_readable()
        )
        self.assertEqual(
            [
                {'kind': 'one', 'problem': 'a problem', 'hosts': []},
                {'kind': 'two', 'problem': 'another', 'hosts': HOSTS},
            ],
            column.machine_readable(),
        )


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


class Failing(isolation.Command):
    """A command that raises what it is told to."""

    def take_action(self, parsed_args):
        raise parsed_args.exc


def run(exc):
    command = Failing(types.SimpleNamespace(client_manager=None), None)
    parsed_args = command.get_parser('fail').parse_args([])
    parsed_args.exc = exc
    command.run(parsed_args)


class DescribeTestCase(testtools.TestCase):
    def test_forbidden(self):
        exc = refusal(403, '{"forbidden": {"message": "no admin"}}')
        self.assertEqual(
            'the service does not allow the user to do this: no admin (GET '
            'http://nova/os-aggregates, status 403, request id req-1)',
            isolation.describe(exc),
        )

    def test_unauthorized_in_html(self):
        exc = refusal(401, '<p>Log\n in</p>', 'text/html')
        told = isolation.describe(exc)
        self.assertIn('the token, which may have expired: ', told)
        self.assertNotIn('<p>', told)
        self.assertNotIn('\n', told)

    def test_other(self):
        exc = refusal(400, '{"badRequest": {"message": "what?"}}')
        self.assertIn('refuses the request: what? (', isolation.describe(exc))

    def test_every_kind_becomes_a_command_error(self):
        for exc in (
            exception.InvalidValue(where='x', expected='y', got='z'),
            sdk_exc.SDKException('sdk'),
            ks_exc.ConnectFailure('no route'),
        ):
            error = self.assertRaises(osc_exc.CommandError, run, exc)
            self.assertEqual(str(exc), str(error))

    def test_a_fault_of_ours_is_not_dressed_up(self):
        self.assertRaises(ValueError, run, ValueError('ours'))

    def test_a_long_page_is_bounded(self):
        # openstacksdk's own patterns take minutes for such a page (4.22);
        # this is what ours do with what it hands on.
        exc = refusal(502, '{}')
        exc.details = '<' * 140_000
        told = isolation.describe(exc)
        self.assertGreater(1000, len(told))
