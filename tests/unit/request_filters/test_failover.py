# SPDX-License-Identifier: Apache-2.0

import ddt
from nova import exception as nova_exception
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids

from nova_ext_sched import request_state
from nova_ext_sched.policy import failover as policy
from nova_ext_sched.queries import cells
from nova_ext_sched.queries import servers
from nova_ext_sched.request_filters import failover
from tests.unit.request_filters import base as test_base

EVACUATED = policy.Move('rebuilding', 'evacuation', 'accepted', 'a', 'b', True)


@ddt.ddt
class FailoverHostsTestCase(test_base.RequestFilterTestCase):
    def setUp(self):
        super().setUp()
        self.set(enable_failover_hosts=True)
        self.enable('FailoverHostsFilter')
        self.marks = {'S': 'true', 'F': 'false'}
        self.move = EVACUATED
        self.asked = []
        self.replace('queries.aggregates.get_metadata', self.get)
        self.replace('queries.servers.select_cells', self.find_cell)
        self.replace(
            'queries.cells.Cells.ask', lambda _, *asked: self.ask(*asked)
        )

    def get(self, ctxt, prefixes):
        return [
            (uuid, f'name {uuid}', *prefixes, mark)
            for uuid, mark in self.marks.items()
        ]

    def find_cell(self, ctxt, wanted):
        return [servers.Mapped(one, 'cell', False) for one in wanted]

    def ask(self, ctxt, select, wanted):
        self.asked.append((select, wanted))
        if isinstance(self.move, Exception):
            return cells.Answers({}, {'cell': self.move})
        return cells.Answers({uuids.server: self.move}, {})

    def filter(self, **fields):
        fields = {
            'instance_uuid': uuids.server, 'ignore_hosts': ['a'], **fields
        }  # fmt: skip
        self.spec = test_base.request_spec(**fields)
        taken = failover.failover_hosts(self.ctxt, self.spec)
        destination = test_base.destination_of(self.spec)
        return taken, destination and destination[1]

    def test_off(self):
        self.set(enable_failover_hosts=False)
        self.assertEqual((False, None), self.filter())

    def test_an_evacuation(self):
        self.assertEqual((True, None), self.filter())
        question = servers.select_moves, {'cell': [uuids.server]}
        self.assertEqual([question], self.asked)
        self.assertEqual('evacuation', request_state.of(self.spec).move)

    @ddt.data(
        {'ignore_hosts': None},
        {'ignore_hosts': []},
        {'ignore_hosts': None, 'scheduler_hints': {'ignore_hosts': ['a']}},
    )
    def test_what_ignores_no_host_asks_nobody(self, fields):
        self.assertEqual((True, {'S'}), self.filter(**fields))
        self.assertEqual([], self.asked)

    def test_another_move(self):
        self.assertEqual((True, {'S'}), self.filter(ignore_hosts=['b']))
        self.move = EVACUATED._replace(task='migrating', kind='live-migration')
        self.assertEqual((True, {'S'}), self.filter())
        self.set(failover_takes=['live-migrations'])
        self.assertEqual((True, None), self.filter())

    def test_another_key(self):
        self.set(failover_key='spare')
        self.marks = {}
        self.assertEqual((True, None), self.filter(ignore_hosts=None))
        # Nobody asks what nothing depends on.
        self.filter()
        self.assertEqual([], self.asked)

    def test_a_mark_that_cannot_be_read(self):
        self.marks = {'S': 'x'}
        for _ in range(2):
            self.assertEqual((True, {'S'}), self.filter(ignore_hosts=None))
        warning = "aggregate name S: failover: expected true or false, got 'x'"
        self.assertEqual(1, self.output.output.count(warning))

    def test_a_silent_cell(self):
        """Held hosts refuse, and no others do."""
        self.move = nova_exception.CellTimeout()
        for _ in range(2):
            self.assertEqual((True, {'S'}), self.filter())
        self.assertEqual('', request_state.of(self.spec).move)
        self.assertEqual(
            1, self.output.output.count('whether it is an evacuation')
        )

    def test_a_dry_run(self):
        class Supposed(objects.RequestSpec):
            supposed_move = 'evacuation'

        spec = test_base.request_spec()
        spec.__class__ = Supposed
        self.assertTrue(failover.failover_hosts(self.ctxt, spec))
        self.assertIsNone(spec.requested_destination)
        self.assertEqual([], self.asked)
