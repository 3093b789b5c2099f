# SPDX-License-Identifier: Apache-2.0

import types

import ddt
from openstack import exceptions as sdk_exc
from osc_lib import exceptions as osc_exc
import requests
import testtools

from nova_ext_sched.osc import isolation
from nova_ext_sched.osc import isolation_findings

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
                isolation_findings.Finding('one', 'a problem'),
                isolation_findings.Finding('two', 'another', HOSTS),
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


@ddt.ddt
class ErrorsTestCase(testtools.TestCase):
    def run_failing(self, exc, error_class):
        command = Failing(types.SimpleNamespace(client_manager=None), None)
        parsed_args = command.get_parser('fail').parse_args([])
        parsed_args.exc = exc
        return str(self.assertRaises(error_class, command.run, parsed_args))

    @ddt.data(
        (
            403,
            '{"forbidden": {"message": "no admin"}}',
            'the service does not allow the user to do this: no admin (GET '
            'http://nova/os-aggregates, status 403, request id req-1)',
        ),
        (401, '{}', 'the token, which may have expired: '),
        (400, '{"badRequest": {"message": "what?"}}', 'the request: what? ('),
    )
    @ddt.unpack
    def test_refusals_of_nova(self, status, body, text):
        told = self.run_failing(refusal(status, body), osc_exc.CommandError)
        self.assertIn(text, told)

    def test_html(self):
        exc = refusal(401, '<p>Log\n in</p>', 'text/html')
        told = self.run_failing(exc, osc_exc.CommandError)
        self.assertNotIn('<p>', told)
        self.assertNotIn('\n', told)

    def test_a_long_page_is_bounded(self):
        # openstacksdk's own patterns take minutes for such a page (4.22);
        # this is what ours do with what it hands on.
        exc = refusal(502, '{}')
        exc.details = '<' * 140_000
        told = self.run_failing(exc, osc_exc.CommandError)
        self.assertGreater(1000, len(told))

    def test_others_say_it_themselves(self):
        for exc in (sdk_exc.SDKException('sdk'), ValueError('ours')):
            self.assertIn(str(exc), self.run_failing(exc, type(exc)))
