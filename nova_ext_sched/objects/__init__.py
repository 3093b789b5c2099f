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

"""Versioned objects and the requests made of them; no nova."""

from nova_ext_sched.objects import allocation_candidates_request
from nova_ext_sched.objects import instance_group_policy
from nova_ext_sched.objects import request_group

AllocationCandidatesRequest = (
    allocation_candidates_request.AllocationCandidatesRequest
)
InstanceGroupPolicy = instance_group_policy.InstanceGroupPolicy
RequestGroup = request_group.RequestGroup
