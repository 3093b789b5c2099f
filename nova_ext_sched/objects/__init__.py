# SPDX-License-Identifier: Apache-2.0

"""Versioned objects; no nova."""

from nova_ext_sched.objects import instance_group_policy
from nova_ext_sched.objects import request_group

InstanceGroupPolicy = instance_group_policy.InstanceGroupPolicy
RequestGroup = request_group.RequestGroup
