# SPDX-License-Identifier: Apache-2.0

"""What the tests of weighers without a question share."""

from nova.scheduler import weights

from tests.unit.filters import base as filters_base
from tests.unit.request_filters import base as test_base


class PreferenceTestCase(test_base.RequestFilterTestCase):
    """Hosts that weigh by one weigher, as nova adds it up."""

    #: The class.
    weigher = None

    def weigh(self, states, **request):
        """Return the weights of hosts for a request, in their order."""
        weighed = weights.HostWeightHandler().get_weighed_objects(
            [self.weigher()], states, test_base.request_spec(**request)
        )
        by_host = {one.obj.host: one.weight for one in weighed}
        return [by_host[state.host] for state in states]

    def host(self, name, **metadata):
        """Return a HostState in an aggregate of its own."""
        return filters_base.host_state(
            name, filters_base.aggregate(f'of {name}', metadata=metadata)
        )
