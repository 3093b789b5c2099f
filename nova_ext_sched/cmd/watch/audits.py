# SPDX-License-Identifier: Apache-2.0

"""How many servers violate the policies, counted every now and then."""

from oslo_log import log as logging

from nova_ext_sched import messages
from nova_ext_sched.cmd import kept_hosts
from nova_ext_sched.cmd.audit import auditor
from nova_ext_sched.cmd.watch import interrupt
from nova_ext_sched.cmd.watch import metrics
from nova_ext_sched.cmd.watch import timer

LOG = logging.getLogger(__name__)


class Audits:
    """Audits all servers for the metrics.

    While an audit runs, refusals wait: 10,000 servers take some ten seconds.

    :param interval: seconds from the beginning of an audit to that of the
        next; None for never
    """

    def __init__(
        self,
        figures: metrics.Metrics,
        signals: interrupt.Interrupt,
        interval: float | None,
    ) -> None:
        self._metrics = figures
        self._signals = signals
        self._timer = timer.Timer(interval)
        if interval is not None:
            figures.show(figures.audit_interval, interval)

    def turn(self) -> None:
        """Audit if it is time.

        An audit that could not read every server leaves the figures, and
        their age, as they were.

        :raises interrupt.Stop: a signal arrived
        """
        if not self._timer.is_due():
            return
        try:
            with self._signals.allowed():
                found = self._audit()
        except Exception as exc:
            LOG.warning('The audit failed: %s', messages.describe(exc))
            return
        if found.faults or found.totals.not_judged:
            LOG.warning(
                'The audit is not complete: %(number)s not judged. %(faults)s',
                {
                    'number': messages.count(
                        'server', found.totals.not_judged
                    ),
                    'faults': messages.first_few(found.faults),
                },
            )
        else:
            self._metrics.audit_done(found.totals.policies)

    @staticmethod
    def _audit() -> auditor.Auditor:
        found = auditor.Auditor(kept_hosts.HostManager())
        found.count()
        for _ in found.judge():
            # The totals alone are of interest.
            continue
        return found
