# SPDX-License-Identifier: Apache-2.0

"""Counts how many more servers fit, under every policy.

Explain finds the hosts that a request may use now. On each of them servers
are claimed, by nova's own accounting, until the host takes no more.
:mod:`.count` counts, for whoever asks; :mod:`.survey` and :mod:`.answer` are
what ``capacity`` says.
"""
