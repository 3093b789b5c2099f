# SPDX-License-Identifier: Apache-2.0

"""Queries of the scheduler's filters to nova's databases and placement.

Each module asks for a few columns in one or two light queries, where nova's
own objects would load everything. What asks raises; the filter that needs the
answer then refuses the request.
"""
