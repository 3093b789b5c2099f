# SPDX-License-Identifier: Apache-2.0

"""Base of the tests against a real placement in this process."""

import uuid

import fixtures
from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
from oslotest import base as test_base
from placement import microversion
from placement.tests.functional.fixtures import placement as fixture

from nova_ext_sched import placement


class Placement(fixtures.Fixture):
    """A real placement on SQLite, over wsgi-intercept and keystoneauth.

    :param maximum: cuts placement's list of microversions, so that the server
        is of that age
    """

    def __init__(self, maximum):
        super().__init__()
        self.maximum = maximum

    def _setUp(self):
        versions = microversion.VERSIONS
        self.useFixture(
            fixtures.MockPatchObject(
                microversion,
                'VERSIONS',
                versions[: versions.index(self.maximum) + 1],
            )
        )
        endpoint = self.useFixture(fixture.PlacementFixture()).endpoint
        self.raw = adapter.Adapter(
            session.Session(auth=token_endpoint.Token(endpoint, 'admin')),
            service_type='placement',
            raise_exc=False,
        )
        self.client = placement.PlacementClient(self.raw, 'the test')

    def find_candidates(self, *groups, **kwargs):
        """Return the providers that candidates would be allocated from."""
        found = self.client.allocation_candidates(groups, **kwargs)
        return {
            uuid
            for request in found['allocation_requests']
            for uuid in request['allocations']
        }

    def create_provider(
        self, name, parent=None, inventory=None, aggregates=(), traits=()
    ):
        """Create a resource provider and return its UUID."""
        provider = str(uuid.uuid5(uuid.NAMESPACE_OID, name))
        body = {'name': name, 'uuid': provider}
        if parent is not None:
            body['parent_provider_uuid'] = parent
        created = self.raw.post(
            '/resource_providers', json=body, microversion='1.14'
        )
        created.raise_for_status()
        if inventory is not None:
            done = self.raw.put(
                f'/resource_providers/{provider}/inventories',
                json={
                    'inventories': {
                        resource_class: {'total': total}
                        for resource_class, total in inventory.items()
                    },
                    'resource_provider_generation': 0,
                },
                microversion='1.14',
            )
            done.raise_for_status()
        if aggregates:
            self.client.update_aggregates(
                provider, lambda current: current | {*aggregates}
            )
        if traits:
            self.client.ensure_traits(traits)
            self.client.update_traits(
                provider, lambda current: current | {*traits}
            )
        return provider


class PlacementTestCase(test_base.BaseTestCase):
    """A placement for each test."""

    maximum = '1.39'

    def setUp(self):
        super().setUp()
        self.server = self.useFixture(Placement(self.maximum))
        self.raw, self.client = self.server.raw, self.server.client


class ReadTestCase(test_base.BaseTestCase):
    """A placement for all tests of a class, which only read."""

    maximum = '1.39'

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Placement(cls.maximum)
        cls.server.setUp()
        cls.addClassCleanup(cls.server.cleanUp)
        cls.raw, cls.client = cls.server.raw, cls.server.client
