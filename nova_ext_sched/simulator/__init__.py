# SPDX-License-Identifier: Apache-2.0

"""Runs a scenario on a cloud of nova's own fixtures, in one process.

The scenario's *plain* nova is nova without this package. The *outcome* of a
step has a *placement* for each of its servers: the host, or the failure.
"""
