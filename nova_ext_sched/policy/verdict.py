# SPDX-License-Identifier: Apache-2.0

"""What a policy answers about a host."""

import typing


class Verdict(typing.NamedTuple):
    """Whether a host may be used and, if not, why.

    The reason names what the operator can change (aggregate, key, wanted and
    offered value) but not the host. Hosts that are rejected for the same cause
    share one reason, so reasons can be counted.
    """

    passes: bool
    reason: str = ''


PASS = Verdict(True)


def reject(reason: str) -> Verdict:
    return Verdict(False, reason)
