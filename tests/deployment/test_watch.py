# SPDX-License-Identifier: Apache-2.0

"""Every refusal is recorded once, with its cause, whatever is killed.

Two schedulers, and a stream of servers of which most find no host, for
seven reasons. Meanwhile placement, cell0's database, the API database and the
watcher are taken away in turn. nova's own databases say what was refused.
"""

import collections
import json
import signal
import time

import sqlalchemy as sa
import testtools

from tests.deployment import base
from tests.deployment import stream
from tests.deployment import watcher

TRAIT = 'CUSTOM_LICENSED_WINDOWS'
LICENSED = {f'trait:{TRAIT}': 'required'}
#: By flavor: VCPUs, extra specs, and the cause that explain ranks first.
FLAVORS = {
    # Refused only while placement or a database is away.
    'fits': (1, LICENSED, 'none'),
    'large': (99, LICENSED, 'VCPU'),
    'vgpu': (1, {**LICENSED, 'resources:VGPU': '1'}, 'VGPU'),
    'trait': (
        1,
        {**LICENSED, 'trait:HW_CPU_X86_SGX': 'required'},
        'trait HW_CPU_X86_SGX',
    ),
    'isolated': (1, {}, 'isolation'),
    'reserved': (1, {**LICENSED, 'reservation:gold': '1'}, 'reservation'),
    'absent': (
        1,
        {**LICENSED, 'reservation:silver': '1'},
        'reservation',
    ),
    'filtered': (
        1,
        {**LICENSED, 'aggregate_instance_extra_specs:disk': 'nvme'},
        'aggregate-instance-type',
    ),
}
STREAM = [
    name
    for refused in FLAVORS
    for name in (refused, *(['fits'] if len(refused) == 4 else []))
]
#: How many refusals there are at least.
REFUSALS_WANTED = 200
ON = {
    ('nova_ext_sched', 'enable_isolated_aggregate_filtering'): 'True',
    (
        'nova_ext_sched',
        'placement_req_required_member_prefix',
    ): 'reservation:',
    ('filter_scheduler', 'enabled_filters'): (
        'ComputeFilter,IsolatedAggregatesFilter,AggregateInstanceTypeFilter'
    ),
}
#: ID, flavor and fault of each refusal, of a cell.
REFUSALS = """
    SELECT CONCAT(cell.uuid, ':fault:', fault.id), flavor.flavorid,
        fault.message
    FROM nova_{cell}.instance_faults AS fault
    JOIN nova_{cell}.instances AS instance
        ON instance.uuid = fault.instance_uuid
    JOIN nova_api.flavors AS flavor ON flavor.id = instance.instance_type_id
    JOIN nova_api.cell_mappings AS cell ON cell.name = '{cell}'
    WHERE fault.message LIKE 'No valid host was found%'
        OR fault.message LIKE 'Exceeded maximum number of retries%'
"""
WAIT_SECONDS = 600
#: Seconds that a database is away.
LASTS = 3


def find_cause(flavor, fault):
    """Return what a record says of a fault of a flavor."""
    words = fault.removeprefix('No valid host was found').strip(' .')
    if words == fault.strip(' .'):
        # Placement went away between the choice of a host and its claim.
        return 'retries'
    if words.endswith('cannot decide'):
        return 'cannot decide'
    cause = FLAVORS[flavor][-1]
    # Placement was away when it was asked.
    return 'no candidates' if cause == 'none' and not words else cause


class FaultsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(
            base.Deployment(base.HOSTS[:2], schedulers=2)
        )
        self.records = self.cloud.folder / 'records'
        hosts = list(self.cloud.hosts)
        self.cloud.client(
            ['traits', hosts, [TRAIT]],
            [
                'aggregate',
                'windows',
                hosts,
                {f'trait:{TRAIT}': 'required', 'disk': 'ssd'},
            ],
            # Nothing of it is free: it has no host.
            ['aggregate', 'gold', [], {'reservation:gold': 'x'}],
            *(
                ['flavor', name, vcpus, extra_specs, 1]
                for name, (vcpus, extra_specs, _) in FLAVORS.items()
            ),
            # Room for the whole stream.
            *(['limit_servers', host, 1000] for host in hosts),
        )

    def watch(self):
        return watcher.start(self.cloud, self.records, 0.2)

    def refused(self):
        """Return the cause of each refusal that nova noted, by its ID."""
        with self.cloud.mariadb.connect() as connection:
            rows = [
                row
                for cell in ('cell0', 'cell1')
                for row in connection.execute(
                    sa.text(REFUSALS.format(cell=cell))
                )
            ]
        return {id_: find_cause(flavor, fault) for id_, flavor, fault in rows}

    def recorded(self):
        if not self.records.exists():
            return []
        lines = self.records.read_text().splitlines()
        return [json.loads(line) for line in lines]

    def refuse(self, count=3):
        """Wait until nova noted so many more refusals."""
        before = len(self.refused())
        self.wait(lambda: len(self.refused()) >= before + count)

    def wait(self, condition):
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                outputs = [
                    (self.cloud.folder / f'{name}.out').read_text()[-3000:]
                    for name in ('stream', 'watch')
                ]
                self.fail('\n'.join(outputs))
            time.sleep(0.2)

    def settle(self):
        """Return the refusals when no more are noted."""
        before = None
        while before != (before := self.refused()):
            time.sleep(3)
        return before

    def end(self, watching, number):
        """End the watcher by a signal; return a new one, later."""
        watching.send_signal(number)
        killed = number == signal.SIGKILL
        self.assertEqual(-number if killed else 0, watching.wait(WAIT_SECONDS))
        self.refuse(2)
        return self.watch()

    def test_every_refusal_once(self):
        cloud = self.cloud
        with cloud.scheduler(ON):
            watching = self.watch()
            with stream.stream(cloud, STREAM, 0.4):
                self.refuse()
                with cloud.placement.away():
                    self.refuse()
                for _ in range(3):
                    watching = self.end(watching, signal.SIGKILL)
                for database in ('nova_cell0', 'nova_api'):
                    self.refuse(1)
                    with cloud.mariadb.cut(database):
                        time.sleep(LASTS)
                for number in (signal.SIGHUP, signal.SIGTERM):
                    watching = self.end(watching, number)
                self.wait(lambda: len(self.refused()) >= REFUSALS_WANTED)
            refused = self.settle()
            self.wait(lambda: len(self.recorded()) >= len(refused))
            cloud.processes.stop(watching)
        records = self.recorded()
        self.assertEqual(
            dict.fromkeys(refused, 1),
            dict(collections.Counter(record['id'] for record in records)),
        )
        self.assertEqual(
            refused,
            {
                record['id']: record['constraint'].removesuffix(' later')
                for record in records
            },
        )
        self.assertLessEqual(
            {cause for _, _, cause in FLAVORS.values()} - {'none'},
            set(refused.values()),
        )
        for record in records:
            if answer := (record['explanation'] or {}).get('answer'):
                ranked = [one['cause'] for one in answer['reasons']]
                known = record['constraint'] != 'cannot decide'
                if known and not (answer['left'] or answer['end']):
                    self.assertEqual(ranked[0], record['constraint'])
