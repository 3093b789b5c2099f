# SPDX-License-Identifier: Apache-2.0

"""watch through 10,000 refusals of a hundred different traits: its memory.

A member of a project writes each trait. The rows of one real refusal are
copied, a thousand at a time, and those of before go, so that the databases,
which are in this process, do not grow.
"""

import json
import logging
import statistics
import time

import fixtures
from oslo_utils import timeutils
import sqlalchemy as sa

from tests.benchmarks import many_hosts
from tests.benchmarks import memory
from tests.benchmarks import rows
from tests.functional import test_watch

REFUSALS = 1000
TURNS = 10
TRAITS = 100
#: MiB by which the process may grow from the first thousand to the last.
MOST = 16


class MemoryTest(many_hosts.DatabasesMixin, test_watch.WatchTestCase):
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
        engine, table = self.table('nova_cell0.instances')
        [row] = rows.read(engine, table)
        self.refused = rows.read_refused(self.table, row['uuid'])

    def refuse_many(self, turn):
        """Copy the refusal; the copies of before go, but for the last one.

        SQLite counts on from it: no ID comes again.
        """
        for name in rows.REFUSED:
            engine, table = self.table(name)
            with engine.begin() as connection:
                last = connection.scalar(sa.select(sa.func.max(table.c.id)))
                connection.execute(sa.delete(table).where(table.c.id < last))
        words = [
            # In each turn others come first, and are explained.
            (self.traits[0], self.traits[(number + self.most * turn) % TRAITS])
            for number in range(REFUSALS)
        ]
        rows.copy_refused(self.table, self.refused, words)

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
