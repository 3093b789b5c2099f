# SPDX-License-Identifier: Apache-2.0

"""What Prometheus reads of the watcher."""

from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import functools
import time

import prometheus_client as prometheus


class Metrics:
    """The watcher's metrics, in a registry of their own.

    Names and units follow the conventions of Prometheus. A series of a
    counter is there before it counts, because an alert on its increase does
    not see the first; a gauge that nobody has set yet is not.
    """

    def __init__(self) -> None:
        self.registry = prometheus.CollectorRegistry()
        prometheus.disable_created_metrics()
        for collector in (
            prometheus.ProcessCollector,
            prometheus.PlatformCollector,
            prometheus.GCCollector,
        ):
            collector(registry=self.registry)
        registry = self.registry
        counter = functools.partial(prometheus.Counter, registry=registry)
        gauge = functools.partial(prometheus.Gauge, registry=registry)
        # Registered by show().
        hidden = functools.partial(prometheus.Gauge, registry=None)
        histogram = functools.partial(prometheus.Histogram, registry=registry)
        self.refusals = counter(
            'nova_ext_sched_refusals',
            'Operations that nova refused for want of a host, by the cause '
            'that explain ranks first.',
            ['operation', 'constraint'],
        )
        self.explanations = histogram(
            'nova_ext_sched_explanation_duration_seconds',
            'Time that an explanation took.',
            buckets=(0.1, 0.3, 1, 3, 10, 30, 100),
        )
        self.delay = histogram(
            'nova_ext_sched_record_delay_seconds',
            'Time from a refusal, by the clock that nova noted it by, to its '
            'record.',
            buckets=(1, 3, 10, 30, 60, 100, 300, 1000, 3000),
        )
        self.waiting = gauge(
            'nova_ext_sched_refusals_waiting',
            'Refusals that were read and are not recorded yet.',
        )
        self.unexplained = counter(
            'nova_ext_sched_refusals_unexplained',
            'Refusals that were recorded without an explanation, by reason.',
            ['reason'],
        )
        self.unread = gauge(
            'nova_ext_sched_cells_unread',
            'Cells whose database did not answer when it was read last.',
        )
        self.old_options = gauge(
            'nova_ext_sched_options_old',
            'Whether nova.conf has changed since the watcher read it.',
        )
        self.looked = hidden(
            'nova_ext_sched_look_timestamp_seconds',
            'When the watcher last read the cells or recorded a refusal, in '
            'seconds since the epoch.',
        )
        self.cell_looked = gauge(
            'nova_ext_sched_cell_look_timestamp_seconds',
            "When a cell's database was read last, in seconds since the "
            'epoch.',
            ['cell'],
        )
        self.set_back = counter(
            'nova_ext_sched_cells_set_back',
            'How often the newest row of a cell was below what was recorded.',
            ['cell'],
        )
        self.violations = gauge(
            'nova_ext_sched_policy_violations',
            'Servers that violate a policy, when they were audited last.',
            ['policy'],
        )
        self.audited = hidden(
            'nova_ext_sched_audit_timestamp_seconds',
            'When servers were audited last, in seconds since the epoch.',
        )
        self.audit_interval = hidden(
            'nova_ext_sched_audit_interval_seconds',
            'Time from the beginning of an audit to that of the next.',
        )
        flavor = ['flavor', 'image']
        self.capacity = gauge(
            'nova_ext_sched_capacity_servers',
            'Servers of a flavor that fit if nothing else is created; +Inf '
            'where a host takes any number.',
            flavor,
        )
        self.capacity_time = gauge(
            'nova_ext_sched_capacity_timestamp_seconds',
            'When the servers of a flavor that fit were counted last, in '
            'seconds since the epoch.',
            flavor,
        )
        self.capacity_interval = gauge(
            'nova_ext_sched_capacity_interval_seconds',
            'Time from the beginning of a count of the servers that fit to '
            'that of the next.',
            flavor,
        )
        self._cells: set[str] = set()

    def looked_at(self, cells: Iterable[str], answered: Iterable[str]) -> None:
        """Note that the cells were read.

        :param cells: the names of all; those of cells that are gone vanish
        :param answered: the names of those that answered
        """
        cells = set(cells)
        for cell in self._cells - cells:
            self.set_back.remove(cell)
            self.cell_looked.remove(cell)
        for cell in cells:
            self.set_back.labels(cell)
        for cell in answered:
            self.cell_looked.labels(cell).set(time.time())
        self._cells = cells

    def worked(self) -> None:
        """Note that the work goes on."""
        self.show(self.looked, time.time())

    def show(self, gauge: prometheus.Gauge, value: float) -> None:
        """Set a gauge that is not there before it has a value."""
        gauge.set(value)
        # It may be there.
        with contextlib.suppress(ValueError):
            self.registry.register(gauge)

    def serve(self, port: int, address: str) -> None:
        """Answer Prometheus over HTTP, in a thread of its own.

        :raises OSError: the port is taken, or the address is not this
            machine's
        """
        prometheus.start_http_server(port, address, registry=self.registry)

    def audit_done(self, violations: Mapping[str, int]) -> None:
        """Note the result of an audit: servers that violate, by policy."""
        for policy, count in violations.items():
            self.violations.labels(policy).set(count)
        self.show(self.audited, time.time())

    def capacity_counted(
        self, flavor: str, image: str, servers: float
    ) -> None:
        """Note how many servers of a flavor fit."""
        self.capacity.labels(flavor, image).set(servers)
        self.capacity_time.labels(flavor, image).set(time.time())

    def capacity_unknown(self, flavor: str, image: str) -> None:
        """Note that nobody knows it any more."""
        # Older releases of the client raise where there is no series.
        with contextlib.suppress(KeyError):
            self.capacity.remove(flavor, image)
