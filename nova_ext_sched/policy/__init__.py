# SPDX-License-Identifier: Apache-2.0

"""The decisions: pure functions and small classes, without nova and I/O.

The scheduler's filters and the operators' tools call the same functions, so a
tool always gives the same answer as the scheduler.
"""
