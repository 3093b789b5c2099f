# SPDX-License-Identifier: Apache-2.0

"""What requests that are alike are answered, whoever asks."""

import dataclasses
import typing

from nova_ext_sched.dryrun.cloud import claims


@dataclasses.dataclass(eq=False)
class Shared:
    """The answer for requests that are alike, on the cloud as it is.

    :ivar spec_obj: a nova RequestSpec of theirs, without server group, hints
        and hosts that it ignores
    :ivar judged: what the request filters made of it
    :ivar requests: by the UUIDs of the hosts that are left, the best first,
        placement's allocation requests
    :ivar refused: the same of hosts that a filter refuses as they are
    :ivar resources: what placement was asked, nova ResourceRequests
    """

    spec_obj: typing.Any
    judged: typing.Any
    requests: dict[str, list[claims.Request]]
    refused: dict[str, list[claims.Request]]
    resources: list[typing.Any]


@dataclasses.dataclass(frozen=True)
class Like:
    """What a server's request has in common with others.

    :ivar is_whole: see :class:`.likeness.Key`
    """

    shared: Shared
    is_whole: bool
