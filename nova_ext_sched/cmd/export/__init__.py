# SPDX-License-Identifier: Apache-2.0

"""``nova-ext-sched export``: the cloud as a scenario of the simulator."""
