# SPDX-License-Identifier: Apache-2.0

import types

import fixtures
from nova import objects
import testtools

from nova_ext_sched.dryrun.cloud import cells as cloud_cells
from nova_ext_sched.watch import cells

objects.register_all()


class CellsTestCase(testtools.TestCase):
    """Cells that answer, fail or hang, in the place of nova's threads."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.now = 1000.0
        self.mappings = [self.mapping('a'), self.mapping('b', name=None)]
        self.reads = 0
        #: By cell: what is raised there.
        self.broken = {}
        #: Cells that were asked.
        self.asked = []
        get_all = 'nova.objects.CellMappingList.get_all'
        self.useFixture(fixtures.MonkeyPatch(get_all, self.get_all))
        now = 'oslo_utils.timeutils.now'
        self.useFixture(fixtures.MonkeyPatch(now, lambda: self.now))
        self.cells = cells.WatchedCells(types.SimpleNamespace(ask=self.gather))

    @staticmethod
    def mapping(uuid, name='cell\none'):
        return types.SimpleNamespace(uuid=uuid, name=name)

    def get_all(self, class_, context):
        self.reads += 1
        if isinstance(self.mappings, Exception):
            raise self.mappings
        return self.mappings

    def gather(self, mappings, function, seconds):
        self.assertEqual(10, seconds)
        found, silent = {}, {}
        for one in mappings:
            self.asked.append(one.uuid)
            context = types.SimpleNamespace(cell_uuid=one.uuid)
            try:
                found[one.uuid] = function(context)
            except (LookupError, cloud_cells.NoAnswerError) as exc:
                silent[one.uuid] = exc
        return found, silent

    def select(self, context):
        if problem := self.broken.get(context.cell_uuid):
            raise problem
        return f'answer of {context.cell_uuid}'

    def ask(self, *cell):
        return self.cells.ask(self.select, *cell)

    def test_one_that_fails(self):
        """The log has it once, and again after it has answered."""
        line = (
            "Cell 'cell\\none' does not answer. Its refusals are recorded "
            'when it does: LookupError: no table'
        )
        for count in (1, 2):
            self.broken['a'] = LookupError('no table')
            for _ in range(2):
                self.assertEqual({'b': 'answer of b'}, self.ask())
                self.assertEqual({'a'}, self.cells.silent)
                self.assertEqual([line] * count, self.log.output.splitlines())
            self.broken.clear()
            self.assertEqual(['a', 'b'], list(self.ask()))
            self.assertEqual(set(), self.cells.silent)

    def test_one_alone_says_nothing_of_others(self):
        self.broken['a'] = LookupError('no table')
        self.ask()
        self.asked.clear()
        self.assertEqual({'b': 'answer of b'}, self.ask('b'))
        self.assertEqual(['b'], self.asked)
        self.assertEqual({'a'}, self.cells.silent)
        # One that is gone is not silent.
        del self.mappings[0]
        self.now += 60
        self.ask()
        self.assertEqual(set(), self.cells.silent)

    def test_names(self):
        self.ask()
        self.assertEqual({'a': "'cell\\none'", 'b': 'b'}, self.cells.names)

    def test_the_list_is_read_every_minute(self):
        self.ask()
        self.mappings = [*self.mappings, self.mapping('c')]
        self.now += 59.9
        self.assertEqual(['a', 'b'], list(self.ask()))
        self.assertEqual(1, self.reads)
        self.now += 0.1
        self.assertEqual(['a', 'b', 'c'], list(self.ask()))
        self.assertEqual(2, self.reads)

    def test_the_api_database_is_away(self):
        """The cells of before are asked."""
        self.ask()
        self.mappings = ConnectionError('no route')
        self.now += 60
        for _ in range(2):
            self.assertEqual(['a', 'b'], list(self.ask()))
        self.assertEqual(
            'The cells cannot be read from the API database ([api_database] '
            'connection): ConnectionError: no route\n',
            self.log.output,
        )
