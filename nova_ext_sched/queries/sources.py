# SPDX-License-Identifier: Apache-2.0

"""Names who reads nova's aggregates and the hosts of servers.

nova-scheduler asks nova's databases. A process that asks what another state
of the cloud would change puts its own object in the place of :data:`current`.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import typing

from nova.db.api import api as api_db

#: Names of hosts, and None for one that nova has not written down yet.
Places = frozenset[str | None]


class Sources:
    """nova's databases."""

    def open_aggregates(
        self, context: typing.Any
    ) -> contextlib.AbstractContextManager[typing.Any]:
        """Return a SQLAlchemy session on nova's tables of aggregates.

        :param context: a nova RequestContext
        """
        return api_db.context_manager.reader.using(context)

    def place(
        self, places: Mapping[str, Places], asked: Iterable[str] = ()
    ) -> Mapping[str, Places]:
        """Return the hosts of servers.

        :param places: the hosts in nova's databases, by UUID
        :param asked: UUIDs of all servers, also of those without a place
        """
        return places


current = Sources()
