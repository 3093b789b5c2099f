# SPDX-License-Identifier: Apache-2.0

"""What licences together cost: in a request, and in a cell's database.

10,000 HostStates with 20 servers each, one in fifty with a licence. In
processor time where this process works; the select, on each kind of database
that answers, by the clock. 96 workers ask a cell 96 times a minute at most.
"""

import os
import statistics
import time

import ddt
from nova import context
from nova import objects
from nova.db.main import api as main_db
from nova.db.main import models
from nova.scheduler import weights
import sqlalchemy as sa

from nova_ext_sched.queries import licences as queries
from nova_ext_sched.weighers import licences
from tests import databases
from tests.unit.filters import base as filters_base
from tests.unit.request_filters import base as test_base

HOSTS = int(os.environ.get('NOVA_EXT_SCHED_TEST_HOSTS', '10000'))
SERVERS = 20
ROUNDS = 5


def os_type_of(number):
    return 'linux' if number % 50 else 'windows'


@ddt.ddt
class LicencesTest(test_base.RequestFilterTestCase):
    def setUp(self):
        super().setUp()
        self.set(licence_os_types=['windows'])

    def measure(self, clock, function, *args):
        taken = []
        for _ in range(ROUNDS):
            start = clock()
            function(*args)
            taken.append(clock() - start)
        return statistics.median(taken) * 1000

    @ddt.data('windows', 'linux')
    def test_servers_that_are_tracked(self, os_type):
        states = [filters_base.host_state(f'h{n}') for n in range(HOSTS)]
        for place, state in enumerate(states):
            state.instances = {
                f'{number}': objects.Instance(
                    uuid=f'{number}',
                    os_type=os_type_of(number),
                    instance_type_id=1,
                )
                for number in range(place * SERVERS, (place + 1) * SERVERS)
            }
        spec = test_base.request_spec(image=test_base.image(os_type=os_type))
        weigh = weights.HostWeightHandler().get_weighed_objects
        none = self.measure(time.process_time, weigh, [], states, spec)
        ours = self.measure(
            time.process_time,
            weigh,
            [licences.LicencesWeigher()],
            states,
            spec,
        )
        print(
            f'\nLICENCES {HOSTS} hosts, {HOSTS * SERVERS} servers, a request '
            f'of {os_type}: {ours - none:.1f} ms'
        )

    @ddt.data('sqlite', 'mysql')
    def test_select(self, backend):
        database = self.useFixture(databases.Database(backend))
        engine = database.replace(main_db.context_manager)
        table = models.Instance.__table__
        with engine.begin() as connection:
            # Without nova's indices, of which none is of these columns.
            create = sa.schema.CreateTable(
                table, include_foreign_key_constraints=[]
            )
            connection.execute(create)
            for place in range(0, HOSTS * SERVERS, 10_000):
                connection.execute(
                    table.insert(),
                    [
                        {
                            'uuid': f'{number}',
                            'host': f'h{number // SERVERS}',
                            'os_type': os_type_of(number),
                            'instance_type_id': 1,
                            'deleted': 0,
                        }
                        for number in range(place, place + 10_000)
                    ],
                )
        ctxt = context.get_admin_context()
        taken = self.measure(
            time.perf_counter,
            queries.select_hosts,
            ctxt,
            ['windows'],
            [7],
        )
        print(
            f'\nLICENCES {backend}: the select of {HOSTS * SERVERS} servers '
            f'{taken:.0f} ms; of 96 workers {taken * 96 / 60_000:.1%} of a '
            f'processor of the database'
        )
