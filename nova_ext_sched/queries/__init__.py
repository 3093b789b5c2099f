# SPDX-License-Identifier: Apache-2.0

"""What the scheduler's filters ask of nova's databases and of placement.

Each module asks for a few columns in one or two light queries, where nova's
own objects would load everything. What asks raises; the filter that needs the
answer then refuses the request.
"""
