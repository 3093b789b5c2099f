# SPDX-License-Identifier: Apache-2.0

"""Finds servers that violate a policy on their host."""
