# SPDX-License-Identifier: Apache-2.0

"""Where a server could go, as explain says of its migration."""

import typing

from nova_ext_sched import aggregates
from nova_ext_sched.explain import explanation
from nova_ext_sched.explain import scheduler as nova_scheduler
from nova_ext_sched.explain import server as explain_server


class Destinations:
    """Asks nova-scheduler's code for the hosts that would take servers.

    :param scheduler: what nova-scheduler has in memory; its aggregates count,
        for our request filters too, and not those of the database
    :param auth: keystoneauth plugin for Glance, or None
    """

    def __init__(
        self, scheduler: nova_scheduler.Scheduler, auth: typing.Any = None
    ) -> None:
        self._scheduler = scheduler
        self._auth = auth
        self._explanation = explanation.Explanation(scheduler)

    def find(self, uuid: str) -> list[str]:
        """Return the hosts that a cold migration may go to, the best first.

        :param uuid: of a server
        :raises Exception: whatever nova or placement raise where the request
            cannot be prepared or judged
        """
        ctxt = self._scheduler.context(auth=self._auth)
        server = explain_server.Server(ctxt, uuid)
        ctxt.project_id = server.spec_obj.project_id
        request_spec = server.migrate()
        aggregates.supposed = self._scheduler.host_manager.aggs_by_id.values()
        try:
            funnel = self._explanation.explain(ctxt, request_spec)
        finally:
            aggregates.supposed = None
        return [funnel.hosts[host] for host, _ in funnel.order]
