# SPDX-License-Identifier: Apache-2.0

"""Where a server could go, as explain says of its migration."""

from nova_ext_sched.cmd import nova_scheduler
from nova_ext_sched.cmd.explain import explanation
from nova_ext_sched.cmd.explain import server as explain_server
from nova_ext_sched.queries import aggregates


def find(
    scheduler: nova_scheduler.ReadOnlyHostManager, uuid: str
) -> list[str]:
    """Return the hosts that a cold migration may go to, the best first.

    :param scheduler: what nova-scheduler has in memory; its aggregates count,
        for our request filters too, and not those of the database
    :param uuid: of a server
    :raises Exception: whatever nova or placement raise where the request
        cannot be prepared or judged
    """
    ctxt = nova_scheduler.context()
    server = explain_server.Server(ctxt, uuid)
    server.migrate()
    found = explanation.start(scheduler, whole=False)
    aggregates.use(ctxt, scheduler.aggs_by_id.values())
    explanation.explain(scheduler, found, ctxt, server.spec_obj)
    return [found.hosts[host] for host, _ in found.order]
