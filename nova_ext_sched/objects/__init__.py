"""Versioned objects; no nova."""

from nova_ext_sched.objects import instance_group_policy

InstanceGroupPolicy = instance_group_policy.InstanceGroupPolicy
