# SPDX-License-Identifier: Apache-2.0

"""What the simulated scheduler asks of placement, and which hosts it refuses.

nova logs neither the hosts that placement returns nor those that a filter
refuses.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import functools
import typing

import fixtures
from nova.scheduler.client import report

from nova_ext_sched.cmd.simulate import reasons as sim_reasons
from nova_ext_sched.filters import base


class Recorder(fixtures.Fixture):
    """Records requests to placement and refusals of host filters.

    :param reasons: what is recorded goes there
    :param host_filters: the scheduler's own, as it uses them
    :param names: the host's name by the UUID of its resource provider
    """

    def __init__(
        self,
        reasons: sim_reasons.Reasons,
        host_filters: Iterable[typing.Any],
        names: Mapping[str, str],
    ) -> None:
        self._reasons = reasons
        self._host_filters = host_filters
        self._names = names

    def _setUp(self) -> None:
        get = report.SchedulerReportClient.get

        def recording_get(
            client: typing.Any,
            url: str,
            *args: typing.Any,
            **kwargs: typing.Any,
        ) -> typing.Any:
            answer = get(client, url, *args, **kwargs)
            found = answer.json() if answer.status_code == 200 else {}
            hosts = {
                self._names.get(uuid, uuid)
                for uuid in found.get('provider_summaries', ())
            }
            self._reasons.add_query(url, hosts, answer.status_code)
            return answer

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.scheduler.client.report.SchedulerReportClient.get',
                recording_get,
            )
        )
        for host_filter in self._host_filters:
            host_filter.filter_all = functools.partial(
                self._filter_all, host_filter, host_filter.filter_all
            )

    def _filter_all(
        self,
        host_filter: typing.Any,
        filter_all: Callable[..., typing.Any],
        hosts: Iterable[typing.Any],
        spec: typing.Any,
    ) -> list[typing.Any]:
        """Filter hosts as ``filter_all`` does."""
        hosts = list(hosts)
        passed = list(filter_all(hosts, spec))
        left = set(map(id, passed))
        refused = [host for host in hosts if id(host) not in left]
        name = type(host_filter).__name__
        judge = None
        if refused and isinstance(host_filter, base.PolicyFilter):
            judge = host_filter.judge(spec)
        for host in refused:
            reason = f': {judge(host).reason}' if judge else ''
            self._reasons.add_refusal(host.host, f'{name} refused it{reason}')
        return passed
