# SPDX-License-Identifier: Apache-2.0

"""What one stage of the scheduler leaves for the next, by request.

nova works on one RequestSpec object from the request filters to the last
pick. What the request filters read or counted is kept here for the host
filters, which do no I/O, as long as that object lives. On rebuild there is
no stage 1, and nothing is here.
"""

import contextvars
import typing
import weakref

from nova_ext_sched.policy import failure_domain
from nova_ext_sched.policy import round_robin

#: The keys of reserved aggregates among the properties of a request's image,
#: which ``reserved_aggregates`` read in Glance. By RequestSpec.
image_keys: weakref.WeakKeyDictionary[typing.Any, set[str]] = (
    weakref.WeakKeyDictionary()
)

#: The members of a request's server group, which ``failure_domains`` counted
#: by failure domain. By RequestSpec.
spreads: weakref.WeakKeyDictionary[typing.Any, failure_domain.Spread] = (
    weakref.WeakKeyDictionary()
)

#: What ``FailureDomainFilter`` added to a spread: the candidates of the
#: first server (nova only ever drops some of them, so every pick is one of
#: these), and how many picks are counted.
picks: weakref.WeakKeyDictionary[
    failure_domain.Spread, tuple[list[typing.Any], int]
] = weakref.WeakKeyDictionary()

#: A weak reference to the RequestSpec that a thread or greenlet works on, and
#: the request's ID (:mod:`nova_ext_sched.request_filters.no_candidates`).
current: contextvars.ContextVar[typing.Any] = contextvars.ContextVar(
    'current', default=None
)

#: Where the members of a request's server group stand, as
#: ``failure_domains`` found them (queries.group_members.Members). By
#: RequestSpec.
members: weakref.WeakKeyDictionary[typing.Any, typing.Any] = (
    weakref.WeakKeyDictionary()
)

#: The host states that host filters refused for the sake of the request's
#: server group, for whichever of its servers: by host and node, each once. By
#: RequestSpec.
refused: weakref.WeakKeyDictionary[
    typing.Any, dict[tuple[str, str], typing.Any]
] = weakref.WeakKeyDictionary()

#: The hosts and members of a request's server group, as
#: ``ServerGroupRoundRobinWeigher`` found them for the first server of the
#: request; how many hosts the group had then; and the servers of the request
#: so far. By RequestSpec.
deals: weakref.WeakKeyDictionary[
    typing.Any, tuple[round_robin.Deal, int, list[str]]
] = weakref.WeakKeyDictionary()


def forget(request_spec: typing.Any) -> None:
    """Forget what is known of a request's server group.

    For tools that ask about one RequestSpec several times.
    """
    for known in (spreads, members, refused, deals):
        known.pop(request_spec, None)
