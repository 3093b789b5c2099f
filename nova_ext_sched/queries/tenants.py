# SPDX-License-Identifier: Apache-2.0

"""Asks which keys of projects this nova's own host filter reads.

nova 29 reads ``filter_tenant_id`` alone, later ones what begins with it. The
filter itself is asked, on a host that has one key and nothing else.
"""

import functools
import types

from nova import objects
import nova.conf
from nova.scheduler.filters import aggregate_multitenancy_isolation

from nova_ext_sched.policy import own_hosts

CONF = nova.conf.CONF

FILTER = aggregate_multitenancy_isolation.AggregateMultiTenancyIsolation


def is_on() -> bool:
    """Return whether nova.conf enables the filter."""
    return FILTER.__name__ in CONF.filter_scheduler.enabled_filters


def reads(key: str) -> bool:
    """Return whether a metadata key closes hosts to projects."""
    return key == own_hosts.TENANTS or (
        key.startswith(own_hosts.TENANTS) and _reads_endings()
    )


@functools.cache
def _reads_endings() -> bool:
    key = f'{own_hosts.TENANTS}2'
    one = objects.Aggregate(metadata={key: 'theirs'})
    alone = types.SimpleNamespace(host='host', aggregates=[one])
    request = objects.RequestSpec(project_id='ours')
    return not FILTER().host_passes(alone, request)
