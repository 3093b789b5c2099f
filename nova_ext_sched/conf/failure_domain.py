# SPDX-License-Identifier: Apache-2.0

"""Options of failure domains."""

import typing

from oslo_config import cfg
from oslo_config import types


class MetadataKey(types.String):
    """A key of aggregate metadata; it must not be empty."""

    def __call__(self, value: typing.Any) -> str:
        key: str = super().__call__(value).strip()
        if not key:
            raise ValueError('expected a metadata key, got an empty value')
        return key


OPTS = [
    cfg.Opt(
        'failure_domain_key',
        type=MetadataKey(),
        default='failure_domain',
        help="""
The metadata key of aggregates that names failure domains.

A failure domain is a set of hosts that fail together, such as a rack or a
power feed: the hosts of an aggregate whose metadata has this key. The value
is the name of the domain, or several names separated by commas. A host in
several domains counts in each. Aggregates with the same value form one
domain. A host without a domain takes no server of a group that has a limit
for failure domains.

Possible values:

* A metadata key, exactly as it is written in the aggregates.
  ``availability_zone`` makes every availability zone a failure domain.

Related options:

* ``[nova_ext_sched] request_filters`` must have ``failure_domains``, and
  ``[filter_scheduler] enabled_filters`` should have ``FailureDomainFilter``.
""",
    ),
    cfg.IntOpt(
        'max_server_per_failure_domain',
        default=0,
        min=0,
        help="""
The most servers of an anti-affinity group in one failure domain.

The limit applies to every server group with the policy ``anti-affinity``. For
a group of any policy, users can ask for a limit with the scheduler hints
``different_failure_domain=true`` (one server in each domain) and
``max_server_per_failure_domain=<n>``. If both apply, the lower number wins: a
hint never raises the operator's limit. With 0, only hints set a limit.

Existing servers stay where they are. They count, and the limit applies to
them when they are moved. Give every host of the cloud a failure domain first:
a host without one takes no server of such a group.

Related options:

* ``[nova_ext_sched] failure_domain_key``
* ``[nova_ext_sched] request_filters`` must have ``failure_domains``, and
  ``[filter_scheduler] enabled_filters`` should have ``FailureDomainFilter``.
""",
    ),
]
