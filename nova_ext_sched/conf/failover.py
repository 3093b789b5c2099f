# SPDX-License-Identifier: Apache-2.0

"""Options of failover hosts."""

from collections.abc import Iterator

from oslo_config import cfg
from oslo_config import types

from nova_ext_sched.conf import failure_domain
from nova_ext_sched.conf import weighers

OPTS = [
    cfg.BoolOpt(
        'enable_failover_hosts',
        default=False,
        help="""
Keep marked hosts free for the servers of hosts that fail.

The hosts of aggregates whose metadata has ``failover_key`` take evacuations
and nothing else: no boot, resize, cold migration or unshelve. A rebuild of a
server that is there goes on. The request filter ``failover_hosts`` asks
placement to leave such hosts out; the host filter ``FailoverHostsFilter``
checks the hosts that placement returns. Evacuations take them first, whatever
``weighers`` has (``failover_hosts_weight_multiplier``).

A request is an evacuation if nova's record of the server says so at that
moment. If a cell does not answer, the request goes to other hosts.

Related options:

* ``[filter_scheduler] enabled_filters`` should have ``FailoverHostsFilter``.
* ``[filter_scheduler] weight_classes`` should have
  ``nova_ext_sched.weighers.all_weighers``.
""",
    ),
    cfg.Opt(
        'failover_key',
        type=failure_domain.MetadataKey(),
        default='failover',
        help="""
The metadata key of aggregates that keeps their hosts for failures.

Its value is true or false (1, yes, on; 0, no, off). Any other value keeps the
hosts, too, with a warning.

Possible values:

* A metadata key, exactly as it is written in the aggregates.

Related options:

* ``[nova_ext_sched] enable_failover_hosts``
""",
    ),
    cfg.Opt(
        'failover_takes',
        type=types.List(
            item_type=types.String(choices=['live-migrations']),
            type_name='list value',
        ),
        default=[],
        help="""
What hosts that are kept for failures take besides evacuations.

Possible values:

* Empty: nothing.
* ``live-migrations``: so that another host can be emptied for maintenance.
  Move the servers back afterwards: ``nova-ext-sched audit`` lists them.

Related options:

* ``[nova_ext_sched] enable_failover_hosts``
""",
    ),
    cfg.Opt(
        'failover_hosts_weight_multiplier',
        type=weighers.Multiplier(),
        default=10000.0,
        help="""
The weight of hosts that are kept for failures, for evacuations.

With the default, evacuations take these hosts before others: the servers then
go home together when the failed host is back. ``FailoverHostsWeigher`` weighs
evacuations alone and runs whenever the policy is on; do not add it to
``weighers``.

Possible values:

* A finite number. Negative: these hosts come last.
* The metadata key ``failover_hosts_weight_multiplier`` of an aggregate sets
  another value for its hosts.

Related options:

* ``[nova_ext_sched] enable_failover_hosts``
* ``[filter_scheduler] weight_classes`` must have
  ``nova_ext_sched.weighers.all_weighers``.
""",
    ),
]


def contradictions(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield the contradictions between options of this topic."""
    is_on = conf.nova_ext_sched.enable_failover_hosts
    enabled = conf.filter_scheduler.enabled_filters
    if 'FailoverHostsFilter' in enabled and not is_on:
        yield (
            'FailoverHostsFilter is in [filter_scheduler] '
            'enabled_filters, but [nova_ext_sched] enable_failover_hosts '
            'is False, so it checks nothing. Set the option to True, or '
            'remove the filter.'
        )
    if is_on and not weighers.is_loaded(conf):
        yield (
            f'[nova_ext_sched] enable_failover_hosts is True, but '
            f'[filter_scheduler] weight_classes does not have '
            f'{weighers.ALL_WEIGHERS}: evacuations take hosts that are kept '
            f'for failures in no particular order. Add '
            f'{weighers.ALL_WEIGHERS} to weight_classes.'
        )
