# SPDX-License-Identifier: Apache-2.0

"""nova-scheduler's decision, with nothing claimed: a library.

It runs nova's own code on what it reads of the cloud, and changes nothing.
:mod:`.cloud` is what there is, :mod:`.decision` what the scheduler says of a
request, :mod:`.plan` moves in an order, :mod:`.audit` what violates a policy
and :mod:`.capacity` what fits yet.

It knows no arguments of a command, and prints nothing: where an answer takes
long, its caller hands in who is told (:mod:`.progress`).
"""
