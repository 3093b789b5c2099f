# SPDX-License-Identifier: Apache-2.0

"""Another author's plugins, as their own distribution."""

from nova.scheduler import filters


class ThirdPartyFilter(filters.BaseHostFilter):
    """Refuses host1."""

    def host_passes(self, host_state, filter_properties):
        return host_state.host != 'host1'


def third_party(ctxt, request_spec):
    """Leaves a mark on the request."""
    request_spec.root_forbidden.add('CUSTOM_THIRD_PARTY')
    return True
