# SPDX-License-Identifier: Apache-2.0

"""What holds the allocations of servers, as placement has them."""

from collections.abc import Collection
import typing

from nova_ext_sched.queries import placement


def get_providers(
    ctxt: typing.Any, servers: Collection[str]
) -> dict[str, frozenset[str]]:
    """Return the resource providers that hold something for each server.

    :param servers: UUIDs
    :returns: UUIDs of providers, by server; empty where it has no allocation
    :raises Exception: as :func:`.placement.get`
    """
    urls = {uuid: f'/allocations/{uuid}' for uuid in servers}
    answers = placement.get(ctxt, urls.values())
    return {
        uuid: frozenset(answers[url]['allocations'])
        for uuid, url in urls.items()
    }
