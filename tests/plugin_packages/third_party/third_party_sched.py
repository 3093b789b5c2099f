#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

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
