# SPDX-License-Identifier: Apache-2.0

import socket
import time
import types
from unittest import mock

import fixtures
from keystoneauth1 import fixture as ks_fixture
from keystoneauth1 import loading
import nova.conf
from oslo_config import fixture as config_fixture
from requests_mock.contrib import fixture as requests_fixture
import testtools

from nova_ext_sched import exception
from nova_ext_sched.dryrun.cloud import projects
from tests.unit.dryrun.cloud import test_process

CONF = nova.conf.CONF

KEYSTONE = 'http://keystone.example.org/v3'
LISTED = f'{KEYSTONE}/projects'
IDS = [f'{number:032x}' for number in range(3)]


class ProjectsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        test_process.set_variables(self)
        self.conf = self.useFixture(config_fixture.Config(CONF))

    def configure(self, auth_type='password', **options):
        """Give [placement] credentials."""
        self.conf.register_opts(
            loading.get_auth_plugin_conf_options(auth_type), group='placement'
        )
        self.conf.config(group='placement', auth_type=auth_type, **options)

    def configure_user(self, auth_url=KEYSTONE):
        user = {'username': 'nova', 'password': 'secret'}
        self.configure(auth_url=auth_url, project_name='service', **user)

    def answer(self, **answer):
        """Be a keystone that lists its projects so."""
        token = ks_fixture.V3Token()
        token.set_project_scope()
        service = token.add_service('identity')
        service.add_standard_endpoints(public=KEYSTONE, region='RegionOne')
        requests = self.useFixture(requests_fixture.Fixture())
        found = ks_fixture.V3Discovery(KEYSTONE)
        requests.get(KEYSTONE, json={'version': found})
        url, headers = f'{KEYSTONE}/auth/tokens', {'X-Subject-Token': 'token'}
        requests.post(url, json=token, headers=headers)
        requests.get(LISTED, **answer)
        return requests

    def listed(self, requests):
        """Return the requests for projects."""
        return [one for one in requests.request_history if one.url == LISTED]


class ReadNamesTestCase(ProjectsTestCase):
    def test_names(self):
        """Others name them as they like."""
        self.configure_user()
        names = {IDS[0]: 'web', IDS[1]: 'a\nb', 'another': 'other'}
        told = [
            {'id': uuid, 'name': names[uuid], 'domain_id': 'default'}
            for uuid in names
        ]
        requests = self.answer(json={'projects': told, 'links': {}})
        found = projects.read_names(IDS)
        self.assertEqual({IDS[0]: 'web', IDS[1]: "'a\\nb'"}, found)
        self.assertEqual(1, len(self.listed(requests)))

    def test_as_the_user_of_the_variables(self):
        self.configure_user('http://other.example.org/v3')
        test_process.set_variables(
            self,
            OS_AUTH_URL=KEYSTONE,
            OS_USERNAME='admin',
            OS_PASSWORD='secret',
            OS_PROJECT_NAME='admin',
            OS_USER_DOMAIN_ID='default',
            OS_PROJECT_DOMAIN_ID='default',
        )
        told = [{'id': IDS[0], 'name': 'web'}]
        self.answer(json={'projects': told})
        self.assertEqual({IDS[0]: 'web'}, projects.read_names(IDS))

    def test_an_answer_without_names(self):
        for answer in (
            {'status_code': 403},
            {'status_code': 500},
            {'text': '<html>'},
            {'json': {'projects': None}},
            {'json': {'projects': [{'name': 'web'}]}},
        ):
            self.configure_user()
            requests = self.answer(**answer)
            self.assertEqual({}, projects.read_names(IDS))
            self.assertEqual(1, len(self.listed(requests)))

    def test_without_projects_nobody_is_asked(self):
        self.configure_user()
        requests = self.answer(json={'projects': []})
        self.assertEqual({}, projects.read_names(()))
        self.assertEqual([], requests.request_history)

    def test_credentials_that_are_not_keystone_s(self):
        token = {'token': 't', 'endpoint': 'http://p'}
        for options in ({}, {'auth_type': 'admin_token', **token}):
            if options:
                self.configure(**options)
            requests = self.answer(json={'projects': []})
            self.assertEqual({}, projects.read_names(IDS))
            self.assertEqual([], requests.request_history)

    def test_a_keystone_that_says_nothing(self):
        silent = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(silent.close)
        self.configure_user(f'http://127.0.0.1:{silent.getsockname()[1]}/v3')
        self.useFixture(fixtures.MockPatchObject(projects, 'SECONDS', 0.2))
        begin = time.monotonic()
        self.assertEqual({}, projects.read_names(IDS))
        self.assertLess(time.monotonic() - begin, 2)


TOLD = [
    {'id': IDS[0], 'name': 'web'},
    {'id': IDS[1], 'name': 'db'},
    {'id': IDS[2], 'name': 'db'},
    {'id': 'f' * 32, 'name': IDS[0]},
]


class FindIdTestCase(ProjectsTestCase):
    def find(self, wanted, has_servers=False):
        self.cloud = types.SimpleNamespace(doubts=[])
        with mock.patch.object(projects, '_has_servers') as asked:
            asked.return_value = has_servers
            return projects.find_id(self.cloud, wanted)

    def test_keystone_tells(self):
        for wanted, expected in (
            ('web', IDS[0]),
            # What is an ID is no name.
            (IDS[0], IDS[0]),
            (IDS[1], IDS[1]),
            ('dbs', 'There is no project dbs. Did you mean db?'),
            ('db',
             f'2 projects are named db: {IDS[1]}, {IDS[2]}. Give the ID'),
            # An ID that keystone has not.
            ('e' * 32, f"There is no project {'e' * 32}."),
        ):  # fmt: skip
            self.configure_user()
            self.answer(json={'projects': TOLD})
            if expected in IDS:
                self.assertEqual(expected, self.find(wanted))
            else:
                unknown = exception.UnknownName
                error = self.assertRaises(unknown, self.find, wanted)
                self.assertIn(expected, str(error))
            self.assertEqual([], self.cloud.doubts)

    def test_keystone_tells_nothing(self):
        denied = {'status_code': 403}
        for answer, why in (({}, 'no credentials'), (denied, 'Forbidden')):
            if answer:
                self.configure_user()
                self.answer(**answer)
            error = self.assertRaises(projects.NotTold, self.find, 'admin')
            self.assertIn(why, str(error))
            # nova knows it, whatever it looks like.
            self.assertEqual('admin', self.find('admin', has_servers=True))
            self.assertEqual([], self.cloud.doubts)
            self.assertEqual(IDS[0], self.find(IDS[0]))
            [doubt] = self.cloud.doubts
            self.assertIn(f'project {IDS[0]} is not known', doubt)
            self.assertIn(why, doubt)
