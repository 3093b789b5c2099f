#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""Stage 2 of isolation: judge each host's aggregates."""

from collections.abc import Callable
import typing

import nova.conf
from nova.scheduler import utils
from oslo_log import log as logging

from nova_ext_sched import faults
from nova_ext_sched.filters import base
from nova_ext_sched.policy import isolation
from nova_ext_sched.policy import verdict

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

_faults = faults.FaultLog(LOG)


class IsolatedAggregatesFilter(base.AggregatesFilter):
    """Refuse hosts of isolated aggregates whose traits are not required.

    The same decision as the request filter ``isolate_aggregates`` makes
    (:mod:`nova_ext_sched.policy.isolation`), on the aggregates that the
    scheduler holds in memory. It runs on rebuild, where nova runs no request
    filter: a server on an isolated host is refused an image that does not
    require the traits. It also judges what the placement query left out
    (``max_forbidden_aggregates``, ``forbid_by_trait``).

    Does nothing unless ``enable_isolated_aggregate_filtering`` is on.
    """

    # Neither the aggregates nor the required traits change within a request.
    run_filter_once_per_request = True

    RUN_ON_REBUILD = True

    def judge_aggregates(
        self, spec_obj: typing.Any
    ) -> Callable[[list[typing.Any]], verdict.Verdict] | None:
        """See :meth:`base.AggregatesFilter.judge_aggregates`."""
        if not CONF.nova_ext_sched.enable_isolated_aggregate_filtering:
            return None
        try:
            required = utils.ResourceRequest.from_request_spec(
                spec_obj
            ).all_required_traits
        except Exception as exc:
            # Flavors and images are operators' and users' data: what nova
            # cannot read in them must not open a host.
            fault = (
                f'IsolatedAggregatesFilter cannot tell which traits flavor '
                f'{spec_obj.flavor.name} and its image require, and rejects '
                f'every isolated host: {type(exc).__name__}: {exc}'
            )
            _faults.warn(fault)
            required = set()

        def decide(aggregates: list[typing.Any]) -> verdict.Verdict:
            return isolation.judge(
                ((agg.name, agg.metadata) for agg in aggregates), required
            )

        return decide
