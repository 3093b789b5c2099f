# SPDX-License-Identifier: Apache-2.0

"""Placement policy for OpenStack's nova-scheduler."""
