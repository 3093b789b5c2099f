# SPDX-License-Identifier: Apache-2.0

"""How many servers violate the policies, counted every now and then."""

from oslo_log import log as logging

from nova_ext_sched import messages
from nova_ext_sched.cmd import kept_hosts
from nova_ext_sched.cmd.audit import auditor
from nova_ext_sched.cmd.watch import metrics

LOG = logging.getLogger(__name__)


def count(figures: metrics.Metrics) -> None:
    """Audit all servers for the metrics.

    While an audit runs, refusals wait: 10,000 servers take some ten seconds.
    One that could not read every server leaves the figures, and their age, as
    they were.
    """
    try:
        found = auditor.Auditor(kept_hosts.HostManager())
        found.count()
        for _ in found.judge():
            # The totals alone are of interest.
            continue
    except Exception as exc:
        LOG.warning('The audit failed: %s', messages.describe(exc))
        return
    if found.faults or found.totals.not_judged:
        LOG.warning(
            'The audit is not complete: %(number)s not judged. %(faults)s',
            {
                'number': messages.count('server', found.totals.not_judged),
                'faults': messages.first_few(found.faults),
            },
        )
    else:
        figures.audit_done(found.totals.policies)
