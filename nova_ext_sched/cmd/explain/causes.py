# SPDX-License-Identifier: Apache-2.0

"""What refuses a host at both stages, under one name (see :mod:`.funnel`).

A policy of two stages has the same cause at both. Filters that are not here
are causes of their own.
"""

AVAILABILITY_ZONE = 'availability zone'
BLAZAR = 'Blazar'
CELL = 'requested cell'
DISABLED = 'disabled service'
FAILURE_DOMAINS = 'failure domains'
ISOLATION = 'isolation'
REQUESTED_HOST = 'requested host'
RESERVATION = 'reservation'
TENANT = 'tenant isolation'

#: By name of a request filter, of nova or ours.
OF_REQUEST_FILTERS = {
    'isolate_aggregates': ISOLATION,
    'reserved_aggregates': RESERVATION,
    'failure_domains': FAILURE_DOMAINS,
    'require_tenant_aggregate': TENANT,
    'map_az_to_placement_aggregate': AVAILABILITY_ZONE,
    'compute_status_filter': DISABLED,
    'blazar_reservations': BLAZAR,
}

#: By name of a host filter.
OF_HOST_FILTERS = {
    'FailureDomainFilter': FAILURE_DOMAINS,
    'AggregateMultiTenancyIsolation': TENANT,
    'BlazarFilter': BLAZAR,
}

#: What hosts do that a cause refuses by a forbidden aggregate.
KINDS = {
    ISOLATION: 'are isolated',
    RESERVATION: 'are reserved',
    FAILURE_DOMAINS: 'are in a full failure domain',
    TENANT: 'are for other projects',
    BLAZAR: 'are managed by Blazar',
}
