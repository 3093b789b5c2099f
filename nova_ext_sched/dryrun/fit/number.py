# SPDX-License-Identifier: Apache-2.0

"""A number of servers, with its meaning."""

from collections.abc import Iterable
import enum
import typing


class State(enum.IntEnum):
    """The meaning of a number of servers; in a sum the last one decides."""

    #: So many fit, and no more.
    COUNTED = enum.auto()
    #: So many fit. Nobody has counted further.
    OR_MORE = enum.auto()
    #: Any number fits.
    UNLIMITED = enum.auto()
    #: How many fit is not known.
    UNKNOWN = enum.auto()


class Fit(typing.NamedTuple):
    """A number of servers that fit.

    :ivar servers: the number counted
    """

    servers: int = 0
    state: State = State.COUNTED


def add_up(fits: Iterable[Fit]) -> Fit:
    """Return how many servers fit on hosts together."""
    servers, state = 0, State.COUNTED
    for one in fits:
        servers += one.servers
        state = max(state, one.state)
    return Fit(servers, state)
