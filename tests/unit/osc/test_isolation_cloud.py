# SPDX-License-Identifier: Apache-2.0

"""Which traits are read; tests/functional/test_isolation_cloud.py asks more.

There a real placement answers.
"""

import types

import testtools

from nova_ext_sched.osc import isolation_cloud
from nova_ext_sched.policy import isolation
from tests.unit.osc.clouds import X
from tests.unit.osc.clouds import Y

RECORD = isolation.RECORD + X


class Client:
    """Stands for placement.

    :param given: the traits of each provider
    """

    def __init__(self, **given):
        self.given = given

    def resource_providers(self, query=None):
        wanted = query.required_traits if query else set()
        return [
            {'name': name, 'uuid': name, 'root_provider_uuid': name}
            for name, traits in self.given.items()
            if wanted <= traits
        ]

    def traits(self, associated=False):
        return set().union(*self.given.values())


class ReadTestCase(testtools.TestCase):
    def test_what_a_sync_gave_and_no_aggregate_requires(self):
        """A trait that it gave is read where it has no record, too."""
        nova = types.SimpleNamespace(
            aggregates=lambda microversion: [],
            services=lambda binary: [
                types.SimpleNamespace(host=h) for h in 'ab'
            ],
        )
        client = Client(a={X, Y, RECORD}, b={X, Y})
        cloud = isolation_cloud.read(nova, client, by_name=True)
        a, b = cloud.nodes
        self.assertEqual([{X, RECORD}, {X}], [a.traits, b.traits])
        self.assertEqual({a: {X}}, cloud.leftovers)
