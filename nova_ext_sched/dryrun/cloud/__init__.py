# SPDX-License-Identifier: Apache-2.0

"""What there is: nova's code in this process, and what it reads of the cloud.

Read-only. Nothing here asks the scheduler a question; that is
:mod:`..decision`'s.
"""
