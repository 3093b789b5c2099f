# SPDX-License-Identifier: Apache-2.0

"""Reads from placement which providers hold servers' allocations."""

from collections.abc import Collection
import typing

from nova_ext_sched.queries import placement


def get_providers(
    ctxt: typing.Any, servers: Collection[str]
) -> dict[str, frozenset[str]]:
    """Return the resource providers that each server has allocations on.

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
