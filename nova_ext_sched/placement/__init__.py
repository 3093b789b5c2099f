# SPDX-License-Identifier: Apache-2.0

"""A client of the placement API on keystoneauth; no nova."""

from nova_ext_sched.placement import client

PlacementClient = client.PlacementClient
