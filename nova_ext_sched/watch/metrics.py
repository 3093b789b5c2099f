# SPDX-License-Identifier: Apache-2.0

"""The watcher's metrics for Prometheus."""

from collections.abc import Container
from collections.abc import Mapping
import contextlib
import functools

import prometheus_client as prometheus


class Metrics:
    """The watcher's metrics, in a registry of their own.

    Names and units follow the conventions of Prometheus. Values that are
    not known yet are left out.
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
        histogram = functools.partial(prometheus.Histogram, registry=registry)
        self.refusals = counter(
            'nova_ext_sched_refusals',
            'Operations that nova refused with NoValidHost, by the cause that '
            'explain ranks first.',
            ['operation', 'constraint'],
        )
        self.explanations = histogram(
            'nova_ext_sched_explanation_duration_seconds',
            'Time taken by an explanation.',
            buckets=(0.1, 0.3, 1, 3, 10, 30, 100),
        )
        self.delay = histogram(
            'nova_ext_sched_record_delay_seconds',
            'Time from a refusal, as timestamped by nova, to its record.',
            buckets=(1, 3, 10, 30, 60, 100, 300, 1000, 3000),
        )
        self.waiting = gauge(
            'nova_ext_sched_refusals_waiting',
            'Refusals that were read but are not recorded yet.',
        )
        self.unexplained = counter(
            'nova_ext_sched_refusals_unexplained',
            'Refusals that were recorded without an explanation, by reason.',
            ['reason'],
        )
        self.unread = gauge(
            'nova_ext_sched_cells_unread',
            'Cells whose database did not answer the last poll.',
        )
        # Registered once it has a value.
        self._looked = prometheus.Gauge(
            'nova_ext_sched_look_timestamp_seconds',
            'When watch last polled the cells or recorded a refusal, in '
            'seconds since the epoch.',
            registry=None,
        )
        self.cell_looked = gauge(
            'nova_ext_sched_cell_look_timestamp_seconds',
            "When a cell's database was read last, in seconds since the "
            'epoch.',
            ['cell'],
        )
        self._cells: set[str] = set()

    def looked_at(
        self, names: Mapping[str, str], silent: Container[str]
    ) -> None:
        """Update the time of the last look at each cell.

        :param names: the names of all cells, by UUID; those of other cells are
            removed from the metrics
        :param silent: the UUIDs of cells that did not answer
        """
        for cell in self._cells - {*names.values()}:
            self.cell_looked.remove(cell)
        self._cells &= {*names.values()}
        for uuid, cell in names.items():
            if uuid not in silent:
                self.cell_looked.labels(cell).set_to_current_time()
                self._cells.add(cell)

    def worked(self) -> None:
        """Update the time of the last work."""
        self._looked.set_to_current_time()
        # It may be registered already.
        with contextlib.suppress(ValueError):
            self.registry.register(self._looked)

    def serve(self, port: int, address: str) -> None:
        """Answer Prometheus over HTTP, in a thread of its own.

        :raises OSError: the port is taken, or the address is not this
            machine's
        """
        prometheus.start_http_server(port, address, registry=self.registry)
