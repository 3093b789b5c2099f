# SPDX-License-Identifier: Apache-2.0

"""watch through 10,000 refusals of a hundred different traits: its memory.

A member of a project writes each trait. The rows of one real refusal are
copied, a thousand at a time, and those of before go, so that the databases,
which are in this process, do not grow.
"""

import datetime
import json
import logging
import statistics
import time
import uuid

import fixtures
from nova.db.api import models as api_models
from nova.db.main import models
from oslo_utils import timeutils
import sqlalchemy as sa

from tests.benchmarks import memory
from tests.functional import test_watch

REFUSALS = 1000
TURNS = 10
TRAITS = 100
#: MiB by which the process may grow from the first thousand to the last.
MOST = 16


class MemoryTest(test_watch.WatchTestCase):
    most = TRAITS // TURNS

    def setUp(self):
        super().setUp()
        logging.disable(logging.WARNING)
        self.addCleanup(logging.disable, logging.NOTSET)
        self.now = timeutils.now()
        self.useFixture(
            fixtures.MonkeyPatch('oslo_utils.timeutils.now', lambda: self.now)
        )
        self.traits = [
            f'CUSTOM_MEMBER_{number:03}' for number in range(TRAITS)
        ]
        for trait in self.traits:
            self._create_trait(trait)
        image = self.image(props={f'trait:{self.traits[0]}': 'required'})
        self.assertNoValidHost(image=image)
        self.assertEqual(1, len(self.recorded()))
        self.kept = {
            model: self.rows(model)
            for model in (
                models.Instance,
                models.InstanceAction,
                models.InstanceFault,
                api_models.InstanceMapping,
                api_models.RequestSpec,
            )
        }

    def engine(self, model):
        if model.__module__ == models.__name__:
            return self.cell_engine('cell0')
        return self.api_engine()

    def rows(self, model):
        with self.engine(model).connect() as connection:
            [row] = connection.execute(sa.select(model.__table__)).mappings()
            return dict(row)

    def refuse_many(self, turn):
        """Copy the refusal; the copies of before go."""
        servers = [str(uuid.uuid4()) for _ in range(REFUSALS)]
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        for model, row in self.kept.items():
            key = 'uuid' if model is models.Instance else 'instance_uuid'
            copies = []
            for number, server in enumerate(servers):
                copy = {
                    **row,
                    key: server,
                    'id': 10 + turn * REFUSALS + number,
                    'created_at': now,
                }
                if 'request_id' in row:
                    copy['request_id'] = f'req-{uuid.uuid4()}'
                if 'start_time' in row:
                    copy['start_time'] = now
                if 'spec' in row:
                    # In each turn others come first, and are explained.
                    trait = self.traits[(number + self.most * turn) % TRAITS]
                    copy['spec'] = (
                        row['spec']
                        .replace(row[key], server)
                        .replace(self.traits[0], trait)
                    )
                copies.append(copy)
            with self.engine(model).begin() as connection:
                connection.execute(sa.delete(model.__table__))
                connection.execute(sa.insert(model.__table__), copies)

    def test_memory(self):
        sizes, seconds = [], []
        series = 0
        before = len(self.read())
        for turn in range(TURNS):
            self.refuse_many(turn)
            # Another minute: what was explained is explained anew.
            self.now += 61
            begin = time.monotonic()
            self.watcher.turn()
            self.assertEqual(0, self.figure('refusals_waiting'))
            seconds.append(time.monotonic() - begin)
            sizes.append(memory.resident())
            # A series begins with its first refusal.
            series = series or self.count_series()
            print(
                f'WATCH {(turn + 1) * REFUSALS} records: {sizes[-1]:.1f} MiB, '
                f'{seconds[-1]:.1f} s',
                flush=True,
            )
        lines = self.records.read_text().splitlines()[before:]
        found = [json.loads(line) for line in lines]
        self.assertEqual(TURNS * REFUSALS, len({one['id'] for one in found}))
        self.assertEqual(
            {'limit', *(f'required={trait}' for trait in self.traits)},
            {one['constraint'] for one in found},
        )
        delays = [
            _seconds(one['recorded']) - _seconds(one['refused'])
            for one in found
        ]
        print(
            f'WATCH {self.records.stat().st_size >> 20} MiB of records, '
            f'{self.state.stat().st_size >> 10} KiB of state; in a burst of '
            f'{REFUSALS} a record comes {statistics.median(delays):.0f} s '
            f'after its refusal (median), {max(delays):.0f} s at most'
        )
        self.assertLess(sizes[-1] - sizes[0], MOST)
        self.assertEqual(series, self.count_series())

    def count_series(self):
        """Return how many series Prometheus has to keep."""
        return sum(
            len(family.samples) for family in self.metrics.registry.collect()
        )


def _seconds(text):
    return timeutils.parse_isotime(text).timestamp()
