# SPDX-License-Identifier: Apache-2.0

"""Versioned objects and the requests made of them; no nova."""

from nova_ext_sched.objects import allocation_candidates_request
from nova_ext_sched.objects import instance_group_policy
from nova_ext_sched.objects import request_group

AllocationCandidatesRequest = (
    allocation_candidates_request.AllocationCandidatesRequest
)
InstanceGroupPolicy = instance_group_policy.InstanceGroupPolicy
RequestGroup = request_group.RequestGroup
