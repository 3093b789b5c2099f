# SPDX-License-Identifier: Apache-2.0

"""Reads the cloud with nova's own code, in this process.

Read-only. Nothing here asks the scheduler a question; that is
:mod:`..decision`'s.
"""
