# SPDX-License-Identifier: Apache-2.0

"""The decisions: pure functions and small classes; no nova, no I/O.

The scheduler's filters and the operators' tools call the same functions, so
that a tool never tells another story than the scheduler.
"""
