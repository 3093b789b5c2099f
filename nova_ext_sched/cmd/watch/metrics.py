# SPDX-License-Identifier: Apache-2.0

"""What Prometheus reads of the watcher."""

from collections.abc import Mapping
import time

import prometheus_client as prometheus


class Metrics:
    """The watcher's metrics, in a registry of their own.

    Names and units follow the conventions of Prometheus.
    """

    def __init__(self) -> None:
        self.registry = prometheus.CollectorRegistry()
        self.refusals = prometheus.Counter(
            'nova_ext_sched_refusals',
            'Operations that nova refused for want of a host, by the '
            'constraint that took the last host.',
            ['operation', 'constraint'],
            registry=self.registry,
        )
        self.explanations = prometheus.Histogram(
            'nova_ext_sched_explanation_duration_seconds',
            'Time that an explanation took.',
            buckets=(0.1, 0.3, 1, 3, 10, 30, 100),
            registry=self.registry,
        )
        self.waiting = prometheus.Gauge(
            'nova_ext_sched_refusals_waiting',
            'Refusals that were read and are not recorded yet.',
            registry=self.registry,
        )
        self.unexplained = prometheus.Counter(
            'nova_ext_sched_refusals_unexplained',
            'Refusals that were recorded without an explanation, by reason.',
            ['reason'],
            registry=self.registry,
        )
        self.unread = prometheus.Gauge(
            'nova_ext_sched_cells_unread',
            'Cells whose database did not answer when it was read last.',
            registry=self.registry,
        )
        self.violations = prometheus.Gauge(
            'nova_ext_sched_policy_violations',
            'Servers that violate a policy, when they were audited last.',
            ['policy'],
            registry=self.registry,
        )
        self.audited = prometheus.Gauge(
            'nova_ext_sched_audit_timestamp_seconds',
            'When servers were audited last, in seconds since the epoch.',
            registry=self.registry,
        )

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
        self.audited.set(time.time())
