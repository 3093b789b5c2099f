# SPDX-License-Identifier: Apache-2.0

"""Where the policies let a server stand, by the plainest reading of them.

Nothing of the package is imported: the documentation's sentences, each in a
few lines, without a thought of speed.
"""

import typing


class Aggregate(typing.NamedTuple):
    """An aggregate: its hosts and its metadata."""

    hosts: tuple[str, ...]
    metadata: dict[str, str]


class Request(typing.NamedTuple):
    """What a server asks for, and whose it is."""

    extra_specs: dict[str, str]
    image: dict[str, str]
    project: str


def _wanted(request):
    return {
        key
        for source in (request.extra_specs, request.image)
        for key, value in source.items()
        if key.startswith('trait:') and value == 'required'
    }


def _isolation(request, aggregates):
    """Every trait that an aggregate requires is required by the request."""
    return all(
        key in _wanted(request)
        for aggregate in aggregates
        for key, value in aggregate.metadata.items()
        if key.startswith('trait:') and value == 'required'
    )


def _reservation(request, aggregates):
    """A reserved aggregate takes those who name it, of its project."""
    named = [key for key in request.extra_specs if key.startswith('reserv')]
    if not named:
        return not any(
            key.startswith('reservation:')
            for aggregate in aggregates
            for key in aggregate.metadata
        )
    return all(
        any(
            key in aggregate.metadata
            and aggregate.metadata.get('filter_tenant_id', request.project)
            == request.project
            for aggregate in aggregates
        )
        for key in named
    )


def _type(request, aggregates):
    """The extra specs of the flavor meet what the aggregates offer."""
    for scoped, value in request.extra_specs.items():
        scope, _, key = scoped.partition(':')
        if scope != 'aggregate_instance_extra_specs':
            continue
        offered = {
            aggregate.metadata[key]
            for aggregate in aggregates
            if key in aggregate.metadata
        }
        if (value == '!' and offered) or (
            value != '!' and value not in offered
        ):
            return False
    return True


def hosts(request, aggregates, all_hosts):
    """Return the hosts where the request may stand.

    The hosts of an aggregate have the traits that it requires, and nova wants
    them of a host where the request does.
    """
    found = set()
    for host in all_hosts:
        holding = [
            aggregate for aggregate in aggregates if host in aggregate.hosts
        ]
        traits = {key for aggregate in holding for key in aggregate.metadata}
        if _wanted(request) <= traits and all(
            policy(request, holding)
            for policy in (_isolation, _reservation, _type)
        ):
            found.add(host)
    return found


def group_fits(counts, limit):
    """Tell whether no host or domain has more members than the limit."""
    return all(count <= limit for count in counts.values())
