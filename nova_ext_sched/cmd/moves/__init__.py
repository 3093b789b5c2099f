# SPDX-License-Identifier: Apache-2.0

"""The commands ``nova-ext-sched mend``, ``drain`` and ``survive``."""
