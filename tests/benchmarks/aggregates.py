# SPDX-License-Identifier: Apache-2.0

"""Aggregates of hosts in memory, and the API database that has them."""

import collections

import fixtures
from nova import context
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models
from oslo_utils import uuidutils
import sqlalchemy as sa

from tests import databases


class Aggregates(fixtures.Fixture):
    """Puts hosts into aggregates, and these into a database (SQLite).

    :param aggregates: of each a name, the metadata and the HostState objects
    :ivar ctxt: a RequestContext
    """

    def __init__(self, aggregates):
        super().__init__()
        self._aggregates = aggregates

    def _setUp(self):
        self.ctxt = context.get_admin_context()
        engine = self.useFixture(databases.Database('sqlite')).replace(
            api_db.context_manager
        )
        models.BASE.metadata.create_all(engine)
        rows = collections.defaultdict(list)
        for number, (name, metadata, states) in enumerate(self._aggregates, 1):
            aggregate = objects.Aggregate(
                id=number,
                name=name,
                uuid=uuidutils.generate_uuid(),
                hosts=[],
                metadata=metadata,
            )
            rows[models.Aggregate].append(
                {'id': number, 'name': name, 'uuid': aggregate.uuid}
            )
            rows[models.AggregateMetadata] += [
                {'aggregate_id': number, 'key': key, 'value': value}
                for key, value in metadata.items()
            ]
            rows[models.AggregateHost] += [
                {'aggregate_id': number, 'host': state.host}
                for state in states
            ]
            for state in states:
                state.aggregates = [*state.aggregates, aggregate]
        with engine.begin() as connection:
            for model, values in rows.items():
                connection.execute(sa.insert(model), values)
