# SPDX-License-Identifier: Apache-2.0

"""Measure each part beside nova's, by the size of the cloud.

``python -m tests.benchmarks.scale`` writes ``doc/source/_static/scale.csv``
and draws it (:mod:`tests.benchmarks.plot`); it takes some minutes. Both sides
run in one process on one SQLite database, must give the same answer, and are
timed by the processor time of the process, which other work on the machine
does not lengthen.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import csv
import itertools
import statistics
import time
import tracemalloc
import typing

import fixtures
from nova import objects
import nova.conf
from nova.scheduler import host_manager
from nova.scheduler import request_filter as nova_request_filter
from nova.scheduler.filters import affinity_filter
from nova.scheduler.filters import aggregate_instance_extra_specs
from oslo_config import fixture as config_fixture
from oslo_utils import uuidutils

from nova_ext_sched import conf
from nova_ext_sched.filters import aggregate_instance_type
from nova_ext_sched.filters import anti_affinity as anti_affinity_filter
from nova_ext_sched.filters import isolation as isolation_filter
from nova_ext_sched.request_filters import (
    isolation as isolation_request_filter,
)
from nova_ext_sched.request_filters import (
    reservation as reservation_request_filter,
)
from tests.benchmarks import aggregates
from tests.benchmarks import plot
from tests.benchmarks import test_aggregate_instance_type
from tests.benchmarks import test_anti_affinity
from tests.unit.request_filters import base

CONF = nova.conf.CONF

HOSTS = (100, 1_000, 10_000)
AGGREGATES = (10, 100, 1_000, 5_000)
INSTANCES_OF_HOST = 20
AGGREGATES_OF_HOST = 3

#: Each call is repeated until it took this many seconds, three times at least.
SECONDS = 0.5

PREFIX = 'reservation:'

Call = Callable[[], typing.Any]
#: Our call and nova's, None where nova has nothing like it.
Pair = tuple[Call, Call | None]


class Cloud(fixtures.Fixture):
    """Hosts in memory, and the isolated aggregates of them in a database.

    :param hosts: number of hosts
    :param aggregates: number of isolated aggregates; the hosts are dealt to
        them in turn, so that each host and each aggregate has one at least
    """

    def __init__(self, hosts: int, aggregates: int) -> None:
        super().__init__()
        self._hosts = hosts
        self._aggregates = aggregates

    def _setUp(self) -> None:
        config = self.useFixture(config_fixture.Config(CONF)).config
        config(group='scheduler', enable_isolated_aggregate_filtering=True)
        config(
            group='filter_scheduler',
            enabled_filters=['IsolatedAggregatesFilter'],
        )
        self.configure = config
        self.states = [
            host_manager.HostState(f'h{i}', f'h{i}', uuidutils.generate_uuid())
            for i in range(self._hosts)
        ]
        dealt = [[] for _ in range(self._aggregates)]
        for i in range(max(self._aggregates, self._hosts)):
            dealt[i % self._aggregates].append(self.states[i % self._hosts])
        self.ctxt = self.useFixture(
            aggregates.Aggregates(
                (
                    f'a{i}',
                    {
                        f'trait:CUSTOM_T{i}': 'required',
                        f'{PREFIX}{i}': 'true',
                    },
                    states,
                )
                for i, states in enumerate(dealt)
            )
        ).ctxt

    @contextlib.contextmanager
    def policy(self, **options: typing.Any) -> Iterator[None]:
        """Turn one policy on."""
        self.configure(group='nova_ext_sched', **options)
        yield
        for name in options:
            CONF.clear_override(name, 'nova_ext_sched')


def isolation(cloud: Cloud) -> Iterator[tuple[str, Pair]]:
    """A flavor that requires the trait of one aggregate."""

    def make_spec() -> typing.Any:
        return base.request_spec(
            flavor=base.flavor(extra_specs={'trait:CUSTOM_T7': 'required'})
        )

    def host_filter() -> typing.Any:
        return isolation_filter.IsolatedAggregatesFilter().filter_all(
            cloud.states, spec
        )

    def ours() -> typing.Any:
        spec = make_spec()
        isolation_request_filter.isolate_aggregates(cloud.ctxt, spec)
        return spec.requested_destination.forbidden_aggregates

    def novas() -> typing.Any:
        spec = make_spec()
        nova_request_filter.isolate_aggregates(cloud.ctxt, spec)
        return spec.requested_destination.forbidden_aggregates

    spec = make_spec()
    with cloud.policy(enable_isolated_aggregate_filtering=True):
        with cloud.policy(max_forbidden_aggregates=max(AGGREGATES)):
            assert ours() == novas()
        yield 'isolate_aggregates', (ours, novas)
        yield 'IsolatedAggregatesFilter', (host_filter, None)
        yield (
            'isolation, both stages',
            (
                lambda: (ours(), host_filter()),
                novas,
            ),
        )


def reservation(cloud: Cloud) -> Iterator[tuple[str, Pair]]:
    """A flavor that names one reserved aggregate."""
    extra_specs = {f'{PREFIX}7': 'true'}

    def ours() -> typing.Any:
        spec = base.request_spec(flavor=base.flavor(extra_specs=extra_specs))
        reservation_request_filter.reserved_aggregates(cloud.ctxt, spec)
        return spec

    with cloud.policy(
        placement_req_required_member_prefix=[PREFIX],
        placement_req_default_forbidden_member_prefix=[PREFIX],
    ):
        assert len(ours().requested_destination.aggregates) == 1
        yield 'reserved_aggregates', (ours, None)


def instance_type(cloud: Cloud, count: int) -> Iterator[tuple[str, Pair]]:
    """Three extra specs; every host in three of the aggregates."""
    aggregates = test_aggregate_instance_type.make_aggregates(count)
    dealt = itertools.cycle(aggregates)
    states = []
    for state in cloud.states:
        copy = host_manager.HostState(state.host, state.host, state.uuid)
        copy.aggregates = list(itertools.islice(dealt, AGGREGATES_OF_HOST))
        states.append(copy)
    spec = test_aggregate_instance_type.make_spec(
        test_aggregate_instance_type.EXTRA_SPECS
    )
    yield from _host_filters(
        aggregate_instance_type.AggregateInstanceTypeFilter(),
        aggregate_instance_extra_specs.AggregateInstanceExtraSpecsFilter(),
        states,
        spec,
    )


def anti_affinity(cloud: Cloud) -> Iterator[tuple[str, Pair]]:
    """20 instances on each host, and a group on one host in fifty."""
    spec = test_anti_affinity.fill(
        cloud.states, INSTANCES_OF_HOST, max(10, len(cloud.states) // 50)
    )
    yield from _host_filters(
        anti_affinity_filter.ServerGroupAntiAffinityFilter(),
        affinity_filter.ServerGroupAntiAffinityFilter(),
        cloud.states,
        spec,
    )


def _host_filters(
    ours: typing.Any, novas: typing.Any, states: typing.Any, spec: typing.Any
) -> Iterator[tuple[str, Pair]]:
    def run(host_filter: typing.Any) -> typing.Any:
        return list(host_filter.filter_all(states, spec))

    assert run(ours) == run(novas)
    yield type(ours).__name__, (lambda: run(ours), lambda: run(novas))


def milliseconds(call: Call) -> float:
    """Return the median of a call's processor time."""
    call()
    times: list[float] = []
    while len(times) < 3 or sum(times) < SECONDS:
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times) * 1000


