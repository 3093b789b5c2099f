# SPDX-License-Identifier: Apache-2.0

"""PlacementClient over real HTTP, placement under WSGI servers' defaults."""

from concurrent import futures
import threading
import unittest
import uuid

from nova_ext_sched import objects
from nova_ext_sched import placement
from nova_ext_sched.placement import errors
from tests import databases
from tests.functional.placement import servers
from tests.unit.placement import support

A = 'aaaaaaaa-0000-4000-8000-000000000001'

# Its first part is the user's name, which placement's noauth2 looks at.
TOKEN = 'admin:S3cr3tT0k3n'

# What placement lets only administrators do by default, opened to everyone.
OPEN = '"placement:allocation_candidates:list": "@"'


class HttpTestCase(unittest.TestCase):
    """One server for all tests of a class."""

    server = ''

    @classmethod
    def placement(cls):
        """Return the fixture of the server."""
        return servers.Placement(cls.server, policy=OPEN)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        module = {'uwsgi': 'pyuwsgi', 'gunicorn': 'gunicorn'}[cls.server]
        if reason := servers.missing(module):
            raise unittest.SkipTest(reason)
        running = cls.placement()
        running.setUp()
        cls.addClassCleanup(running.cleanUp)
        cls.url = running.url

    def nova_conf(self, **options):
        """Return a configuration that has read such a [placement]."""
        options = {
            'auth_type': 'admin_token',
            'token': TOKEN,
            'endpoint': self.url,
        } | options
        return support.read_conf(options)

    def client(self, **options):
        return placement.PlacementClient.from_conf(self.nova_conf(**options))

    def create_providers(self, *names):
        """Create resource providers with a VCPU each; return their UUIDs."""
        adapter = self.client()._transport._adapter
        uuids = []
        for name in names:
            provider = str(uuid.uuid4())
            for method, path, json in (
                (
                    'POST',
                    '/resource_providers',
                    {'name': f'{name}-{provider}', 'uuid': provider},
                ),
                (
                    'PUT',
                    f'/resource_providers/{provider}/inventories',
                    {
                        'inventories': {'VCPU': {'total': 1}},
                        'resource_provider_generation': 0,
                    },
                ),
            ):
                response = adapter.request(
                    path, method, json=json, microversion='1.20'
                )
                self.assertEqual(200, response.status_code, response.text)
            uuids.append(provider)
        return uuids

    @staticmethod
    def forbidding(count, *more):
        aggregates = {str(uuid.uuid4()) for _ in range(count - len(more))}
        return objects.RequestGroup(
            resources={'VCPU': 1}, forbidden_aggregates=aggregates | {*more}
        )

    def candidates(self, client, group):
        return client.allocation_candidates([group])

    def assert_nothing_is_lost(self):
        """Two clients add a trait each to one provider at once, 20 times."""
        (host,) = self.create_providers('host')
        clients = [self.client(), self.client()]
        names = [[f'CUSTOM_{who}_{n}' for n in range(20)] for who in 'AB']
        clients[0].ensure_traits([*names[0], *names[1]])
        meet = threading.Barrier(2)

        def add(client, traits):
            for trait in traits:
                meet.wait(60)
                client.update_traits(
                    host, lambda current, trait=trait: current | {trait}
                )

        with futures.ThreadPoolExecutor(2) as pool:
            for done in [
                pool.submit(add, *each)
                for each in zip(clients, names, strict=True)
            ]:
                done.result(timeout=120)
        self.assertEqual(
            {*names[0], *names[1]}, clients[0].update_traits(host, frozenset)
        )

    def assert_too_long(self, client, count):
        with self.assertRaises(errors.QueryTooLong) as caught:
            self.candidates(client, self.forbidding(count))
        error = caught.exception
        self.assertEqual(count, error.aggregates)
        # A UUID and its comma, encoded, and what else there is.
        self.assertLess(count * 39, error.size)
        self.assertIn(
            f'it names {count} aggregates in {error.size} bytes', str(error)
        )
        self.assertIn(f'GET {self.url}/allocation_candidates?', str(error))
        return error


class GunicornTest(HttpTestCase):
    server = 'gunicorn'

    def test_as_many_aggregates_as_the_default_limit_bears(self):
        # [nova_ext_sched] max_forbidden_aggregates is 100 by default.
        (host,) = self.create_providers('host')
        found = self.candidates(self.client(), self.forbidding(100))
        self.assertIn(host, found['provider_summaries'])
        error = self.assert_too_long(self.client(), 150)
        self.assertEqual(414, error.status)

    def test_two_clients_adding_traits_lose_nothing(self):
        self.assert_nothing_is_lost()

    def test_the_token_is_in_no_log_and_no_error(self):
        records = support.record_logs(self)
        client = self.client()
        client.resource_providers()
        (host,) = self.create_providers('host')
        client.update_aggregates(host, lambda _: [A])
        told = []
        for call in (
            lambda: client.update_aggregates(str(uuid.uuid4()), set),
            lambda: client.update_traits(str(uuid.uuid4()), frozenset),
            lambda: self.candidates(client, self.forbidding(150)),
        ):
            with self.assertRaises(errors.PlacementError) as caught:
                call()
            told.append(str(caught.exception))
        self.assertTrue(any('/resource_providers' in r for r in records))
        for text in (*records, *told):
            self.assertNotIn('S3cr3tT0k3n', text)


class SeveralProcessesTestCase(HttpTestCase):
    """Placement in two processes, on a database of deployments.

    There updates of one provider do meet inside of placement.
    """

    server = 'gunicorn'
    backend = ''

    @classmethod
    def placement(cls):
        database = databases.Database(cls.backend)
        database.setUp()
        cls.addClassCleanup(database.cleanUp)
        return servers.Placement(
            cls.server, connection=database.url, workers=2
        )

    def test_two_clients_adding_traits_lose_nothing(self):
        self.assert_nothing_is_lost()


class MysqlTest(SeveralProcessesTestCase):
    backend = 'mysql'


class PostgresqlTest(SeveralProcessesTestCase):
    backend = 'postgresql'


class UwsgiTest(HttpTestCase):
    server = 'uwsgi'

    def setUp(self):
        super().setUp()
        # A server that hangs up is tried again, in vain; uwsgi also hangs up
        # on connections that it said it would keep.
        self.short = self.client(connect_retry_delay=0.05)

    def test_as_many_aggregates_as_the_default_buffer_bears(self):
        (host,) = self.create_providers('host')
        found = self.candidates(self.short, self.forbidding(30))
        self.assertIn(host, found['provider_summaries'])
        error = self.assert_too_long(self.short, 70)
        self.assertIn('it was lost on the way', str(error))
        self.assertEqual(400, error.status)
        # Of more the server hangs up.
        self.assertIsNone(self.assert_too_long(self.short, 150).status)

    def test_no_list_of_providers_is_unfiltered(self):
        here, there = self.create_providers('here', 'there')
        self.short.update_aggregates(there, lambda _: [A])
        for count in (1, 30, 60, 70, 90, 200):
            group = self.forbidding(count, A)
            uuids = {
                provider['uuid']
                for provider in self.short.resource_providers(group)
            }
            self.assertIn(here, uuids)
            self.assertNotIn(there, uuids)

        # Else what is lost on the way would be no filter.
        response = self.short._transport._adapter.request(
            f'/resource_providers?{self.forbidding(70, A).to_querystring()}',
            'GET',
            microversion='1.39',
        )
        uuids = {p['uuid'] for p in response.json()['resource_providers']}
        self.assertIn(there, uuids)


del HttpTestCase, SeveralProcessesTestCase