def peak(call: Call) -> float:
    """Return the most memory that a call holds at once, in KiB."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1] / 1024
    finally:
        tracemalloc.stop()


def measure(hosts: int, aggregates: int) -> Iterator[dict[str, typing.Any]]:
    """Yield a row of the table for each part."""
    with Cloud(hosts, aggregates) as cloud:
        for name, (ours, novas) in itertools.chain(
            isolation(cloud),
            reservation(cloud),
            instance_type(cloud, aggregates),
            anti_affinity(cloud),
        ):
            row = {
                'part': name,
                'hosts': hosts,
                'aggregates': aggregates,
                'ours_ms': f'{milliseconds(ours):.3g}',
                'ours_kib': f'{peak(ours):.0f}',
            }
            if novas is not None:
                row['nova_ms'] = f'{milliseconds(novas):.3g}'
                row['nova_kib'] = f'{peak(novas):.0f}'
                ratio = float(row['nova_ms']) / float(row['ours_ms'])
                row['ratio'] = f'{ratio:.3g}'
            yield row


def main() -> None:
    conf.register_opts(CONF)
    CONF([], project='nova', default_config_files=[])
    objects.register_all()
    with plot.TABLE.open('w', newline='') as file:
        writer = csv.DictWriter(file, plot.COLUMNS, lineterminator='\n')
        writer.writeheader()
        for hosts, aggregates in itertools.product(HOSTS, AGGREGATES):
            for row in measure(hosts, aggregates):
                print(row, flush=True)
                writer.writerow(row)
            file.flush()
    plot.PICTURE.write_text(plot.draw(plot.read()))


if __name__ == '__main__':
    main()
